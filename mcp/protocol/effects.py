"""What the engine wants done and what came of it: two closed sets of values.

The engine decides, a transport's performer acts. An effect names the slot of the reply that waits for it; its
outcome carries the same slot back. A fact is something that happened and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp.protocol.content import Contents, PromptMessage, ToolResult
from mcp.protocol.notes import Filter
from mcp.protocol.offer import ResourceSpec
from mcp.protocol.questions import Question
from mcp.protocol.revisions import Revision
from mcp.protocol.wire import RequestId


@dataclass(frozen=True, slots=True)
class CallTool:
    """Run a tool that exists, with arguments that its schema accepts. Outcome: `ToolResult`.

    Here and below `answers` holds the client's results of earlier rounds, by the key of the question, and `volunteered`
    those that it sent before anybody asked.
    """

    slot: int
    request_id: RequestId
    name: str
    arguments: Mapping[str, Any]
    answers: Mapping[str, Any] = field(default_factory=dict)
    volunteered: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadResource:
    """Read a resource. Outcome: a tuple of `Contents`, or `NotFound`."""

    slot: int
    request_id: RequestId
    uri: str
    answers: Mapping[str, Any] = field(default_factory=dict)
    volunteered: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListResources:
    """List the resources that are not fixed, from a position on. Outcome: `ResourcePage`, or `NotFound`."""

    slot: int
    request_id: RequestId
    after: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class GetPrompt:
    """Render a prompt that exists, with every required argument there. Outcome: `Prompt`, or `NotFound`."""

    slot: int
    request_id: RequestId
    name: str
    arguments: Mapping[str, str]
    answers: Mapping[str, Any] = field(default_factory=dict)
    volunteered: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete an argument. `name` is a prompt's name or a template's URI. Outcome: `Completion`, or `NotFound`."""

    slot: int
    request_id: RequestId
    kind: Literal["prompt", "resource"]
    name: str
    argument: str
    value: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Begin (`on`) or end telling a connection of a resource's updates. Outcome: `Done`, `NotFound` or `Declined`."""

    slot: int
    request_id: RequestId
    uri: str
    on: bool


@dataclass(frozen=True, slots=True)
class Listen:
    """Tell the client of changes until it leaves, or the server ends it. Outcome: `Done`."""

    slot: int
    request_id: RequestId
    filter: Filter


Effect = CallTool | ReadResource | ListResources | GetPrompt | Complete | Subscribe | Listen
#: Effects that may ask the client something, and so take more than one round (MRTR-2).
Asking = CallTool | ReadResource | GetPrompt


@dataclass(frozen=True, slots=True)
class NotFound:
    """What was asked for does not exist for this caller; `message` says what to do."""

    message: str


@dataclass(frozen=True, slots=True)
class Declined:
    """What was asked for exists, and it cannot be done as it was asked; `message` says what to do."""

    message: str


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """Some resources, and the position to go on from (None: that was all)."""

    items: tuple[ResourceSpec, ...]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt."""

    description: str
    messages: tuple[PromptMessage, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """Values that an argument may take; at most 100 go out (CP-2)."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client withdrew the request. `owed` is whether the transport still owes it an answer, as HTTP does."""

    owed: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """Performing the effect failed for a reason that is the server's own; `reference` finds it in the log."""

    reference: str


@dataclass(frozen=True, slots=True)
class Done:
    """It is done, and there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The client has to answer these first; the answers are good until that second of the epoch."""

    questions: Mapping[str, Question]
    until: float


@dataclass(frozen=True, slots=True)
class CapabilityMissing:
    """The request cannot be served for a client that does not declare these `ClientCapabilities` (MOD-8)."""

    required: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScopeMissing:
    """The caller's token has too low a scope, and its issuer can make one with the scope `needed` (AU-11)."""

    needed: str
    message: str


@dataclass(frozen=True, slots=True)
class Away:
    """What the effect needs cannot be asked now. It changed nothing, so the request may be sent again as it is."""


Value = (
    ToolResult
    | tuple[Contents, ...]
    | ResourcePage
    | Prompt
    | Completion
    | Done
    | InputRequired
    | CapabilityMissing
    | ScopeMissing
    | NotFound
    | Declined
    | Cancelled
    | Away
    | Broken
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the effect that waits in `slot`."""

    slot: int
    value: Value


@dataclass(frozen=True, slots=True)
class Opened:
    """`initialize` succeeded: what the client asked for and what was agreed on."""

    requested: str
    revision: Revision


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The client asks to stop one of its requests (CAN-1)."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Answered:
    """The client answered one of the server's requests: `body` has a `result` or an `error`."""

    id: RequestId
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRejected:
    """The tool call in `slot` names no tool (`known` is false), or has arguments that its tool's schema refuses."""

    slot: int
    name: str
    arguments: Mapping[str, Any]
    known: bool


Fact = Opened | CancelRequested | Answered | CallRejected
