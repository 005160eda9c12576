"""The bytes of the HTTP transport: reading a request, writing an answer. Knows ASGI and no method of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.accept import is_json
from mcp.protocol import codec
from mcp.protocol.errors import HttpRefusal
from mcp.protocol.wire import RequestId

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (b"content-type", b"text/event-stream")
#: Asks proxies not to hold events back (HM-8).
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")
#: Where a request's headers stand by name once one was asked for: a dozen are, of each request.
_INDEX: Final = "superpi.headers"
#: Of a refusal that leaves a body unread: the rest of it is not the next request.
CLOSE: Final[Headers] = ((b"connection", b"close"),)
KEEP_ALIVE: Final = b": keep-alive\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that HTTP gives itself. `id` is of the request it answers, where that is known.

    `more` is a sentence behind the one of the table: what is known only where it is refused.
    """

    refusal: HttpRefusal
    id: RequestId | None = None
    headers: Headers = field(default=())
    more: str = ""

    @property
    def message(self) -> str:
        """Words for the client."""
        return f"{self.refusal.message} {self.more}" if self.more else self.refusal.message


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """Bytes and seconds that a request body may take; `setting` is the variable that the bytes come from."""

    most: int
    seconds: float
    setting: str

    def too_large(self) -> Refused:
        """The refusal of a larger one, for whoever may change the bound."""
        return Refused(
            HttpRefusal.BODY_TOO_LARGE, headers=CLOSE, more=f"It takes {self.most} bytes; {self.setting} sets that."
        )


def header_values(scope: Scope, name: bytes) -> list[str]:
    """Every value of a request header, in order, without the blanks around it (RFC 9110); `name` in lower case."""
    index: dict[bytes, list[str]] | None = scope.get(_INDEX)
    if index is None:
        index = scope[_INDEX] = {}
        for key, value in scope["headers"]:
            index.setdefault(key, []).append(value.decode("latin-1").strip(" \t"))
    return index.get(name, [])


def only_header(scope: Scope, name: bytes) -> str | None:
    """The one value of a request header that lists: several lines count as one, joined by commas (RFC 9110)."""
    values = header_values(scope, name)
    return ", ".join(values) if values else None


async def read_body(receive: Receive, bounds: BodyBounds) -> bytes | Refused | None:
    """The request body, within its bounds; None when the client left before it was whole."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(bounds.seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > bounds.most:
                    return bounds.too_large()
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        return Refused(HttpRefusal.BODY_TIMEOUT, headers=CLOSE)


async def read_json_body(scope: Scope, receive: Receive, bounds: BodyBounds) -> bytes | Refused | None:
    """The same, of a body that its headers call JSON as it is sent, and no longer than that."""
    if not is_json(only_header(scope, b"content-type")) or header_values(scope, b"content-encoding"):
        return Refused(HttpRefusal.MEDIA_TYPE, headers=CLOSE)
    length = only_header(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > bounds.most:
        return bounds.too_large()
    return await read_body(receive, bounds)


async def send_json(send: Send, status: int, body: bytes, extra: Headers = ()) -> None:
    """Answer with one JSON body."""
    headers = [_JSON, (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, extra: Headers = ()) -> None:
    """Answer without a body."""
    headers = [(b"content-length", b"0"), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(send: Send, refused: Refused) -> None:
    """Answer with a refusal as a JSON-RPC error."""
    error = {"code": refused.refusal.status, "message": refused.message}
    body: dict[str, Any] = {"jsonrpc": "2.0", "error": error}
    if refused.id is not None:
        body["id"] = refused.id
    await send_json(send, refused.refusal.status, codec.encode(body), refused.headers)


async def start_events(send: Send, extra: Headers = ()) -> None:
    """Open an event stream as the answer."""
    await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS, _UNBUFFERED, *extra]})


async def send_event(send: Send, message: bytes, *, last: bool) -> None:
    """Send one JSON-RPC message as an event."""
    body = b"event: message\r\ndata: " + message + b"\r\n\r\n"
    await send({"type": "http.response.body", "body": body, "more_body": not last})


async def end_events(send: Send) -> None:
    """Close an event stream that nothing follows on."""
    await send({"type": "http.response.body", "body": b""})


async def send_keep_alive(send: Send) -> None:
    """Send a comment, so that no proxy takes a long call for a dead one."""
    await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
