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
from auth.permissions import Cap, Deny, Layer, Mode, Need, Policy, Rule, decide_tool
from auth.ports import StoreAway
from mcp.conversations import ConversationStore
from mcp.faults import Fault
from mcp.harness.definition import Harness
from mcp.harness.registry import Registry
from mcp.limits import Limits
from mcp.prompts import complete_prompt_argument, render_prompt
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.effects import (
    Away,
    Broken,
    CallTool,
    Complete,
    Completion,
    Effect,
    GetPrompt,
    ListResources,
    NotFound,
    Prompt,
    ReadResource,
    ResourcePage,
    Value,
)
from mcp.protocol.state import State
from mcp.recording import Circumstances, Recorder
from mcp.resources import (
    TRANSCRIPT_TEMPLATE,
    Sources,
    complete_conversation,
    list_conversations,
    read_resource,
)
from mcp.tools.base import Tool, ToolContext
from mcp.tools.refusal import refusal_of, refusal_result
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import Shell

_log: Final = logging.getLogger("superpi.calls")


@dataclass(frozen=True, slots=True)
class Connection:
    """Who calls and on what: the caller, the connection's state, its session where it has one, and the request."""

    caller: Caller
    state: State
    session: str | None = None
    request_id: str = ""
    address: str | None = None
    trace_id: str | None = None


def _removed(id: str) -> Harness:
    """What stands for a harness that a stored session names and the team has removed: it may do nothing.

    The default could allow what the removed one denied.
    """
    return Harness(id, id, "This harness was removed.", frozenset(), Mode.READ_ONLY, "", "")


def _away(effect: Effect, error: StoreAway) -> Value:
    """What an effect comes to that found the store away.

    Everything but a tool call only reads the store, so it may be repeated as it is: the client is told so, over HTTP
    by a 503, which many repeat by themselves. A tool call may have changed files before it needed the store. No
    client must repeat it blindly, so the model is told instead, which can look.
    """
    _log.warning("the store is unavailable: %s", error, extra={"effect": type(effect).__name__})
    if isinstance(effect, CallTool):
        text = (
            f"The server lost its database while {effect.name} ran, so it is not known how much of it was done. "
            "See what is there before you try again."
        )
        return ToolResult((Text(text),), is_error=True)
    return Away()


@dataclass(frozen=True, slots=True)
class Performer:
    """Everything that effects need.

    Callers over HTTP are capped: those with a token by `remote_mode` and their scopes, those without by
    `anonymous_mode`. Over stdio the caller is the machine's own user. `rules` bind every harness.
    """

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
    rules: tuple[Rule, ...] = ()

    async def perform(self, effect: Effect, connection: Connection) -> Value:
        """Perform one effect. Never raises but for cancellation."""
        try:
            return await self._perform(effect, connection)
        except StoreAway as error:
            return _away(effect, error)
        except Exception:  # noqa: BLE001 - one call's bug must not end the connection; it is logged and answered
            reference = secrets.token_hex(4)
            _log.exception("effect failed", extra={"reference": reference, "effect": type(effect).__name__})
            return Broken(reference)

    async def _perform(self, effect: Effect, connection: Connection) -> Value:
        match effect:
            case CallTool():
                return await self._call(effect, connection)
            case ReadResource(uri=uri):
                found = await read_resource(uri, self._sources(connection))
                return (
                    NotFound("There is no such resource here; resources/list names yours.") if found is None else found
                )
            case ListResources():
                return await self._list(effect, connection)
            case GetPrompt(name=name, arguments=arguments):
                rendered = render_prompt(self.harnesses, name, arguments)
                return NotFound(rendered.message) if isinstance(rendered, Fault) else Prompt(*rendered)
            case Complete():
                return await self._complete(effect, connection)
            case _:
                assert_never(effect)

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

    async def _call(self, effect: CallTool, connection: Connection) -> ToolResult:
        """Decide, run and record one call."""
        policy = self.policy(connection)
        caller = connection.caller
        around = Circumstances(
            caller.principal, caller.token, connection.request_id, connection.address, connection.trace_id
        )
        # Only the HTTP side waits for room in the trail before such a call.
        changes = caller.transport is Transport.HTTP and self._changes(effect)
        began = time.monotonic()
        decision = decide_tool(policy, effect.name, self.tools[effect.name].need)
        if isinstance(decision, Deny):
            self.recorder.refused(effect, around, decision, 0.0, changes=changes)
            return refusal_result(effect.name, decision)
        result: ToolResult | None = None
        try:
            result = await self._run(effect, policy, caller.principal)
            return result
        finally:
            seconds = time.monotonic() - began
            if result is not None and (deny := refusal_of(result, policy)) is not None:
                self.recorder.refused(effect, around, deny, seconds, changes=changes)
            else:
                self.recorder.ended(effect, around, result, seconds, changes=changes)

    async def _run(self, effect: CallTool, policy: Policy, principal: str) -> ToolResult:
        tool = self.tools[effect.name]
        context = ToolContext(self._reach(policy), policy, self.limits, self.shell, principal)
        if tool.need is Need.EXECUTE:
            return await tool.run(context, effect.arguments)
        try:
            async with asyncio.timeout(self.limits.tool_seconds):
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
        values: tuple[str, ...] | None = None
        if effect.kind == "prompt":
            values = complete_prompt_argument(
                self.harnesses, effect.name, effect.argument, effect.value, effect.context
            )
        elif (effect.name, effect.argument) == (TRANSCRIPT_TEMPLATE, "id"):
            values = await complete_conversation(self.conversations, connection.caller.principal, effect.value)
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
