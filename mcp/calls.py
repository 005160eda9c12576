"""Performing effects: the one place where a decided call touches the world.

Every effect of every transport comes through `Performer.perform`. A tool runs only after the permission policy
said yes, under a time limit, with a context that holds nothing of the server's own. What fails unexpectedly is
logged under a reference and answered with that reference alone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from auth import scopes
from auth.caller import Caller, Transport
from auth.permissions import Cap, Deny, Layer, Mode, Need, Policy, Rule, decide_tool, granted_policy
from auth.ports import StoreAway
from auth.refusals import refusal_text
from mcp.catalogue import Catalogue
from mcp.consent import MOST_QUESTIONS, Consent, No, Where
from mcp.conversations import ConversationStore
from mcp.entries import Sources
from mcp.exchange import SILENT, AnswerUnfit, Exchange, InputNeeded, NotDeclared
from mcp.harness.definition import Harness
from mcp.harness.registry import Registry
from mcp.hub import Hub
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.effects import (
    Away,
    Broken,
    CallTool,
    CapabilityMissing,
    Complete,
    Completion,
    Declined,
    Done,
    Effect,
    GetPrompt,
    InputRequired,
    Listen,
    ListResources,
    NotFound,
    ReadResource,
    ResourcePage,
    ScopeMissing,
    Subscribe,
    Value,
)
from mcp.protocol.notes import Acknowledged, Filter
from mcp.protocol.state import State
from mcp.recording import Circumstances, Recorder
from mcp.resources import list_conversations
from mcp.subscriptions import Subscriptions
from mcp.ticking import ticking
from mcp.tools.base import Tool, ToolContext
from mcp.tools.refusal import ask_of, refusal_of, refusal_result
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import Shell
from telemetry import tracing
from telemetry.tracing import Attribute

_log: Final = logging.getLogger("superpi.calls")

#: How long a question stays open on a stateless revision, in seconds: nothing waits for its answer meanwhile.
_ROUND_SECONDS: Final = 900.0
#: As the semantic conventions of GenAI call it.
_OPERATION: Final = "execute_tool"
_NO_RESOURCE: Final = "There is no such resource here; resources/list names yours."


@dataclass(frozen=True, slots=True)
class Connection:
    """Who calls and on what: the caller, the connection's state, its session where it has one, and the request."""

    caller: Caller
    state: State
    session: str | None = None
    request_id: str = ""
    address: str | None = None
    trace_id: str | None = None

    def circumstances(self) -> Circumstances:
        """What surrounds its calls, for the record."""
        return Circumstances(self.caller.principal, self.caller.token, self.request_id, self.address, self.trace_id)


def _removed(id: str) -> Harness:
    """What stands for a harness that a stored session names and the team has removed: it may do nothing.

    The default could allow what the removed one denied.
    """
    return Harness(id, id, "This harness was removed.", frozenset(), Mode.READ_ONLY, "", "")


def _away(effect: CallTool, error: StoreAway, *, begun: bool) -> ToolResult:
    """What a tool call comes to that found the store away.

    One that had begun may have changed files before it needed the store, so no client must repeat it blindly: the
    model is told, which can look.
    """
    _log_away(effect, error)
    if begun:
        text = (
            f"The server lost its database while {effect.name} ran, so it is not known how much of it was done. "
            "See what is there before you try again."
        )
    else:
        text = f"The server's database is away, so {effect.name} was not run. Nothing was changed: try again later."
    return ToolResult((Text(text),), is_error=True)


def _log_away(effect: Effect, error: StoreAway) -> None:
    _log.warning("the store is unavailable: %s", error, extra={"effect": type(effect).__name__})


@dataclass(slots=True)
class Telling:
    """What a call has with its client: the exchange, how a person allowed it, and whether it waits for an answer.

    `begun` is whether its tool may have changed something.
    """

    exchange: Exchange
    consent: str | None = None
    waits: bool = False
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Performer:
    """Everything that effects need.

    Callers over HTTP are capped: those with a token by `remote_mode` and their scopes, those without by
    `anonymous_mode`. Over stdio the caller is the machine's own user. `rules` bind every harness.
    """

    catalogue: Catalogue
    tools: Mapping[str, Tool]
    harnesses: Registry
    default_harness: Harness
    workspace: Workspace
    shell: Shell
    limits: Limits
    conversations: ConversationStore
    remote_mode: Mode
    anonymous_mode: Mode
    recorder: Recorder
    consent: Consent
    hub: Hub
    subscriptions: Subscriptions
    rules: tuple[Rule, ...] = ()

    async def perform(self, effect: Effect, connection: Connection, exchange: Exchange = SILENT) -> Value:
        """Perform one effect, which may speak to its client through the exchange. Never raises but for cancellation."""
        if not isinstance(effect, CallTool):
            return await self._guarded(effect, connection, exchange)
        with tracing.Part(f"{_OPERATION} {effect.name}") as span:
            span.set(Attribute.OPERATION, _OPERATION)
            span.set(Attribute.TOOL, effect.name)
            return await self._guarded(effect, connection, exchange)

    async def _guarded(self, effect: Effect, connection: Connection, exchange: Exchange) -> Value:
        try:
            return await self._perform(effect, connection, exchange)
        except InputNeeded as needed:
            return InputRequired(needed.questions, time.time() + _ROUND_SECONDS)
        except AnswerUnfit as unfit:
            return Declined(unfit.message)
        except NotDeclared as missing:
            return CapabilityMissing(missing.required)
        except StoreAway as error:
            # Everything but a tool call only reads the store, so the client may repeat it, and many do by themselves.
            _log_away(effect, error)
            return Away()
        except Exception:  # noqa: BLE001 - one call's bug must not end the connection; it is logged and answered
            reference = secrets.token_hex(4)
            _log.exception("effect failed", extra={"reference": reference, "effect": type(effect).__name__})
            return Broken(reference)

    async def _perform(self, effect: Effect, connection: Connection, exchange: Exchange) -> Value:
        match effect:
            case CallTool():
                return await self._call(effect, connection, exchange)
            case ReadResource(uri=uri):
                found = await self.catalogue.read(uri, self._sources(connection))
                return NotFound(_NO_RESOURCE) if found is None else found
            case ListResources():
                return await self._list(effect, connection)
            case GetPrompt(name=name, arguments=arguments):
                return await self.catalogue.render(name, arguments, exchange)
            case Complete():
                return await self._complete(effect, connection)
            case Subscribe():
                return await self._subscribe(effect, connection)
            case Listen(filter=filter):
                return await self._listen(filter, connection, exchange)
            case _:
                assert_never(effect)

    async def _subscribe(self, effect: Subscribe, connection: Connection) -> Done | NotFound | Declined:
        """Only what the caller may read can be subscribed to; to end it, nothing need be there any more (SUB-10)."""
        if connection.session is None:
            return NotFound("Nothing can be subscribed to on this connection.")
        if not effect.on:
            await self.subscriptions.unsubscribe(connection.session, effect.uri)
            return Done()
        if not await self._may_read(effect.uri, connection):
            return NotFound(_NO_RESOURCE)
        fault = await self.subscriptions.subscribe(connection.session, effect.uri)
        return Done() if fault is None else Declined(fault.message)

    async def _listen(self, filter: Filter, connection: Connection, exchange: Exchange) -> Done:
        """Tell the client of changes until it leaves, its credential is in doubt, or the process stops."""
        readable = [uri for uri in sorted(filter.uris) if await self._may_read(uri, connection)]
        honoured = replace(filter, uris=frozenset(readable))
        with self.hub.listen(connection.caller, honoured, until=connection.caller.until) as listening:
            await exchange.tell(Acknowledged(honoured))
            async for changed in listening:
                await exchange.tell(changed)
        return Done()

    async def _may_read(self, uri: str, connection: Connection) -> bool:
        """Whether the caller may read the resource, and so hear that it changed."""
        return await self.catalogue.exists(uri, self._sources(connection))

    def policy(self, connection: Connection) -> Policy:
        """The permission policy of a connection's direct calls."""
        return self.harness(connection).policy(self._caps(connection.caller), self.rules)

    def _caps(self, caller: Caller) -> tuple[Cap, ...]:
        if caller.transport is Transport.STDIO:
            return ()
        if caller.token is None:
            return (Cap(Layer.REMOTE, self.anonymous_mode),)
        # The router lets nobody in whose token has no mcp scope.
        scope = scopes.cap(caller.scopes) or Cap(Layer.SCOPE, Mode.READ_ONLY)
        return (Cap(Layer.REMOTE, self.remote_mode), scope)

    def harness(self, connection: Connection) -> Harness:
        """The harness of a connection: its session's, else the configured one."""
        if not connection.state.harness:
            return self.default_harness
        return self.harnesses.get(connection.state.harness) or _removed(connection.state.harness)

    async def may_begin(self, effects: Sequence[Effect]) -> bool:
        """Whether these may be performed now: those that change things wait for room in the audit trail first."""
        if not any(isinstance(effect, CallTool) and self._changes(effect) for effect in effects):
            return True
        return await self.recorder.trail.room()

    def _changes(self, effect: CallTool) -> bool:
        return self.tools[effect.name].need is not Need.READ

    async def _call(self, effect: CallTool, connection: Connection, exchange: Exchange) -> ToolResult | ScopeMissing:
        """Decide, run and record one call."""
        policy = self.policy(connection)
        caller = connection.caller
        around = connection.circumstances()
        # Only the HTTP side waits for room in the trail before such a call.
        changes = caller.transport is Transport.HTTP and self._changes(effect)
        began = time.monotonic()
        decision = decide_tool(policy, effect.name, self.tools[effect.name].need)
        if isinstance(decision, Deny):
            self.recorder.refused(effect, around, decision, 0.0, changes=changes)
            return self._step_up(effect, connection, decision) or refusal_result(effect.name, decision)
        result: ToolResult | None = None
        told = Telling(exchange)
        try:
            result = await self._consented(effect, policy, connection, told)
        except (InputNeeded, AnswerUnfit):
            told.waits = True
            raise
        except StoreAway as error:
            result = _away(effect, error, begun=told.begun)
        finally:
            seconds = time.monotonic() - began
            if result is not None and (deny := refusal_of(result, policy)) is not None:
                self.recorder.refused(effect, around, deny, seconds, changes=changes)
            elif not told.waits:
                self.recorder.ended(effect, around, result, seconds, changes=changes, consent=told.consent)
        return result

    def _step_up(self, effect: CallTool, connection: Connection, deny: Deny) -> ScopeMissing | None:
        """The lowest scope that alone would allow what was denied, where the caller can get a token with it."""
        if not connection.caller.issued:
            return None
        for scope in scopes.MODES:
            better = replace(connection, caller=replace(connection.caller, scopes=frozenset({scope})))
            if not isinstance(decide_tool(self.policy(better), effect.name, self.tools[effect.name].need), Deny):
                return ScopeMissing(scope.value, refusal_text(effect.name, deny))
        return None

    async def _consented(self, effect: CallTool, policy: Policy, connection: Connection, told: Telling) -> ToolResult:
        """Run a call; where it comes to something that a person has to allow, ask, and run it again after a yes.

        A tool finds that out before it changes anything, and a yes covers just what was asked for.
        """
        where = Where(connection.caller, connection.session, self.harness(connection).id)
        for _ in range(MOST_QUESTIONS):
            told.begun = True
            result = await self._run(effect, policy, connection.caller.principal, told.exchange)
            ask = ask_of(result)
            if ask is None:
                return result
            told.begun = False
            given = await self.consent.given(effect.name, ask, where, told.exchange)
            if isinstance(given, No):
                return refusal_result(effect.name, ask, given.why)
            told.consent = given.how
            policy = granted_policy(policy, effect.name, ask.subject)
        return result

    async def _run(self, effect: CallTool, policy: Policy, principal: str, exchange: Exchange) -> ToolResult:
        tool = self.tools[effect.name]
        context = ToolContext(self._reach(policy), policy, self.limits, self.shell, principal, exchange)
        if tool.need is Need.EXECUTE:
            async with ticking(exchange):
                return await tool.run(context, effect.arguments)
        try:
            async with asyncio.timeout(self.limits.tool_seconds), ticking(exchange):
                return await tool.run(context, effect.arguments)
        except TimeoutError:
            text = f"{effect.name} was stopped after {self.limits.tool_seconds:g} s. Ask for less at once."
            return ToolResult((Text(text),), is_error=True)

    def _reach(self, policy: Policy) -> Workspace:
        """The workspace as far as the mode reaches: its extra roots belong to `full`."""
        if policy.mode is Mode.FULL or not self.workspace.extra:
            return self.workspace
        return replace(self.workspace, extra=())

    async def _list(self, effect: ListResources, connection: Connection) -> ResourcePage | NotFound:
        page = await list_conversations(
            self.conversations,
            connection.caller.principal,
            session=connection.session,
            after=effect.after,
            limit=effect.limit,
        )
        return page or NotFound("The list cannot go on from there; begin it anew without a cursor.")

    async def _complete(self, effect: Complete, connection: Connection) -> Completion | NotFound:
        values = await self.catalogue.complete(effect, self._sources(connection))
        if values is None:
            return NotFound(f"Nothing is known of the argument {effect.argument[:100]!r} of {effect.name[:100]!r}.")
        return Completion(values)

    def _sources(self, connection: Connection) -> Sources:
        policy = self.policy(connection)
        return Sources(
            self._reach(policy),
            self.workspace.root.name,
            policy,
            tuple(self.tools.values()),
            self.shell,
            self.limits,
            self.conversations,
            connection.caller.principal,
        )
