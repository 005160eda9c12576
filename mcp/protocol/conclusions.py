"""What the outcome of an effect makes of its request: a result, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

from mcp.protocol import encode, lists, results, rounds, telling
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.context import Context
from mcp.protocol.effects import (
    Asking,
    Away,
    Broken,
    CallTool,
    Cancelled,
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
    Prompt,
    ReadResource,
    ResourcePage,
    ScopeMissing,
    Subscribe,
    Value,
)
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.revisions import STATELESS
from mcp.protocol.wire import Request, Result

_MAX_COMPLETIONS: Final = 100


def conclude(effect: Effect, value: Value, request: Request, context: Context) -> Result | Refusal | None:
    """The result that an outcome makes of an effect; None when no response is owed any more.

    An outcome of the wrong kind is a fault of the server's own and answered as one.
    """
    match effect, value:
        case _, Cancelled() | Away() | Broken():
            return _unperformed(value)
        case ((ReadResource(uri=uri) | Subscribe(uri=uri)), NotFound(message)):
            return Refusal(Reason.RESOURCE_NOT_FOUND, message, {"uri": uri})
        case _, NotFound(message) | Declined(message):
            return Refusal(Reason.INVALID_PARAMS, message)
        case _, ScopeMissing(needed, message):
            return Refusal(Reason.SCOPE_MISSING, message, {"scope": needed})
        case _, CapabilityMissing(required):
            return _incapable(effect, required, context)
        case ((CallTool() | ReadResource() | GetPrompt()), InputRequired()) if context.revision in STATELESS:
            return _input_required(effect, value, request, context)
        case _:
            body = _body(effect, value, request, context)
            if body is None:
                return Refusal(Reason.INTERNAL_ERROR, "Internal error")
            return results.complete(request.method, body, context.offer, context.revision)


def _unperformed(value: Cancelled | Away | Broken) -> Refusal | None:
    """What is answered for an effect that came to nothing, whichever it was."""
    match value:
        case Cancelled(owed):
            return Refusal(Reason.REQUEST_CANCELLED, "The request was cancelled") if owed else None
        case Away():
            return Refusal(Reason.UNAVAILABLE, "The server's database is away. Nothing was changed: try again")
        case Broken(reference):
            return Refusal(Reason.INTERNAL_ERROR, f"Internal error; the server's log has it under {reference}")
        case _:
            assert_never(value)


def _body(effect: Effect, value: Value, request: Request, context: Context) -> Mapping[str, Any] | None:
    """The content of a result; None for an outcome of the wrong kind."""
    revision = context.revision
    match effect, value:
        case CallTool(), ToolResult():
            return encode.tool_result(value, revision)
        case ReadResource(), tuple():
            return {"contents": [encode.contents(item) for item in value]}
        case ListResources(), ResourcePage():
            return lists.resource_page(effect, value, context.offer, revision, context.pager)
        case GetPrompt(), Prompt(description, messages):
            encoded = [encode.prompt_message(message, revision) for message in messages]
            return {"description": description, "messages": encoded}
        case Complete(), Completion(values):
            return {"completion": _completion(values)}
        case Subscribe(), Done():
            return {}
        case Listen(), Done():
            return {"_meta": {telling.SUBSCRIPTION_KEY: request.id}}
        case _:
            return None


def _input_required(effect: Asking, value: InputRequired, request: Request, context: Context) -> Result:
    """The result that asks; the answers so far travel with the question (MRTR-3, MRTR-4)."""
    token = rounds.state_token(
        request,
        context.state,
        context.keys,
        answers=effect.answers,
        asked=tuple(value.questions),
        until=value.until,
    )
    asked = {key: encode.question(question, context.revision) for key, question in value.questions.items()}
    return results.interim({"inputRequests": asked, "requestState": token}, context.offer, context.revision)


def _incapable(effect: Effect, required: Mapping[str, Any], context: Context) -> Result | Refusal:
    """Where a revision has no code for it, a tool's caller reads it in the result."""
    words = f"this needs a client that declares {', '.join(required)}"
    if isinstance(effect, CallTool) and context.revision not in STATELESS:
        return encode.tool_result(ToolResult((Text(f"{effect.name}: {words}."),), is_error=True), context.revision)
    return Refusal(Reason.CAPABILITY_MISSING, f"Missing capability: {words}", {"requiredCapabilities": required})


def _completion(values: tuple[str, ...]) -> dict[str, Any]:
    return {
        "values": values[:_MAX_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > _MAX_COMPLETIONS,
    }
