"""Requests that no client would send: valid ones of both eras, changed.

All chance comes from a `random.Random`, so a seed, or Hypothesis in its place, makes the same requests again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.support.eras import VERSION
from tests.support.eras import request as stateless
from tests.support.official import claimed
from tests.support.raw_http import ANSWER, BOTH, INITIALIZE, INITIALIZED, PING

Message = dict[str, Any]
Headers = tuple[tuple[bytes, bytes], ...]

_TOOLS: Final = {
    "ls": {"path": "."},
    "read": {"path": "notes.txt", "offset": 1, "limit": 5},
    "grep": {"pattern": "o", "path": ".", "glob": "*.txt"},
    "find": {"pattern": "*", "path": "."},
    "write": {"path": "notes.txt", "content": "one\n"},
    "edit": {"path": "notes.txt", "edits": [{"old_text": "one", "new_text": "two"}]},
    "bash": {"command": "true", "timeout": 5},
}
_METHODS: Final[tuple[tuple[str, Message], ...]] = (
    ("tools/list", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "plan_architecture", "arguments": {"goal": "x"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "superpi://workspace/tools"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "plan_architecture"}, "argument": {"name": "goal", "value": ""}},
    ),
    *(("tools/call", {"name": name, "arguments": arguments}) for name, arguments in _TOOLS.items()),
)
_HANDSHAKE_ALONE: Final[tuple[tuple[str, Message], ...]] = (
    ("ping", {}),
    ("logging/setLevel", {"level": "error"}),
    ("resources/subscribe", {"uri": "superpi://workspace/context"}),
    ("resources/unsubscribe", {"uri": "superpi://workspace/context"}),
    ("tools/list", {"_meta": {"progressToken": 1}}),
)
_STATELESS_ALONE: Final[tuple[tuple[str, Message], ...]] = (
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {"promptsListChanged": True}}),
    ("tools/call", {"name": "ls", "arguments": {}, "inputResponses": {}, "requestState": "x"}),
)
_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**40,
    0.5,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "é",
    "\U0001f600",
    "\u202e",
    "x" * 5000,
    "../../x",
    "/",
    "~",
    "*",
    "[",
    "**/**/**",
    "(a+)+$",
    "2.0",
    VERSION,
    "2025-03-26",
    "notifications/cancelled",
    "initialize",
    "superpi://conversation/x/transcript",
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"__proto__": {}},
    {"$ref": "#"},
)
_HEADER_VALUES: Final = (
    b"",
    b" ",
    b"\t",
    b"*",
    b"*/*",
    b"*/*;q=0",
    b"application/json",
    b"text/event-stream",
    b"text/event-stream;q=0.1, application/json;q=0",
    b"application/json; charset=utf-16",
    b"text/plain",
    b",,,",
    b"\xff\xfe",
    b"\x7f",
    b"\0",
    "é".encode(),
    b"=?base64?YmFzaA==?=",
    b"=?base64?/////?=",
    b"=?BASE64?YmFzaA==?=",
    b"=?base64?" + b"Y" * 4000 + b"?=",
    b"2025-03-26",
    VERSION.encode(),
    b"1999-01-01",
    b"tools/list",
    b"bash",
    b"x" * 43,
    b"x" * 9000,
    b"0",
    b"-1",
    b"99999999999999999999",
    b"gzip",
    b"chunked",
    b"100-continue",
    b"close",
    b"websocket",
    b"http://evil.example",
    b"http://localhost",
    b"null",
    b"Bearer x",
    b"Bearer",
    b"00-00000000000000000000000000000001-0000000000000001-01",
)
_HEADER_NAMES: Final = (
    b"accept",
    b"content-type",
    b"content-length",
    b"content-encoding",
    b"transfer-encoding",
    b"expect",
    b"host",
    b"origin",
    b"authorization",
    b"connection",
    b"upgrade",
    b"mcp-session-id",
    b"mcp-protocol-version",
    b"mcp-method",
    b"mcp-name",
    b"mcp-param-path",
    b"last-event-id",
    b"x-request-id",
    b"traceparent",
    b"cookie",
    b"access-control-request-method",
    b"x" * 300,
)
#: What breaks UTF-8 or JSON wherever it stands.
_PIECES: Final = (b"\xff", b"\0", b"\xed\xa0\x80", b"{", b"]", b'"', b"\\u0000")
_HTTP_METHODS: Final = (
    b"GET",
    b"HEAD",
    b"PUT",
    b"PATCH",
    b"DELETE",
    b"OPTIONS",
    b"TRACE",
    b"CONNECT",
    b"post",
    b"BREW",
)
_PATHS: Final = (
    b"/mcp?harness=super-pi-planner",
    b"/mcp?harness=none",
    b"/mcp?harness=&harness=x",
    b"/mcp?%00=%ff&harness=%ff",
    b"/mcp/",
    b"//mcp",
    b"/%6dcp",
    b"/mcp%00",
    b"/mcp/../mcp",
    b"/mcp;a=b",
    b"http://localhost/mcp",
    b"*",
    b"/",
    b"/" + b"x" * 9000,
    b"/livez",
    b"/readyz",
    b"/metrics",
    b"/admin/v1/tokens",
    b"/admin/v1/tokens/x/revoke",
    b"/admin/v1/openapi.json",
    b"/.well-known/oauth-protected-resource",
    b"/docs",
)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, byte by byte."""

    method: bytes
    path: bytes
    headers: Headers
    body: bytes

    def encode(self) -> bytes:
        """What goes over the wire."""
        lines = [self.method + b" " + self.path + b" HTTP/1.1", *(b": ".join(header) for header in self.headers)]
        return b"\r\n".join([*lines, b"", b""]) + self.body


def valid(random: Random, id: Any = 1) -> Message:
    """A message that some client might send, of either era."""
    if random.random() < 0.5:
        method, params = random.choice(_METHODS + _STATELESS_ALONE)
        return stateless(method, params, id=id)
    method, params = random.choice(_METHODS + _HANDSHAKE_ALONE)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    return random.choice(
        [PING | {"id": id, "method": method, "params": params}] * 6 + [INITIALIZE, INITIALIZED, ANSWER, cancel]
    )


def posted(body: bytes, message: Any, session: str) -> Request:
    """A body with the headers that a client gives a message."""
    headers = [(b"host", b"localhost"), (b"accept", BOTH.encode()), (b"content-type", b"application/json")]
    params = message.get("params") if isinstance(message, dict) else None
    params = params if isinstance(params, dict) else {}
    if isinstance(message, dict) and claimed(message) is not None:
        routed = {b"mcp-protocol-version": claimed(message), b"mcp-method": message.get("method")}
        routed[b"mcp-name"] = params.get("name", params.get("uri"))
        headers += [(key, _plain(value)) for key, value in routed.items() if isinstance(value, str)]
    elif not (isinstance(message, dict) and message.get("method") == "initialize"):
        headers.append((b"mcp-session-id", session.encode()))
    headers.append((b"content-length", str(len(body)).encode()))
    return Request(b"POST", b"/mcp", tuple(headers), body)


def mutated(random: Random, session: str) -> Request:
    """A request that began as a valid one: what was changed is in its message, its bytes, its headers or its line."""
    message: Any = valid(random, random.choice([1, "a", -(2**53), ""]))
    if random.random() < 0.15:
        message = [valid(random, id) for id in range(random.randrange(4))]
    for _ in range(random.choice([0, 1, 1, 1, 3])):
        message = _changed(random, message)
    body = json.dumps(message, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass")
    if random.random() < 0.15:
        body = _bytes(random, body)
    request = posted(body, message, session)
    for _ in range(random.choice([0, 0, 0, 1, 1, 3])):
        request = replace(request, headers=_headers(random, request.headers))
    if random.random() < 0.08:
        request = replace(request, method=random.choice(_HTTP_METHODS))
    if random.random() < 0.08:
        request = replace(request, path=random.choice(_PATHS))
    return request


def _plain(value: str) -> bytes:
    """A value that can stand in a header line."""
    return b" ".join(value.encode("utf-8", "surrogatepass").split(b"\n")).replace(b"\r", b" ")


def _changed(random: Random, value: Any) -> Any:
    """A JSON value with one thing in it replaced, left out, added, wrapped or buried."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        match random.randrange(6):
            case 0:
                return {other: kept for other, kept in value.items() if other != key}
            case 1:
                return value | {random.choice(["", "x", "\0", "id", "_meta", "params", "cursor"]): _value(random)}
            case _:
                return value | {key: _changed(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.75:
        at = random.randrange(len(value))
        return [*value[:at], _changed(random, value[at]), *value[at + 1 :]]
    match random.randrange(8):
        case 0:
            return [value]
        case 1:
            return {"x": value}
        case 2:
            return _buried(value, random.choice([10, 60, 64, 65, 250]))
        case 3 if isinstance(value, str):
            return value + random.choice(["\0", " ", "é", "\ud800", "x" * 300])
        case _:
            return _value(random)


def _value(random: Random) -> Any:
    return random.choice(_VALUES)


def _buried(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _bytes(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    match random.randrange(8):
        case 0:
            return body[:at]
        case 1:
            return (
                body[:at] + random.choice([b"\xff", b"\0", b"\xed\xa0\x80", b"{", b"]", b'"', b"\\u0000"]) + body[at:]
            )
        case 2:
            return body + body
        case 3:
            return b"\xef\xbb\xbf" + body
        case 4:
            return body.decode("utf-8", "replace").encode("utf-16")
        case 5:
            return b"[" * random.choice([100, 5000, 90_000])
        case 6:
            return bytes(random.randrange(256) for _ in range(random.randrange(40)))
        case _:
            return body[:at] + bytes([random.randrange(256)]) + body[at + 1 :]


def _headers(random: Random, headers: Headers) -> Headers:
    at = random.randrange(len(headers)) if headers else 0
    name, value = headers[at] if headers else (b"accept", b"*/*")
    other = random.choice(_HEADER_VALUES)
    match random.randrange(6):
        case 0:
            return headers[:at] + headers[at + 1 :]
        case 1:
            return (*headers[:at], (name, other), *headers[at + 1 :])
        case 2:
            return (*headers, (name, other))
        case 3:
            return (*headers, (name.upper(), value))
        case _:
            return (*headers, (random.choice(_HEADER_NAMES), other))
