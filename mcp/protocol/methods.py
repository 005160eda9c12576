"""What each method does: a table from method name to the revisions that know it and the function that begins it.

Beginning a request gives a result, a refusal, or the effect whose outcome `conclusions` turns into one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from mcp.protocol import codec, encode, lists, results, telling
from mcp.protocol.arrival import params_fault
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.context import Context
from mcp.protocol.effects import (
    CallRejected,
    CallTool,
    CancelRequested,
    Complete,
    Effect,
    Fact,
    GetPrompt,
    Listen,
    Opened,
    ReadResource,
    Subscribe,
)
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.notes import Filter
from mcp.protocol.offer import Offer, Rejected
from mcp.protocol.revisions import EVERY, HANDSHAKE, STATELESS, Revision, negotiate, supported_versions
from mcp.protocol.state import LogLevel, State, level_of
from mcp.protocol.wire import Notification, Request, Result, SpoiledRequest, is_request_id

#: How much of what a client says of itself is kept with its session, in bytes of JSON.
MAX_CLIENT_BYTES: Final = 16_384
#: Resources that one subscription may name.
MAX_SUBSCRIPTIONS: Final = 100
_MAX_COMPLETIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Handled:
    """What a message came to: an outcome if one is owed, the next state if it changed, and facts."""

    outcome: Result | Refusal | Effect | None = None
    state: State | None = None
    facts: tuple[Fact, ...] = ()


Begin = Callable[[Request, Context, int], "Handled"]


@dataclass(frozen=True, slots=True)
class Method:
    """One row: the revisions that know the method, and how it begins. `early` works before `initialize`.

    A method whose feature is not `offered` is not there (MOD-9, MOD-13).
    """

    begin: Begin
    revisions: tuple[Revision, ...] = EVERY
    early: bool = False
    offered: Callable[[Offer], bool] = lambda _offer: True


def begin(request: Request, context: Context, slot: int) -> Handled:
    """Begin a request; `slot` is the place of its response in the reply."""
    method = METHODS.get(request.method)
    if context.state.revision is None and not (method and method.early):
        return Handled(Refusal(Reason.INVALID_REQUEST, "Invalid request: send initialize first"))
    if method is None or context.revision not in method.revisions or not method.offered(context.offer):
        return Handled(Refusal(Reason.METHOD_NOT_FOUND, f"Method not found: {_quote(request.method)}"))
    handled = method.begin(request, context, slot)
    outcome = handled.outcome
    if isinstance(outcome, dict):
        complete = results.complete(request.method, outcome, context.offer, context.revision)
        return Handled(complete, handled.state, handled.facts)
    return handled


def note(notification: Notification, context: Context) -> Handled:
    """Take a notification. Unknown, early and malformed ones are ignored (RPC-9, CAN-3)."""
    state = context.state
    match notification.method:
        case "notifications/initialized" if state.revision is not None and not state.initialized:
            return Handled(state=replace(state, initialized=True))
        case "notifications/cancelled" if is_request_id(notification.params.get("requestId")):
            return Handled(facts=(CancelRequested(notification.params["requestId"]),))
        case _:
            return Handled()


def _initialize(request: Request, context: Context, _slot: int) -> Handled:
    params = request.params
    requested = params.get("protocolVersion")
    client, capabilities = params.get("clientInfo", {}), params.get("capabilities", {})
    if not isinstance(requested, str):
        return _invalid('initialize needs a "protocolVersion" string')
    if not isinstance(client, dict) or not isinstance(capabilities, dict):
        return _invalid('"clientInfo" and "capabilities" are objects')
    if len(codec.encode([client, capabilities])) > MAX_CLIENT_BYTES:
        return _invalid(f'"clientInfo" and "capabilities" are longer than {MAX_CLIENT_BYTES} bytes together')
    revision = negotiate(requested)
    result: dict[str, Any] = {
        "protocolVersion": revision.value,
        "capabilities": encode.capabilities(context.offer, revision),
        "serverInfo": encode.server_info(context.offer.server, revision),
    }
    if context.offer.instructions:
        result["instructions"] = context.offer.instructions
    state = replace(context.state, revision=revision, client=client, capabilities=capabilities, initialized=False)
    return Handled(result, state, (Opened(requested, revision),))


def _discover(_request: Request, context: Context, _slot: int) -> Handled:
    result: dict[str, Any] = {
        "supportedVersions": list(supported_versions()),
        "capabilities": encode.capabilities(context.offer, context.revision),
    }
    if context.offer.instructions:
        result["instructions"] = context.offer.instructions
    return Handled(result)


def _set_level(request: Request, context: Context, _slot: int) -> Handled:
    level = level_of(request.params.get("level"))
    if level is None:
        return _invalid(f'"level" is one of {", ".join(LogLevel)}')
    return Handled({}, replace(context.state, log_level=level))


def _listen(request: Request, context: Context, slot: int) -> Handled:
    wanted, told = telling.filter_of(request), context.offer.announced
    if wanted is None:
        return _invalid('subscriptions/listen needs the object "notifications" of flags and resourceSubscriptions')
    if len(wanted.uris) > MAX_SUBSCRIPTIONS:
        return _invalid(f"one subscription names at most {MAX_SUBSCRIPTIONS} resources")
    honoured = Filter(
        tools=wanted.tools and told.tools,
        prompts=wanted.prompts and told.prompts,
        resources=wanted.resources and told.resources,
        uris=wanted.uris if told.updates else frozenset(),
    )
    return Handled(Listen(slot, request.id, honoured))


def _subscribe(request: Request, _context: Context, slot: int) -> Handled:
    uri = request.params.get("uri")
    if not isinstance(uri, str):
        return _invalid(f'{request.method} needs a "uri" string')
    return Handled(Subscribe(slot, request.id, uri, on=request.method == "resources/subscribe"))


def _ping(_request: Request, _context: Context, _slot: int) -> Handled:
    return Handled({})


def _static_list(request: Request, context: Context, _slot: int) -> Handled:
    cursor = request.params.get("cursor")
    page = lists.page(request.method, context.offer, context.revision, context.page_size)
    if cursor is None and page is not None:
        return Handled(page)
    return Handled(lists.slice_of(request.method, cursor, context.offer, context.revision, context.pager))


def _resources_list(request: Request, context: Context, slot: int) -> Handled:
    return Handled(lists.resources(request, slot, context.offer, context.revision, context.pager))


def _tools_call(request: Request, context: Context, slot: int) -> Handled:
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str):
        return _invalid('tools/call needs a "name" string')
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return _invalid('"arguments" is an object')
    check = context.offer.checks.get(name)
    if check is None:
        unknown = _invalid(f"unknown tool {_quote(name)}; tools/list names those there are")
        return replace(unknown, facts=(CallRejected(slot, name, arguments, known=False),))
    if context.mirror is not None and (fault := params_fault(context.mirror, request, context.offer)) is not None:
        return Handled(Refusal(Reason.HEADER_MISMATCH, f"Header mismatch: {fault}"))
    verdict = Rejected(request.faults) if isinstance(request, SpoiledRequest) else check(arguments)
    if isinstance(verdict, Rejected):
        # A fault in the arguments is the model's to mend, so it goes where the model sees it (TL-13).
        text = f"The arguments of {name} are not valid:\n" + "\n".join(f"- {fault}" for fault in verdict.faults)
        result = encode.tool_result(ToolResult((Text(text),), is_error=True), context.revision)
        return Handled(result, facts=(CallRejected(slot, name, arguments, known=True),))
    return Handled(
        CallTool(slot, request.id, name, verdict.arguments, context.rounds.answers, context.rounds.volunteered)
    )


def _prompts_get(request: Request, context: Context, slot: int) -> Handled:
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(name, str):
        return _invalid('prompts/get needs a "name" string')
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        return _invalid('"arguments" is an object of strings')
    spec = next((prompt for prompt in context.offer.prompts if prompt.name == name), None)
    if spec is None:
        return _invalid(f"unknown prompt {_quote(name)}; prompts/list names those there are")
    missing = [argument.name for argument in spec.arguments if argument.required and argument.name not in arguments]
    if missing:
        return _invalid(f"the prompt {name} needs the argument {', '.join(missing)}")
    return Handled(GetPrompt(slot, request.id, name, arguments, context.rounds.answers, context.rounds.volunteered))


def _resources_read(request: Request, context: Context, slot: int) -> Handled:
    uri = request.params.get("uri")
    if not isinstance(uri, str):
        return _invalid('resources/read needs a "uri" string')
    return Handled(ReadResource(slot, request.id, uri, context.rounds.answers, context.rounds.volunteered))


#: `ref.type` -> (the kind of what is completed, the member that names it) (CP-3).
_REFERENCES: Final[Mapping[str, tuple[Literal["prompt", "resource"], str]]] = MappingProxyType(
    {"ref/prompt": ("prompt", "name"), "ref/resource": ("resource", "uri")}
)


def _complete(request: Request, context: Context, slot: int) -> Handled:
    reference, argument = request.params.get("ref"), request.params.get("argument")
    if not isinstance(reference, dict) or not isinstance(argument, dict):
        return _invalid('completion/complete needs the objects "ref" and "argument"')
    kind = _REFERENCES.get(str(reference.get("type")))
    if kind is None:
        return _invalid(f'"ref.type" is one of {", ".join(_REFERENCES)}')
    target, name, value = reference.get(kind[1]), argument.get("name"), argument.get("value")
    if not (isinstance(target, str) and isinstance(name, str) and isinstance(value, str)):
        return _invalid(f'"ref.{kind[1]}", "argument.name" and "argument.value" are strings')
    given = request.params.get("context")
    known = given.get("arguments") if isinstance(given, dict) else given
    if known is None:
        known = {}
    if not isinstance(known, dict) or not all(isinstance(item, str) for item in known.values()):
        return _invalid('"context.arguments" is an object of strings')
    if context.revision < Revision.R2025_06_18:
        known = {}
    return Handled(Complete(slot, request.id, kind[0], target, name, value, known))


def _tools(offer: Offer) -> bool:
    return bool(offer.tools)


def _prompts(offer: Offer) -> bool:
    return bool(offer.prompts)


def _resources(offer: Offer) -> bool:
    return bool(offer.resources or offer.templates)


METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "initialize": Method(_initialize, HANDSHAKE, early=True),
        "ping": Method(_ping, HANDSHAKE, early=True),
        "server/discover": Method(_discover, STATELESS),
        "tools/list": Method(_static_list, offered=_tools),
        "tools/call": Method(_tools_call, offered=_tools),
        "prompts/list": Method(_static_list, offered=_prompts),
        "prompts/get": Method(_prompts_get, offered=_prompts),
        "resources/list": Method(_resources_list, offered=_resources),
        "resources/read": Method(_resources_read, offered=_resources),
        "resources/templates/list": Method(_static_list, offered=_resources),
        "resources/subscribe": Method(_subscribe, HANDSHAKE, offered=lambda offer: offer.announced.updates),
        "resources/unsubscribe": Method(_subscribe, HANDSHAKE, offered=lambda offer: offer.announced.updates),
        "subscriptions/listen": Method(_listen, STATELESS, offered=lambda offer: bool(offer.announced)),
        "completion/complete": Method(_complete, offered=lambda offer: bool(offer.prompts or offer.templates)),
        "logging/setLevel": Method(_set_level, HANDSHAKE, offered=lambda offer: bool(offer.logging)),
    }
)


def _invalid(why: str) -> Handled:
    return Handled(Refusal(Reason.INVALID_PARAMS, f"Invalid params: {why}"))


def _quote(name: str) -> str:
    """A client's own word in a message to it, short and on one line."""
    return repr(name if len(name) <= 100 else name[:100] + "...")
