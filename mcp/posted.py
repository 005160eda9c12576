"""What a POST brings: its parts, read from headers and body into values. Decides nothing and answers nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from mcp import http
from mcp.accept import Form
from mcp.http import Receive, Scope, Send
from mcp.offering import Offered
from mcp.protocol import revisions
from mcp.protocol.arrival import Mirror
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.wire import Batch, Malformed, Payload, Request, RequestId, Single

_MIRRORING: Final = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_PARAM: Final = b"mcp-param-"


@dataclass(frozen=True, slots=True)
class Posted:
    """One POST: what came, and the way to answer it. `id` is of the one request that it holds, if it does."""

    scope: Scope
    receive: Receive
    send: Send
    form: Form
    payload: Payload
    id: RequestId | None
    offered: Offered

    @property
    def has_session(self) -> bool:
        """Whether it names a session."""
        return bool(http.header_values(self.scope, b"mcp-session-id"))


def mirror(scope: Scope) -> Mirror:
    """The headers that repeat parts of a body, from one pass over all of them."""
    found: dict[bytes, list[str]] = {}
    params: dict[str, tuple[str, ...]] = {}
    for key, raw in scope["headers"]:
        if key in _MIRRORING:
            found.setdefault(key, []).append(raw.decode("latin-1").strip(" \t"))
        elif key.startswith(_PARAM):
            name = key[len(_PARAM) :].decode("latin-1")
            params[name] = (*params.get(name, ()), raw.decode("latin-1").strip(" \t"))
    version, method, target = (tuple(found.get(key, ())) for key in _MIRRORING)
    return Mirror(version, method, target, params)


def versions(scope: Scope) -> tuple[str, ...]:
    """Every value of `MCP-Protocol-Version`."""
    return tuple(http.header_values(scope, b"mcp-protocol-version"))


def names_known_version(versions: tuple[str, ...]) -> bool:
    """Whether `MCP-Protocol-Version` is absent, or names one version that is spoken (HL-15, HL-16)."""
    return len(versions) <= 1 and all(map(revisions.by_name, versions))


def request_id(payload: Payload) -> RequestId | None:
    """The id of the one request that a payload is, for refusals that answer it."""
    match payload:
        case Single(Request(id=id) | Malformed(id=id)):
            return id
        case _:
            return None


def array_fault(payload: Payload) -> Refusal | None:
    """What is wrong with an array that holds no message: no session would make it one."""
    if not isinstance(payload, Batch):
        return None
    faults = [message.refusal for message in payload.messages if isinstance(message, Malformed)]
    if len(faults) < len(payload.messages):
        return None
    return faults[0] if faults else Refusal(Reason.INVALID_REQUEST, "Invalid request: the batch is empty")


def has_request(payload: Payload) -> bool:
    """Whether anything in it is owed a response."""
    messages = payload.messages if isinstance(payload, Batch) else (payload.message,)
    return any(isinstance(message, Request) for message in messages)


def is_initialize(payload: Payload) -> bool:
    """Whether it opens a session."""
    return (
        isinstance(payload, Single) and isinstance(payload.message, Request) and payload.message.method == "initialize"
    )


def harness(scope: Scope) -> str | None:
    """The harness that the query asks for, empty for none; None when it does not name exactly one."""
    values = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).get("harness")
    if values is None:
        return ""
    return values[0] if len(values) == 1 and values[0] else None
