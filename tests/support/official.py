"""Whether what a server sent is of the official wire types (`mcp_types`) of its revision, whichever test it came in.

`check` judges one message by what was sent for it. `watch_http` judges every answer of an MCP endpoint that any
client of this process reads; clients of other transports call `check` themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import httpx
from mcp_types import JSONRPCError, JSONRPCResponse
from mcp_types import methods as official
from pydantic import ValidationError

from mcp.protocol.revisions import HANDSHAKE, STATELESS
from mcp.protocol.stateless import VERSION_KEY

Message = dict[str, Any]

_HANDSHAKE: Final = tuple(revision.value for revision in HANDSHAKE)
_STATELESS: Final = tuple(revision.value for revision in STATELESS)
#: The codes that the specification keeps for itself or for nobody, and those of them that each era may send.
_KEPT: Final = range(-32099, -31999)
_OWN_CODES: Final = {
    **{version: {-32002, -32042} for version in _HANDSHAKE},
    **{version: {-32020, -32021, -32022} for version in _STATELESS},
}
#: Refusals of a message that names no revision that is spoken: of whichever era its headers say.
_HEADER_CODES: Final = {-32020, -32022}


def check(received: Any, sent: Any, revision: str | None = None) -> Any:
    """What came, once it was found to be what the official types say. Raises AssertionError otherwise.

    `sent` holds the messages that it may answer or belong to, as one, as many, or None where nothing readable was
    sent; `revision` is the one that their connection agreed on, None where nobody knows.
    """
    asked = [message for message in _flat(sent) if isinstance(message, dict)]
    for message in _flat(received):
        _check(message, asked, revision)
    return received


def _flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _check(message: Message, asked: list[Message], revision: str | None) -> None:
    params = message.get("params")
    if "error" in message:
        _check_error(message, asked, revision)
    elif "result" in message:
        _check_result(message, asked, revision)
    elif "id" in message:
        spoken = set(_spoken(asked, revision)) - set(_STATELESS)
        _any_of(spoken, lambda version: official.parse_server_request(message["method"], version, params), message)
    else:
        spoken = set(_spoken(asked, revision))
        _any_of(spoken, lambda version: official.parse_server_notification(message["method"], version, params), message)


def _check_result(message: Message, asked: list[Message], revision: str | None) -> None:
    JSONRPCResponse.model_validate(message)
    id, result = message["id"], message["result"]
    requests = [one for one in asked if "method" in one and one.get("id") == id and type(one["id"]) is type(id)]
    assert requests, f"nobody asked for {message}"

    def judge(version: str) -> None:
        for method in {request["method"] for request in requests}:
            with suppress(KeyError):
                official.validate_server_result(method, version, result)
                return
        raise KeyError(version)

    if any(request["method"] == "initialize" for request in requests) and "protocolVersion" in result:
        revision = result["protocolVersion"]
    _any_of(_spoken(requests, revision), judge, message)


def _check_error(message: Message, asked: list[Message], revision: str | None) -> None:
    assert "result" not in message, message
    assert message.get("id", "") is not None, f"an id that cannot be read is left out: {message}"
    JSONRPCError.model_validate({"id": None} | message)
    code, ids = message["error"]["code"], [one.get("id") for one in asked]
    if "id" in message:
        assert message["id"] in ids or not asked, f"nobody asked for {message}"
    if code in _KEPT:
        allowed = set().union(*(_OWN_CODES[version] for version in _spoken(asked, revision))) | _HEADER_CODES
        assert code in allowed, f"{code} is not of {_spoken(asked, revision)}: {message}"


def _any_of(versions: Iterable[str], judge: Callable[[str], object], message: Message) -> None:
    faults: list[str] = []
    for version in versions:
        try:
            judge(version)
        except (KeyError, ValidationError) as fault:
            faults.append(f"{version}: {fault!r}")
        else:
            return
    raise AssertionError(f"no message of the official types: {message}\n" + "\n".join(faults))


def _spoken(asked: list[Message], revision: str | None) -> tuple[str, ...]:
    """The revisions that a message may be of: those that requests claim, and the connection's."""
    claims = [claim for message in asked if (claim := claimed(message)) is not None]
    if len(claims) == len(asked) and claims:
        return tuple(claim if claim in _STATELESS else _STATELESS[-1] for claim in claims)
    return (*(claim for claim in claims if claim in _STATELESS), *(_HANDSHAKE if revision is None else (revision,)))


def claimed(message: Message) -> str | None:
    """The revision that a request claims for itself."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    claim = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return claim if isinstance(claim, str) else None


class Connection:
    """What one connection sent and agreed on, for a transport that is one stream of messages."""

    def __init__(self) -> None:
        self._sent: list[Message] = []
        self._revision: str | None = None

    def sent(self, message: Any) -> None:
        """That was sent; whatever is no message is not answered by id."""
        self._sent += [one for one in _flat(message) if isinstance(one, dict)]

    def received(self, message: Any) -> Any:
        """That came; the same, once it was found to be right."""
        for one in _flat(message):
            if isinstance(one.get("result"), dict) and "serverInfo" in one["result"]:
                self._revision = one["result"]["protocolVersion"]
        return check(message, self._sent, self._revision)


# --- every HTTP client of this process

#: What each session agreed on, by its id; ids are never used twice.
_sessions: dict[str, str] = {}


def watch_http() -> None:
    """Judge, from now on, every answer of an MCP endpoint that an httpx client of this process reads."""
    plain, asgi = httpx.HTTPTransport.handle_request, httpx.ASGITransport.handle_async_request

    def handle(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        answer = plain(self, request)
        judge = _judge(request, answer)
        if judge is not None:
            answer.stream = _Watched(answer.stream, judge)
        return answer

    async def handle_async(self: httpx.ASGITransport, request: httpx.Request) -> httpx.Response:
        answer = await asgi(self, request)
        judge = _judge(request, answer)
        if judge is not None:
            answer.stream = _WatchedAsync(answer.stream, judge)
        return answer

    httpx.HTTPTransport.handle_request = handle
    httpx.ASGITransport.handle_async_request = handle_async


class _Judge:
    """Takes the bytes of one answer as they come, and judges each message that is whole."""

    def __init__(self, sent: Any, revision: str | None, session: str | None, *, events: bool) -> None:
        self._sent, self._revision, self._session = sent, revision, session
        self._events = events
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        self._rest += chunk
        if self._events:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._message(line[5:])
                assert not line.startswith((b"id:", b"retry:")), "events have no ids, and nothing is resumed"

    def end(self) -> None:
        if not self._events and self._rest:
            self._message(self._rest)

    def _message(self, raw: bytes) -> None:
        message = check(json.loads(raw), self._sent, self._revision)
        if self._session is not None:
            _sessions[self._session] = message["result"]["protocolVersion"]


def _judge(request: httpx.Request, answer: httpx.Response) -> _Judge | None:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if request.url.path != "/mcp" or kind not in ("application/json", "text/event-stream"):
        return None
    try:
        sent = json.loads(request.content)
    except (ValueError, RecursionError, httpx.RequestNotRead):
        sent = None
    revision = _sessions.get(request.headers.get("mcp-session-id", ""))
    return _Judge(sent, revision, answer.headers.get("mcp-session-id"), events=kind == "text/event-stream")


class _Watched(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, judge: _Judge) -> None:
        self._stream, self._judge = stream, judge

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._judge.take(chunk)
            yield chunk
        self._judge.end()

    def close(self) -> None:
        self._stream.close()


class _WatchedAsync(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, judge: _Judge) -> None:
        self._stream, self._judge = stream, judge

    async def __aiter__(self):
        async for chunk in self._stream:
            self._judge.take(chunk)
            yield chunk
        self._judge.end()

    async def aclose(self) -> None:
        await self._stream.aclose()
