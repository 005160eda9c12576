"""The edge: what every request passes before a route sees it. Plain ASGI, one layer.

It gives the request an id, refuses a foreign Host or Origin, puts the caller into the scope, adds the headers
that every answer carries, and turns what fails into an answer without internals.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from auth.caller import Caller
from gateway.origins import Headers, Rules, cors_headers, preflight_headers
from gateway.store.faults import StoreUnavailable
from mcp import http
from mcp.http import Receive, Refused, Scope, Send
from mcp.protocol import codec
from mcp.protocol.errors import HttpRefusal
from mcp.router import CALLER_KEY

_log: Final = logging.getLogger("superpi.edge")

#: Asked by load balancers and kubelets, who use whatever address they have.
_PROBES: Final = frozenset({"/livez", "/readyz"})
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ALWAYS: Final[Headers] = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_RETRY: Final[Headers] = ((b"retry-after", b"2"),)


@dataclass(frozen=True, slots=True)
class Edge:
    """The outermost layer of the application."""

    app: Any
    rules: Rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection's scope in; anything but HTTP goes through untouched."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, _request_id(scope))
        if scope["path"] not in _PROBES:
            origins = http.header_values(scope, b"origin")
            refusal = self._refusal(scope, origins)
            if refusal is not None:
                await http.send_refusal(answer, Refused(refusal))
                return
            if origins and _is_preflight(scope):
                answer.extra += preflight_headers(origins[0])
                await http.send_empty(answer, 204)
                return
            if origins:
                answer.extra += cors_headers(origins[0])
        scope[CALLER_KEY] = Caller()
        await self._guarded(scope, receive, answer)

    def _refusal(self, scope: Scope, origins: list[str]) -> HttpRefusal | None:
        hosts = http.header_values(scope, b"host")
        if len(hosts) != 1:
            return HttpRefusal.HOST_MISSING
        if not self.rules.allow_host(hosts[0]):
            return HttpRefusal.HOST_FORBIDDEN
        if len(origins) > 1 or not all(self.rules.allow_origin(origin) for origin in origins):
            return HttpRefusal.ORIGIN_FORBIDDEN
        return None

    async def _guarded(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self.app(scope, receive, answer)
        except StoreUnavailable as error:
            _log.warning("the store is unavailable: %s", error, extra={"request_id": answer.id})
            await answer.fail(HttpRefusal.UNAVAILABLE, _RETRY)
        except asyncio.CancelledError:
            # Only the end of the process cancels a request.
            await answer.fail(HttpRefusal.DRAINING, _RETRY)
        except Exception:  # noqa: BLE001 - the last line: logged, and answered without internals
            _log.exception("a request failed", extra={"request_id": answer.id, "path": scope["path"]})
            await answer.fail(HttpRefusal.INTERNAL, ())


class _Answer:
    """The `send` of one request: adds headers to the start, and knows whether it was sent."""

    __slots__ = ("_send", "_started", "extra", "id")

    def __init__(self, send: Send, id: str) -> None:
        self._send = send
        self._started = False
        self.id = id
        self.extra: Headers = (*_ALWAYS, (b"x-request-id", id.encode()))

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            message["headers"] = [*message.get("headers", ()), *self.extra]
        await self._send(message)

    async def fail(self, refusal: HttpRefusal, headers: Headers) -> None:
        """Answer with a failure; where an answer has begun, end it so that the client sees it is cut."""
        if self._started:
            raise ConnectionAbortedError
        error = {"code": refusal.status, "message": refusal.message, "data": {"requestId": self.id}}
        body = codec.encode({"jsonrpc": "2.0", "error": error})
        await http.send_json(self, refusal.status, body, headers)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and bool(http.header_values(scope, b"access-control-request-method"))


def _request_id(scope: Scope) -> str:
    given = http.header_values(scope, b"x-request-id")
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0]
    return secrets.token_hex(8)
