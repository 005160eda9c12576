"""Notes and questions to wire messages: what goes to a client before, or apart from, the reply. Pure."""

from __future__ import annotations

from typing import Any, Final, assert_never

from mcp.protocol import codec, encode
from mcp.protocol.notes import (
    Acknowledged,
    Filter,
    Log,
    Note,
    Progress,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
)
from mcp.protocol.questions import Question
from mcp.protocol.revisions import STATELESS
from mcp.protocol.state import LogLevel, State
from mcp.protocol.wire import Request, RequestId, is_request_id

#: The key that ties a notification to its subscription (SUB-5).
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
#: What is heard on a handshake connection that never said how much it wants to hear (LG-2 leaves it open).
DEFAULT_LEVEL: Final = LogLevel.INFO
_SEVERITY: Final = {level: rank for rank, level in enumerate(LogLevel)}


def message(note: Note, request: Request, state: State) -> bytes | None:
    """The notification that tells the client of a request something; None where it does not want to hear it."""
    params = _params(note, request, state)
    return None if params is None else _notification(*params)


def announcement(note: PromptsChanged | ToolsChanged | ResourcesChanged | ResourceUpdated) -> bytes:
    """The notification of a change on a handshake connection, which belongs to no request."""
    return _notification(*_change(note))


def question(id: RequestId, asked: Question, state: State) -> bytes:
    """The request that puts a question to the client of a handshake connection."""
    return codec.encode({"jsonrpc": "2.0", "id": id} | encode.question(asked, state.revision))


def withdrawal(id: RequestId, reason: str) -> bytes:
    """The notification that a question needs no answer any more (LIFE-10)."""
    return _notification("notifications/cancelled", {"requestId": id, "reason": reason})


def progress_token(request: Request) -> RequestId | None:
    """The token with which a request asks to hear how far it is; None when it does not (PRG-1)."""
    meta = request.params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_request_id(token) else None


def filter_of(request: Request) -> Filter | None:
    """What a `subscriptions/listen` wants to hear; None when it does not say so in the right form (SUB-3)."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict):
        return None
    uris = wanted.get("resourceSubscriptions", [])
    flags = [wanted.get(name, False) for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged")]
    if not all(isinstance(flag, bool) for flag in flags):
        return None
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        return None
    tools, prompts, resources = flags
    return Filter(tools, prompts, resources, frozenset(uris))


def _params(note: Note, request: Request, state: State) -> tuple[str, dict[str, Any]] | None:
    match note:
        case Progress():
            return _progress(note, request, state)
        case Log():
            return _log(note, state)
        case Acknowledged(filter):
            return "notifications/subscriptions/acknowledged", {"notifications": _filter(filter)} | _meta(request)
        case PromptsChanged() | ToolsChanged() | ResourcesChanged() | ResourceUpdated():
            method, params = _change(note)
            return method, params | _meta(request)
        case _:
            assert_never(note)


def _change(note: PromptsChanged | ToolsChanged | ResourcesChanged | ResourceUpdated) -> tuple[str, dict[str, Any]]:
    match note:
        case PromptsChanged():
            return "notifications/prompts/list_changed", {}
        case ToolsChanged():
            return "notifications/tools/list_changed", {}
        case ResourcesChanged():
            return "notifications/resources/list_changed", {}
        case ResourceUpdated(uri):
            return "notifications/resources/updated", {"uri": uri}
        case _:
            assert_never(note)


def _progress(note: Progress, request: Request, state: State) -> tuple[str, dict[str, Any]] | None:
    token = progress_token(request)
    if token is None:
        return None
    params = {"progressToken": token, "progress": note.done} | encode.known(
        "progress", encode.revision_of(state), (("total", note.total), ("message", note.message))
    )
    return "notifications/progress", params


def _log(note: Log, state: State) -> tuple[str, dict[str, Any]] | None:
    wanted = state.log_level
    if wanted is None:
        if state.revision in STATELESS:
            return None
        wanted = DEFAULT_LEVEL
    if _SEVERITY[note.level] < _SEVERITY[wanted]:
        return None
    return "notifications/message", {"level": note.level.value, "logger": note.logger, "data": note.data}


def _filter(filter: Filter) -> dict[str, Any]:
    """The wire object of what is honoured; what is not is left out (SUB-4)."""
    fields = {
        "toolsListChanged": filter.tools,
        "promptsListChanged": filter.prompts,
        "resourcesListChanged": filter.resources,
        "resourceSubscriptions": sorted(filter.uris),
    }
    return {name: value for name, value in fields.items() if value}


def _meta(request: Request) -> dict[str, Any]:
    return {"_meta": {SUBSCRIPTION_KEY: request.id}}


def _notification(method: str, params: dict[str, Any]) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        body["params"] = params
    return codec.encode(body)
