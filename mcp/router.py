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
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from auth import scopes
from auth.caller import Caller
from auth.challenges import Challenges
from auth.changes import Change
from auth.ports import StoreAway
from mcp import http, posted, rates
from mcp.accept import Form, accepted
from mcp.announcing import Announcer
from mcp.answering import AGAIN, Answering
from mcp.calls import Connection
from mcp.flight import Flight, withdrawal
from mcp.http import Headers, Receive, Refused, Scope, Send
from mcp.limits import HttpLimits
from mcp.live import Sessions
from mcp.meter import Meter
from mcp.offering import Offering
from mcp.pending import Credential, Pending
from mcp.posted import Posted
from mcp.protocol import stateless, traces
from mcp.protocol.arrival import Arrival
from mcp.protocol.effects import Answered, CallRejected, CancelRequested, Effect, Listen, Opened, Value
from mcp.protocol.engine import Step
from mcp.protocol.errors import HttpRefusal, Reason, Refusal
from mcp.protocol.methods import METHODS
from mcp.protocol.state import State
from mcp.protocol.wire import Malformed, Payload, Reply, Request, RequestId, Response, Single, parse
from mcp.rates import Budget, Exceeded
from mcp.sessions import Session
from mcp.settling import Settling
from mcp.speaking import Line, Speaker
from telemetry.tracing import Attribute, Span, cached_session_label

_log: Final = logging.getLogger("superpi.router")

#: Where the gateway puts the `Caller` of a request.
CALLER_KEY: Final = "superpi.caller"
#: Where the gateway puts the id of a request.
REQUEST_ID_KEY: Final = "superpi.request_id"
#: Where the gateway puts the span of a request.
SPAN_KEY: Final = "superpi.span"
#: Again, and over another connection: on this one the same server would answer.
_RETRY: Final = (*AGAIN, (b"connection", b"close"))
#: Where the bound of a body comes from.
_BODY_BYTES: Final = "SUPERPI_HTTP__BODY_BYTES"
#: What calls without a session are in flight under; nobody can name it.
_STATELESS: Final = ""
_ALLOW: Final = ((b"allow", b"POST, DELETE"),)
#: Bodies above this are parsed in a thread, so that a large one does not hold up everybody else.
_PARSE_INLINE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Router:
    """The `/mcp` endpoint as an ASGI application.

    `again` gives whom the values of Authorization let in by now, None when nobody; `announce` tells other processes
    of a change, where there may be any. Both may raise StoreAway. `meter` counts what callers ask for,
    `runs` are the tools that start commands.
    """

    offering: Offering
    sessions: Sessions
    flight: Flight
    pending: Pending
    limits: HttpLimits
    closed: Callable[[], HttpRefusal | None]
    announcer: Announcer | None = None
    challenges: Challenges | None = None
    again: Callable[[Sequence[str]], Awaitable[Caller | None]] | None = None
    announce: Callable[[Change], Awaitable[None]] | None = None
    meter: Meter | None = None
    runs: frozenset[str] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        caller: Caller = scope[CALLER_KEY]
        if caller.token is not None and scopes.mode(caller.scopes) is None:
            await self._shut_out(scope, send)
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

    async def _shut_out(self, scope: Scope, send: Send) -> None:
        caller: Caller = scope[CALLER_KEY]
        around = _connection(scope, State(caller.principal), None).circumstances()
        recorder = self.offering.current.performer.recorder
        recorder.shut_out(f"{scope['method']} /mcp", around, HttpRefusal.SCOPE_MISSING.name.lower())
        headers = self._challenge(scopes.Scope.READ) if caller.issued else ()
        await http.send_refusal(send, Refused(HttpRefusal.SCOPE_MISSING, headers=headers))

    async def _delete(self, scope: Scope, send: Send) -> Refused | None:
        if (over := self._over(scope, rates.CHEAP)) is not None:
            return over.refused()
        if not posted.names_known_version(posted.versions(scope)):
            return Refused(HttpRefusal.VERSION_UNKNOWN)
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
        if isinstance(payload, Refused):
            return payload
        if (parent := traces.parent(payload)) is not None:
            scope[SPAN_KEY] = scope[SPAN_KEY].within(parent)
        id = posted.request_id(payload)
        if (over := self._over(scope, rates.costs(payload, self.runs))) is not None:
            return over.refused(id)
        if (closed := self.closed()) is not None and posted.has_request(payload):
            return Refused(closed, id, _RETRY)
        if isinstance(payload, Single) and isinstance(payload.message, Malformed):
            await _refuse_body(send, Response(id, payload.message.refusal))
            return None
        request = Posted(scope, receive, send, form, payload, id, self.offering.current)
        try:
            return await self._take(request)
        except StoreAway as error:
            # Nothing was sent and nothing ran: effects turn it into their outcome, and what they end with is sent.
            _log.warning("the store is unavailable: %s", error, extra={"request_id": scope[REQUEST_ID_KEY]})
            return Refused(HttpRefusal.UNAVAILABLE, id, AGAIN)

    def _over(self, scope: Scope, costs: Mapping[Budget, int]) -> Exceeded | None:
        """The budget of the caller that has no room for such a request, if so; that is on record."""
        caller: Caller = scope[CALLER_KEY]
        if self.meter is None or (over := self.meter.take(caller.principal, costs)) is None:
            return None
        around = _connection(scope, State(caller.principal), None).circumstances()
        self.offering.current.performer.recorder.limited(f"{scope['method']} /mcp", around, over)
        return over

    async def _take(self, request: Posted) -> Refused | None:
        """By era: what a body claims first, then what its headers say."""
        versions = posted.versions(request.scope)
        if stateless.is_stateless(request.payload, versions, has_session=request.has_session):
            return await self._stateless(request)
        if not posted.names_known_version(versions):
            return Refused(HttpRefusal.VERSION_UNKNOWN, request.id)
        if posted.is_initialize(request.payload):
            return await self._initialize(request)
        session = await self._session(request.scope)
        if session is HttpRefusal.SESSION_MISSING and (fault := posted.array_fault(request.payload)) is not None:
            await _refuse_body(request.send, Response(None, fault))
            return None
        if isinstance(session, HttpRefusal):
            return Refused(session, request.id)
        _tell(request, session.state, session.id)
        step = request.offered.engine.receive(request.payload, session.state)
        for fact in step.facts:
            match fact:
                case CancelRequested(request_id):
                    await self._withdraw(session, request_id)
                case Answered(id, body):
                    await self.pending.answer(session.id, session.principal, id, body)
                case Opened() | CallRejected():
                    # Opened within a session that is open already: its state is replaced like any other.
                    pass
        return await self._run(request, step, session)

    async def _withdraw(self, session: Session, id: RequestId) -> None:
        """Cancel a call, which may run in another process. What cannot be told is lost, as a late word would be."""
        if self.flight.cancel(session.id, id) or self.announce is None:
            return
        if (change := withdrawal(session.id, id)) is None:
            return
        try:
            await self.announce(change)
        except StoreAway as error:
            _log.warning("other servers were not told that a call was withdrawn: %s", error)

    async def _stateless(self, request: Posted) -> Refused | None:
        """Answer a request by nothing but itself and who sent it (MOD-4); a session that it names is not looked at."""
        state = _fresh(request)
        if isinstance(state, Refused):
            return state
        arrival = Arrival(time.time(), posted.mirror(request.scope))
        step = request.offered.engine.receive(request.payload, state, arrival, modern=True)
        if any(isinstance(effect, Listen) for effect in step.effects) and Form.EVENTS not in request.form:
            return Refused(HttpRefusal.EVENTS_NEEDED, request.id)
        own = step.slots[0].state if step.slots else None
        _tell(request, own or state, None)
        return await self._run(request, step, None)

    async def _payload(self, scope: Scope, receive: Receive, form: Form) -> Payload | Refused | None:
        if form is Form.NONE:
            return Refused(HttpRefusal.NOT_ACCEPTABLE, headers=http.CLOSE)
        bounds = http.BodyBounds(self.limits.body_bytes, self.limits.body_seconds, _BODY_BYTES)
        body = await http.read_json_body(scope, receive, bounds)
        if not isinstance(body, bytes):
            return body
        return parse(body) if len(body) <= _PARSE_INLINE_BYTES else await asyncio.to_thread(parse, body)

    async def _initialize(self, request: Posted) -> Refused | None:
        state = _fresh(request)
        if isinstance(state, Refused):
            return state
        step = request.offered.engine.receive(request.payload, state)
        opened = next((fact for fact in step.facts if isinstance(fact, Opened)), None)
        answering = self._answering(request, None)
        if opened is None:
            await answering.finish(step)
            return None
        _log.debug("initialize asked for %r, agreed on %s", opened.requested[:64], opened.revision.value)
        session = await self.sessions.open(step.state)
        await answering.finish(step, ((b"mcp-session-id", session.id.encode()),))
        return None

    async def _session(self, scope: Scope) -> Session | HttpRefusal:
        values = http.header_values(scope, b"mcp-session-id")
        if len(values) != 1 or not values[0]:
            return HttpRefusal.SESSION_MISSING
        caller: Caller = scope[CALLER_KEY]
        return await self.sessions.find(values[0], caller.principal) or HttpRefusal.SESSION_UNKNOWN

    async def _run(self, request: Posted, step: Step, session: Session | None) -> Refused | None:
        for fact in step.facts:
            if isinstance(fact, CallRejected):
                connection = _connection(request.scope, step.state, session)
                request.offered.performer.recorder.rejected(fact, connection.circumstances())
        answering = self._answering(request, session)
        ran = bool(step.effects)
        if ran:
            if not await request.offered.performer.may_begin(step.effects):
                return Refused(HttpRefusal.UNAVAILABLE, request.id, _RETRY)
            settling = self._started(request, step, session, can_stream=answering.can_stream)
            if not await answering.settle(settling, request.receive if session is None else None):
                return None
            step = settling.finish(owed=True)
        if session is not None:
            await self._save(session, step.state, ran=ran)
        await answering.finish(step, self._wanting(step.reply) if ran else ())
        return None

    def _challenge(self, needed: str) -> Headers:
        """What tells a client which scope to ask the issuer for (AU-11)."""
        if self.challenges is None:
            return ()
        return ((b"www-authenticate", self.challenges.insufficient(needed).encode()),)

    def _wanting(self, reply: Reply | None) -> Headers:
        """The same for a reply that is nothing but the refusal for want of a scope."""
        if reply is None or reply.batch:
            return ()
        match reply.responses[0].outcome:
            case Refusal(Reason.SCOPE_MISSING, _, {"scope": str(needed)}):
                return self._challenge(needed)
            case _:
                return ()

    def _started(self, request: Posted, step: Step, session: Session | None, *, can_stream: bool) -> Settling:
        """The effects of a step under way, each with a way to speak to the client."""
        engine, name = request.offered.engine, _STATELESS if session is None else session.id
        credential = self._credential(request.scope)
        settling = Settling(engine, step, self.flight, name, credential)
        line = Line(
            name,
            settling.say if can_stream else None,
            None if session is None else self.pending,
            self.limits.ask_seconds,
            credential,
        )

        def perform(effect: Effect) -> Coroutine[Any, Any, Value]:
            state = step.slots[effect.slot].state or step.state
            connection = _connection(request.scope, state, session)
            speaker = Speaker(engine, step, effect, line)
            return speaker.while_running(request.offered.performer.perform(effect, connection, speaker))

        settling.start(perform)
        return settling

    def _credential(self, scope: Scope) -> Credential | None:
        if self.again is None:
            return None
        return Credential(scope[CALLER_KEY], partial(self.again, http.header_values(scope, b"authorization")))

    def _answering(self, request: Posted, session: Session | None) -> Answering:
        opened = None
        if session is not None and self.announcer is not None:
            opened = partial(self.announcer.during, request.scope[CALLER_KEY], session.id)
        return Answering(request.send, request.form, self.limits, opened)

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


def _fresh(request: Posted) -> State | Refused:
    """The state of a connection that begins with this request, unless it asks for a harness that there is not."""
    harness, harnesses = posted.harness(request.scope), request.offered.performer.harnesses
    if harness is None:
        return Refused(HttpRefusal.HARNESS_NOT_ONE, request.id)
    if harness and harnesses.get(harness) is None:
        return Refused(HttpRefusal.HARNESS_UNKNOWN, request.id, more=f"There are {', '.join(harnesses.ids)}.")
    caller: Caller = request.scope[CALLER_KEY]
    return State(principal=caller.principal, harness=harness)


def _connection(scope: Scope, state: State, session: Session | None) -> Connection:
    client = scope.get("client")
    return Connection(
        scope[CALLER_KEY],
        state,
        None if session is None else session.id,
        scope[REQUEST_ID_KEY],
        client[0] if client else None,
        scope[SPAN_KEY].trace_id,
    )


def _tell(request: Posted, state: State, session: str | None) -> None:
    """Say on the span what was asked for: methods that exist, never a caller's own words."""
    span: Span = request.scope[SPAN_KEY]
    payload = request.payload
    if isinstance(payload, Single) and isinstance(payload.message, Request) and payload.message.method in METHODS:
        span.set(Attribute.MCP_METHOD, payload.message.method)
    if session is not None:
        span.set(Attribute.MCP_SESSION, cached_session_label(session))
    if state.revision is not None:
        span.set(Attribute.MCP_REVISION, state.revision.value)


async def _refuse_body(send: Send, response: Response) -> None:
    """Answer a body that is no message, whatever session it is for."""
    reply = Reply((response,))
    await http.send_json(send, reply.status, reply.encode())
