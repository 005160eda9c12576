"""The engine: one payload and the connection's state in, a `Step` out. It never raises, whatever the bytes.

Three doors. `receive` takes a payload as far as it goes alone: a Step holds the reply once nothing is awaited,
the effects that are wanted before that, the facts to act on, and the next state. `resume` takes one outcome
back into its Step. `handle_message` drives both to the end with a function that performs effects. So every
transport and every test drives the same code, and a whole exchange is a list of values.

A reply is bound to the payload it answers, slot by slot; nothing here is looked up by JSON-RPC id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from mcp.protocol import methods, rounds, stateless, telling
from mcp.protocol.arrival import Arrival
from mcp.protocol.conclusions import conclude
from mcp.protocol.context import Context
from mcp.protocol.effects import Answered, Effect, Fact, Outcome, Value
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.methods import Handled
from mcp.protocol.notes import Log, Note
from mcp.protocol.offer import Offer
from mcp.protocol.revisions import STATELESS, Revision
from mcp.protocol.state import State
from mcp.protocol.wire import (
    Answer,
    Batch,
    Malformed,
    Message,
    Notification,
    Payload,
    Reply,
    Request,
    Response,
    Single,
    parse,
)

#: The last revision whose sessions may send arrays of messages (docs/decisions/0005).
LAST_WITH_BATCHES: Final = Revision.R2025_06_18
MAX_BATCH: Final = 100
_NOWHEN: Final = Arrival()


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in the reply: its response, or the effect whose outcome will make it.

    `request` is what it answers, and `state` what that was taken under.
    """

    filled: Response | Effect | None
    request: Request | None = None
    state: State | None = None

    @property
    def waits(self) -> bool:
        """Whether an outcome is still awaited."""
        return self.filled is not None and not isinstance(self.filled, Response)


@dataclass(frozen=True, slots=True)
class Step:
    """How far one payload got."""

    state: State
    slots: tuple[Slot, ...] = ()
    facts: tuple[Fact, ...] = ()
    batch: bool = False

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What is wanted before there can be a reply, in the order of the requests."""
        return tuple(slot.filled for slot in self.slots if not isinstance(slot.filled, Response | None))

    @property
    def reply(self) -> Reply | None:
        """The reply, once no effect is wanted any more; None also when nothing is owed."""
        if any(slot.waits for slot in self.slots):
            return None
        responses = tuple(slot.filled for slot in self.slots if isinstance(slot.filled, Response))
        return Reply(responses, self.batch) if responses else None


@dataclass(frozen=True, slots=True)
class Engine:
    """The protocol over one offer. `keys` sign the cursors of its lists; `page_size` is how long a page is."""

    offer: Offer
    keys: tuple[bytes, ...]
    page_size: int = 100

    def receive(self, raw: bytes | Payload, state: State, arrival: Arrival = _NOWHEN, *, modern: bool = False) -> Step:
        """Take a payload as far as it goes without the world.

        `modern` takes it as of the stateless era even where it does not claim to be, as headers may.
        """
        payload = parse(raw) if isinstance(raw, bytes) else raw
        match payload:
            case Single(message):
                return self._take((message,), state, arrival, batch=False, modern=modern)
            case Batch(messages):
                refusal = _refuse_batch(messages, None if modern else state)
                if refusal is not None:
                    return Step(state, (Slot(Response(None, refusal)),))
                return self._take(messages, state, arrival, batch=True, modern=False)
            case _:
                assert_never(payload)

    def resume(self, step: Step, outcome: Outcome) -> Step:
        """Take the outcome of one effect back. An outcome that nothing waits for changes nothing."""
        if not 0 <= outcome.slot < len(step.slots):
            return step
        slot = step.slots[outcome.slot]
        waiting, request = slot.filled, slot.request
        if waiting is None or isinstance(waiting, Response) or request is None:
            return step
        context = Context(self.offer, self.keys, self.page_size, slot.state or step.state)
        result = conclude(waiting, outcome.value, request, context)
        filled = None if result is None else Response(waiting.request_id, result, context.state.revision)
        landed = Slot(filled, request, slot.state)
        slots = (*step.slots[: outcome.slot], landed, *step.slots[outcome.slot + 1 :])
        return Step(step.state, slots, step.facts, step.batch)

    def tell(self, step: Step, slot: int, note: Note) -> bytes | None:
        """The message that tells the client of a running request something; None where it is not to hear it."""
        request, state = step.slots[slot].request, step.slots[slot].state
        if isinstance(note, Log) and (state is None or state.revision not in self.offer.logging):
            # Whatever was not declared is not sent (LG-1).
            return None
        return None if request is None or state is None else telling.message(note, request, state)

    def handle_message(
        self, raw: bytes, state: State, perform: Callable[[Effect], Value], arrival: Arrival = _NOWHEN
    ) -> tuple[bytes | None, State]:
        """Answer one payload: the reply as JSON (None when nothing is owed) and the next state."""
        step = self.receive(raw, state, arrival)
        for effect in step.effects:
            step = self.resume(step, Outcome(effect.slot, perform(effect)))
        reply = step.reply
        return (None if reply is None else reply.encode()), step.state

    def _take(
        self, messages: tuple[Message, ...], state: State, arrival: Arrival, *, batch: bool, modern: bool
    ) -> Step:
        slots: list[Slot] = []
        facts: list[Fact] = []
        for message in messages:
            own: State | None = None
            if modern or (isinstance(message, Request) and stateless.claims(message)):
                handled, own = self._take_stateless(message, state, arrival, len(slots))
            else:
                handled = _dispatch(message, Context(self.offer, self.keys, self.page_size, state), len(slots))
                state = handled.state or state
            facts.extend(handled.facts)
            slots.append(_slot(message, handled, own or state))
        return Step(state, tuple(slots), tuple(facts), batch)

    def _take_stateless(self, message: Message, state: State, arrival: Arrival, slot: int) -> tuple[Handled, State]:
        """Take a message of the stateless era, and the state that was built for it alone."""
        own = State(principal=state.principal, harness=state.harness, revision=STATELESS[-1])
        if isinstance(message, Answer):
            return Handled(_invalid("this protocol revision has no requests that a response could answer")), own
        if isinstance(message, Notification):
            # Over HTTP no notification is defined (ERA-8); stdio acts on cancellation.
            return methods.note(message, Context(self.offer, self.keys, self.page_size, own)), own
        if not isinstance(message, Request):
            return Handled(message.refusal if message.owed else None), own
        admitted = stateless.admit(message, own, arrival)
        if isinstance(admitted, Refusal):
            return Handled(admitted), own
        brought = rounds.begin(message, admitted, self.keys, arrival.now)
        if isinstance(brought, Refusal):
            return Handled(brought), admitted
        context = Context(self.offer, self.keys, self.page_size, admitted, arrival.mirror, brought)
        return methods.begin(message, context, slot), admitted


def _dispatch(message: Message, context: Context, slot: int) -> Handled:
    match message:
        case Request():
            return methods.begin(message, context, slot)
        case Notification():
            return methods.note(message, context)
        case Malformed():
            return Handled(message.refusal if message.owed else None)
        case Answer():
            return Handled(facts=(Answered(message.id, message.body),))
        case _:
            assert_never(message)


def _slot(message: Message, handled: Handled, state: State) -> Slot:
    request = message if isinstance(message, Request) else None
    return Slot(_fill(message, handled, state), request, state)


def _fill(message: Message, handled: Handled, state: State) -> Response | Effect | None:
    outcome = handled.outcome
    if outcome is None or isinstance(outcome, Effect):
        return outcome
    id = message.id if isinstance(message, Request | Malformed) else None
    return Response(id, outcome, state.revision)


def _refuse_batch(messages: tuple[Message, ...], state: State | None) -> Refusal | None:
    """Why an array is refused as a whole, if it is (BAT-1 to BAT-8); without a state no revision has agreed to it."""
    if state is None or state.revision is None or state.revision > LAST_WITH_BATCHES:
        return _invalid("send one message at a time: this connection's protocol revision has no batches")
    if not messages:
        return _invalid("the batch is empty")
    if len(messages) > MAX_BATCH:
        return _invalid(f"a batch holds at most {MAX_BATCH} messages")
    if any(isinstance(message, Request) and stateless.claims(message) for message in messages):
        return _invalid("a request of the stateless era is sent alone")
    if any(isinstance(message, Request) and message.method == "initialize" for message in messages):
        return _invalid("initialize must not be part of a batch")
    if any(isinstance(m, Answer) for m in messages) and any(isinstance(m, Request) for m in messages):
        return _invalid("a batch holds requests and notifications, or responses, not both")
    return None


def _invalid(why: str) -> Refusal:
    return Refusal(Reason.INVALID_REQUEST, f"Invalid request: {why}")
