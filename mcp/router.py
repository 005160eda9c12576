"""Streamable HTTP: the endpoint's table of requests and answers, on top of the engine.

An ASGI application for one path. What stands before it (the gateway) has checked Host and Origin and put the
caller into the scope. Plain ASGI, because every layer here is on every call.

| request | answer |
|---|---|
| POST with a request | 200 and the reply, as JSON or as an event stream |
| POST with nothing to answer | 202 |
| POST with `initialize` | as above, with `Mcp-Session-Id` |
| GET | 405 |
| DELETE | 200, and the session ends |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from auth import scopes
from auth.caller import Caller
from auth.ports import StoreAway
from mcp import http
from mcp.accept import Form, accepted
from mcp.calls import Connection, Performer
from mcp.flight import Flight
from mcp.http import Receive, Refused, Scope, Send
from mcp.limits import HttpLimits
from mcp.live import Sessions
from mcp.protocol import revisions
from mcp.protocol.effects import CancelRequested, Opened
from mcp.protocol.engine import Engine, Step
from mcp.protocol.errors import HttpRefusal, http_status
from mcp.protocol.methods import METHODS
from mcp.protocol.state import State
from mcp.protocol.wire import Batch, Malformed, Payload, Reply, Request, RequestId, Response, Single, parse
from mcp.sessions import Session
from mcp.settling import Settling
from telemetry.tracing import Attribute, Span, session_label

_log: Final = logging.getLogger("superpi.router")

#: Where the gateway puts the `Caller` of a request.
CALLER_KEY: Final = "superpi.caller"
#: Where the gateway puts the id of a request.
REQUEST_ID_KEY: Final = "superpi.request_id"
#: Where the gateway puts the span of a request.
SPAN_KEY: Final = "superpi.span"
_AGAIN: Final = ((b"retry-after", b"2"),)
#: Again, and over another connection: on this one the same server would answer.
_RETRY: Final = (*_AGAIN, (b"connection", b"close"))
#: The rest of a body that was not read is not the next request.
_CLOSE: Final = ((b"connection", b"close"),)
OK: Final = 200
_ALLOW: Final = ((b"allow", b"POST, DELETE"),)
#: Bodies above this are parsed in a thread, so that a large one does not hold up everybody else.
_PARSE_INLINE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Router:
    """The `/mcp` endpoint as an ASGI application."""

    engine: Callable[[], Engine]
    performer: Performer
    sessions: Sessions
    flight: Flight
    limits: HttpLimits
    closed: Callable[[], HttpRefusal | None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        caller: Caller = scope[CALLER_KEY]
        if caller.token is not None and scopes.mode(caller.scopes) is None:
            await http.send_refusal(send, Refused(HttpRefusal.SCOPE_MISSING))
            return
        match scope["method"]:
            case "POST":
                refused = await self._post(scope, receive, send)
            case "DELETE":
                refused = await self._delete(scope, send)
            case _:
                refused = Refused(HttpRefusal.METHOD_NOT_ALLOWED, headers=_ALLOW)
        if refused is not None:
            await http.send_refusal(send, refused)

    async def _delete(self, scope: Scope, send: Send) -> Refused | None:
        session = await self._session(scope)
        if isinstance(session, HttpRefusal):
            return Refused(session)
        await self.sessions.end(session)
        self.flight.cancel_all(session.id)
        await http.send_empty(send, 200)
        return None

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> Refused | None:
        form = accepted(http.only_header(scope, b"accept"))
        payload = await self._payload(scope, receive, form)
        if payload is None:
            return None
        if isinstance(payload, HttpRefusal):
            return Refused(payload, headers=_CLOSE)
        id = _request_id(payload)
        if (closed := self.closed()) is not None and _has_request(payload):
            return Refused(closed, id, _RETRY)
        if not _version_is_known(scope):
            return Refused(HttpRefusal.VERSION_UNKNOWN, id)
        if isinstance(payload, Single) and isinstance(payload.message, Malformed):
            refusal = payload.message.refusal
            body = Reply((Response(id, refusal),)).encode()
            await http.send_json(send, http_status(refusal.reason), body)
            return None
        try:
            if _is_initialize(payload):
                return await self._initialize(scope, send, form, payload)
            return await self._message(scope, send, form, payload, id)
        except StoreAway as error:
            # Nothing was sent and nothing ran: effects turn it into their outcome, and what they end with is sent.
            _log.warning("the store is unavailable: %s", error, extra={"request_id": scope[REQUEST_ID_KEY]})
            return Refused(HttpRefusal.UNAVAILABLE, id, _AGAIN)

    async def _message(
        self, scope: Scope, send: Send, form: Form, payload: Payload, id: RequestId | None
    ) -> Refused | None:
        session = await self._session(scope)
        if isinstance(session, HttpRefusal):
            return Refused(session, id)
        _tell(scope[SPAN_KEY], payload, session)
        step = self.engine().receive(payload, session.state)
        for fact in step.facts:
            if isinstance(fact, CancelRequested):
                self.flight.cancel(session.id, fact.request_id)
        return await self._run(scope, send, form, step, session, id)

    async def _payload(self, scope: Scope, receive: Receive, form: Form) -> Payload | HttpRefusal | None:
        if form is Form.NONE:
            return HttpRefusal.NOT_ACCEPTABLE
        body = await http.read_json_body(scope, receive, most=self.limits.body_bytes, seconds=self.limits.body_seconds)
        if not isinstance(body, bytes):
            return body
        return parse(body) if len(body) <= _PARSE_INLINE_BYTES else await asyncio.to_thread(parse, body)

    async def _initialize(self, scope: Scope, send: Send, form: Form, payload: Payload) -> Refused | None:
        harness = _harness(scope)
        if harness is None or (harness and self.performer.harnesses.get(harness) is None):
            return Refused(HttpRefusal.HARNESS_UNKNOWN, _request_id(payload))
        caller: Caller = scope[CALLER_KEY]
        step = self.engine().receive(payload, State(principal=caller.principal, harness=harness))
        opened = next((fact for fact in step.facts if isinstance(fact, Opened)), None)
        if opened is None:
            await self._answer(send, form, step)
            return None
        _log.debug("initialize asked for %r, agreed on %s", opened.requested[:64], opened.revision.value)
        session = await self.sessions.open(step.state)
        await self._answer(send, form, step, ((b"mcp-session-id", session.id.encode()),))
        return None

    async def _session(self, scope: Scope) -> Session | HttpRefusal:
        values = http.header_values(scope, b"mcp-session-id")
        if len(values) != 1 or not values[0]:
            return HttpRefusal.SESSION_MISSING
        caller: Caller = scope[CALLER_KEY]
        return await self.sessions.find(values[0], caller.principal) or HttpRefusal.SESSION_UNKNOWN

    async def _run(
        self, scope: Scope, send: Send, form: Form, step: Step, session: Session, id: RequestId | None
    ) -> Refused | None:
        streaming, ran = False, bool(step.effects)
        if ran:
            if not await self.performer.may_begin(step.effects):
                return Refused(HttpRefusal.UNAVAILABLE, id, _RETRY)
            connection = _connection(scope, session)
            settling = Settling(
                self.engine(), step, self.flight, session.id, lambda effect: self.performer.perform(effect, connection)
            )
            streaming = await self._wait(send, form, settling)
            step = settling.finish(owed=True)
        await self._save(session, step.state, ran=ran)
        if streaming and step.reply is not None:
            await http.send_event(send, step.reply.encode(), last=True)
        else:
            await self._answer(send, form, step)
        return None

    async def _save(self, session: Session, state: State, *, ran: bool) -> None:
        """Keep the state that a payload ended with. Where calls ran in it, failing to must not cost their answer.

        A 503 would have the client send a batch again whose calls have changed things already. What is lost is small:
        other replicas do not learn that the client said `notifications/initialized`, which nothing depends on.
        """
        try:
            await self.sessions.save(session, state)
        except StoreAway as error:
            if not ran:
                raise
            _log.warning("a session's state could not be kept: %s", error)

    async def _wait(self, send: Send, form: Form, settling: Settling) -> bool:
        """Wait for the effects, however long; whether the answer became a stream meanwhile."""
        streaming = False
        patience = self.limits.stream_after
        while not await settling.wait(patience):
            patience = self.limits.keep_alive
            if Form.EVENTS in form:
                if not streaming:
                    await http.start_events(send)
                    streaming = True
                await http.send_keep_alive(send)
        return streaming

    async def _answer(self, send: Send, form: Form, step: Step, extra: http.Headers = ()) -> None:
        reply = step.reply
        if reply is None:
            await http.send_empty(send, 202)
            return
        status = 200 if reply.refusal is None else http_status(reply.refusal.reason)
        if status == HttpRefusal.UNAVAILABLE.status:
            extra = (*extra, *_AGAIN)
        if Form.JSON in form or status != OK:
            await http.send_json(send, status, reply.encode(), extra)
        else:
            await http.start_events(send, extra)
            await http.send_event(send, reply.encode(), last=True)


def _connection(scope: Scope, session: Session) -> Connection:
    client = scope.get("client")
    return Connection(
        scope[CALLER_KEY],
        session.state,
        session.id,
        scope[REQUEST_ID_KEY],
        client[0] if client else None,
        scope[SPAN_KEY].trace_id,
    )


def _tell(span: Span, payload: Payload, session: Session) -> None:
    """Say on the span what was asked for: methods that exist, never a caller's own words."""
    if isinstance(payload, Single) and isinstance(payload.message, Request) and payload.message.method in METHODS:
        span.set(Attribute.MCP_METHOD, payload.message.method)
    span.set(Attribute.MCP_SESSION, session_label(session.id))
    if session.state.revision is not None:
        span.set(Attribute.MCP_REVISION, session.state.revision.value)


def _request_id(payload: Payload) -> RequestId | None:
    """The id of the one request that a payload is, for refusals that answer it."""
    match payload:
        case Single(Request(id=id) | Malformed(id=id)):
            return id
        case _:
            return None


def _has_request(payload: Payload) -> bool:
    messages = payload.messages if isinstance(payload, Batch) else (payload.message,)
    return any(isinstance(message, Request) for message in messages)


def _is_initialize(payload: Payload) -> bool:
    return (
        isinstance(payload, Single) and isinstance(payload.message, Request) and payload.message.method == "initialize"
    )


def _version_is_known(scope: Scope) -> bool:
    """Whether `MCP-Protocol-Version` is absent or names one revision that the server speaks (HL-15, HL-16)."""
    values = http.header_values(scope, b"mcp-protocol-version")
    return not values or (len(values) == 1 and revisions.by_name(values[0]) is not None)


def _harness(scope: Scope) -> str | None:
    """The harness that the query asks for, empty for none; None when it does not name exactly one."""
    values = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).get("harness")
    if values is None:
        return ""
    return values[0] if len(values) == 1 and values[0] else None
