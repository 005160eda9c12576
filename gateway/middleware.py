"""The edge: what every request passes before a route sees it. Plain ASGI, one layer.

It gives the request an id, refuses a foreign Origin or Host, finds out who calls and puts that into the scope, adds
the headers that every answer carries, and turns what fails into an answer without internals. What it refuses is the
same on every path; only the body differs, which is a JSON-RPC error on `/mcp` and a problem elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from auth.authenticator import Answer, Authenticator, Unauthenticated, Unavailable
from auth.caller import Caller
from gateway import problems
from gateway.origins import Headers, Rules, cors_headers, preflight_headers
from gateway.routes import MCP, PROBES, WELL_KNOWN, label
from gateway.store.faults import StoreUnavailable
from mcp import http
from mcp.http import Receive, Refused, Scope, Send
from mcp.meter import Meter
from mcp.protocol import codec
from mcp.protocol.errors import HttpRefusal
from mcp.rates import CHEAP, Exceeded
from mcp.router import CALLER_KEY, REQUEST_ID_KEY, SPAN_KEY
from telemetry.metrics import Metrics
from telemetry.tracing import Attribute, Span, Tracing

_log: Final = logging.getLogger("superpi.edge")

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: Where the listener speaks TLS (RFC 6797); for a year.
_SECURE: Final[Headers] = ((b"strict-transport-security", b"max-age=31536000"),)
_ALWAYS: Final[Headers] = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
#: Beside `/mcp`, whose answers no browser takes for a page: nothing that an answer holds may run or load anything.
_BESIDE: Final[Headers] = (*_ALWAYS, (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"))
_RETRY: Final[Headers] = ((b"retry-after", b"2"),)


@dataclass(frozen=True, slots=True)
class Edge:
    """The outermost layer of the application."""

    app: Any
    rules: Rules
    authenticator: Authenticator
    metrics: Metrics
    tracing: Tracing
    meter: Meter
    is_secure: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one connection's scope in; anything but HTTP goes through untouched."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        route = label(scope["path"])
        answer = _Answer(send, _request_id(scope), speaks_rpc=route == MCP, is_secure=self.is_secure)
        scope[REQUEST_ID_KEY] = answer.id
        scope[SPAN_KEY] = span = self._span(scope, route, answer.id)
        try:
            await self._take(scope, receive, answer)
        finally:
            span.end(answer.status)
            self.metrics.request(route, scope["method"], answer.status, time.perf_counter() - began)

    def _span(self, scope: Scope, route: str, id: str) -> Span:
        method = scope["method"]
        span = self.tracing.start(f"{method} {route}", http.only_header(scope, b"traceparent"))
        span.set(Attribute.METHOD, method)
        span.set(Attribute.ROUTE, route)
        span.set(Attribute.REQUEST_ID, id)
        return span

    async def _take(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        if scope["path"] in PROBES:
            await self._guarded(scope, receive, answer)
            return
        origins = http.header_values(scope, b"origin")
        if (refused := self._misdirected(scope, origins)) is None and origins:
            if _is_preflight(scope):
                answer.extra += preflight_headers(origins[0])
                await http.send_empty(answer, 204)
                return
            answer.extra += cors_headers(origins[0])
        if (refused := refused or await self._unknown(scope, answer)) is None:
            await self._guarded(scope, receive, answer)
        else:
            await answer.refuse(refused)

    def _misdirected(self, scope: Scope, origins: list[str]) -> Refused | None:
        """Why the request is not for this server or not from where it may come, if so."""
        if len(http.header_values(scope, b"host")) != 1:
            return Refused(HttpRefusal.HOST_MISSING)
        if len(origins) > 1 or not all(self.rules.allow_origin(origin) for origin in origins):
            return Refused(HttpRefusal.ORIGIN_FORBIDDEN)
        return None

    async def _unknown(self, scope: Scope, answer: _Answer) -> Refused | None:
        """Why the caller is not let in, if so; else the caller goes into the scope. Some paths need none."""
        address = scope["client"][0] if scope.get("client") else ""
        if scope["path"].startswith(WELL_KNOWN):
            return self._limited(self.meter.take(address, CHEAP))
        headers = http.header_values(scope, b"authorization")
        caller = self.authenticator.warm(headers) or await self._judged(headers, address)
        match caller:
            case Exceeded():
                return self._limited(caller)
            case Unauthenticated(reason, challenge):
                self.metrics.authentication("refused")
                _log.info("not authenticated: %s", reason, extra={"request_id": answer.id})
                return Refused(HttpRefusal.UNAUTHENTICATED, headers=((b"www-authenticate", challenge.encode()),))
            case Unavailable(reason):
                self.metrics.authentication("unavailable")
                _log.warning("nobody can be authenticated: %s", reason, extra={"request_id": answer.id})
                return Refused(HttpRefusal.UNAVAILABLE, headers=_RETRY)
            case Caller():
                self.metrics.authentication("anonymous" if caller.token is None else "token")
                # A page cannot show a token by rebinding a name, so only callers without one are held to it.
                if caller.token is None and not self.rules.allow_host(http.header_values(scope, b"host")[0]):
                    return Refused(HttpRefusal.HOST_FORBIDDEN)
                scope[CALLER_KEY] = caller
                return None
            case _:
                assert_never(caller)

    async def _judged(self, headers: list[str], address: str) -> Answer | Exceeded:
        """Who shows these values of Authorization, unless the address has shown too many wrong ones."""
        if headers and (guesses := self.meter.guesses_on(address)) is not None:
            return guesses
        answer = await self.authenticator.authenticate(headers)
        if headers and isinstance(answer, Unauthenticated):
            self.meter.guessed(address)
        return answer

    def _limited(self, over: Exceeded | None) -> Refused | None:
        if over is None:
            return None
        self.metrics.limited(over.budget)
        return over.refused()

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
    """The `send` of one request: adds headers to the start, and knows whether and with what status it was sent."""

    __slots__ = ("_send", "_speaks_rpc", "_started", "extra", "id", "status")

    def __init__(self, send: Send, id: str, *, speaks_rpc: bool, is_secure: bool) -> None:
        self._send = send
        self._started = False
        self._speaks_rpc = speaks_rpc
        self.id = id
        self.status = 500
        self.extra: Headers = (*(_ALWAYS if speaks_rpc else _BESIDE), (b"x-request-id", id.encode()))
        if is_secure:
            self.extra += _SECURE

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self.extra]
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer with a refusal, in the form that the path speaks."""
        if self._speaks_rpc:
            await http.send_refusal(self, refused)
        else:
            await problems.send(self, refused.refusal, self.id, refused.headers)

    async def fail(self, refusal: HttpRefusal, headers: Headers) -> None:
        """Answer with a failure; where an answer has begun, end it so that the client sees it is cut."""
        if self._started:
            raise ConnectionAbortedError
        if not self._speaks_rpc:
            await problems.send(self, refusal, self.id, headers)
            return
        error = {"code": refusal.status, "message": refusal.message, "data": {"requestId": self.id}}
        body = codec.encode({"jsonrpc": "2.0", "error": error})
        await http.send_json(self, refusal.status, body, headers)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and bool(http.header_values(scope, b"access-control-request-method"))


def _request_id(scope: Scope) -> str:
    given = http.header_values(scope, b"x-request-id")
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0]
    # It tells requests apart and protects nothing, so it need not cost a system call.
    return f"{random.getrandbits(64):016x}"
