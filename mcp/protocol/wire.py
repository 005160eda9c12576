"""JSON-RPC 2.0 messages as values: what a payload holds, and what goes back.

Parsing sorts a payload into a closed set and never raises. Nothing here knows a method or a revision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from mcp.protocol import nul
from mcp.protocol.codec import HoldsNul, NotJson, decode, encode
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.revisions import Revision

#: A request id: a string or an integer, never null, a float or a boolean (RPC-2).
RequestId = str | int
#: A result: a JSON object, or one that was encoded before.
Result = Mapping[str, Any] | msgspec.Raw

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Request:
    """A call that is owed one response."""

    id: RequestId
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpoiledRequest(Request):
    """A call of a tool whose arguments hold U+0000, in `faults`' words; it must not be made."""

    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is never answered (RPC-9)."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The client's response to a request of the server."""

    id: RequestId
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """JSON, but no JSON-RPC message. `id` is set when it could be read.

    One that was sent like a notification is not `owed` a response (RPC-9); HTTP still refuses it.
    """

    id: RequestId | None
    refusal: Refusal
    owed: bool = True


Message = Request | Notification | Answer | Malformed


@dataclass(frozen=True, slots=True)
class Single:
    """A payload that holds one message."""

    message: Message


@dataclass(frozen=True, slots=True)
class Batch:
    """A payload that is an array of messages; may be empty."""

    messages: tuple[Message, ...]


Payload = Single | Batch


def parse(raw: bytes) -> Payload:
    """What a payload holds. Text that is refused as JSON is one `Malformed` message."""
    value = decode(raw)
    if isinstance(value, NotJson):
        taken = _mendable(value.value) if isinstance(value, HoldsNul) else None
        return taken or Single(_refused_json(raw, value))
    if isinstance(value, list):
        return Batch(tuple(_message(item) for item in value))
    return Single(_message(value))


def _mendable(value: Any) -> Payload | None:
    """What a payload with U+0000 holds, if that stands in nothing but arguments of tools."""
    if not isinstance(value, list):
        message = _spoiled(value)
        return None if message is None else Single(message)
    messages = [message for item in value if (message := _spoiled(item)) is not None]
    return Batch(tuple(messages)) if len(messages) == len(value) else None


def _spoiled(value: Any) -> Message | None:
    faults = nul.faults_of_arguments(value)
    if not faults:
        return None if faults is None else _message(value)
    message = _message(value)
    if not isinstance(message, Request):
        return None
    return SpoiledRequest(message.id, message.method, message.params, faults)


def _refused_json(raw: bytes, refused: NotJson) -> Malformed:
    """The refusal of a text: one that is JSON, but beyond what this server takes, still names the request it was."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("method"), str) and _can_go_back(value.get("id")):
        return Malformed(value["id"], Refusal(Reason.INVALID_PARAMS, f"Invalid params: {refused.why}"))
    return Malformed(None, Refusal(Reason.PARSE_ERROR, f"Parse error: {refused.why}"))


def _can_go_back(id: Any) -> bool:
    """Whether a reply can carry the id: half of a surrogate pair is no character, and cannot be sent."""
    return is_request_id(id) and not (isinstance(id, str) and any("\ud800" <= sign <= "\udfff" for sign in id))


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return _malformed(None, "a message is a JSON object")
    id = value.get("id")
    readable = id if is_request_id(id) else None
    owed = "id" in value or "method" not in value
    if value.get("jsonrpc") != "2.0":
        return _malformed(readable, 'the member "jsonrpc" must be "2.0"', owed=owed)
    if "method" in value:
        return _call(value, readable, owed=owed)
    if readable is None or ("result" in value) == ("error" in value):
        return _malformed(readable, 'a message has a "method", or an "id" and either a "result" or an "error"')
    return Answer(readable, value)


def _call(value: Mapping[str, Any], readable: RequestId | None, *, owed: bool) -> Message:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return _malformed(readable, 'the member "method" must be a string', owed=owed)
    if "id" in value and readable is None:
        return _malformed(None, 'the member "id" must be a string or an integer')
    if "result" in value or "error" in value:
        return _malformed(readable, 'a message with a "method" has neither a "result" nor an "error"', owed=owed)
    if params is None:
        params = _NOTHING
    if not isinstance(params, dict):
        return _malformed(readable, 'the member "params" must be an object', owed=owed)
    return Notification(method, params) if readable is None else Request(readable, method, params)


def _malformed(id: RequestId | None, why: str, *, owed: bool = True) -> Malformed:
    return Malformed(id, Refusal(Reason.INVALID_REQUEST, f"Invalid request: {why}"), owed)


def is_request_id(value: Any) -> bool:
    """Whether a value may be a request id; a boolean is no integer here."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


@dataclass(frozen=True, slots=True)
class Response:
    """What answers one request: a result, or a refusal. `id` is None only where none could be read (RPC-7).

    `revision` is the one that the request was taken under; a refusal looks by it.
    """

    id: RequestId | None
    outcome: Result | Refusal
    revision: Revision | None = None

    def wire(self) -> dict[str, Any]:
        """The response as a JSON object; without the member `id` where it could not be read."""
        body: dict[str, Any] = {"jsonrpc": "2.0"}
        if self.id is not None:
            body["id"] = self.id
        if isinstance(self.outcome, Refusal):
            body["error"] = _error(self.outcome, self.revision)
        else:
            body["result"] = self.outcome
        return body


def _error(refusal: Refusal, revision: Revision | None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": refusal.reason.face(revision).code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    return error


@dataclass(frozen=True, slots=True)
class Reply:
    """Everything that goes back for one payload: one response, or an array of them."""

    responses: tuple[Response, ...]
    batch: bool = False

    def encode(self) -> bytes:
        """The reply as one line of JSON."""
        wire = [response.wire() for response in self.responses]
        return encode(wire if self.batch else wire[0])

    @property
    def status(self) -> int:
        """The HTTP status of an answer that is this reply."""
        first = self.responses[0]
        if self.batch or not isinstance(first.outcome, Refusal):
            return 200
        return first.outcome.reason.face(first.revision).status
