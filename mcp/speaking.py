"""The exchange of one running effect, over whatever carries its client's messages: fills `mcp.exchange.Exchange`.

What is said goes out through `say`, in order, before the reply; where a client takes nothing but the reply, there is
no `say`. Questions on a handshake revision wait in `Pending`; on a stateless one they end the call.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.exchange import AnswerUnfit, InputNeeded, NotDeclared
from mcp.faults import Fault
from mcp.pending import Credential, Pending
from mcp.protocol import encode, questions, telling
from mcp.protocol.effects import CallTool, Effect, GetPrompt, ReadResource, Value
from mcp.protocol.engine import Engine, Step
from mcp.protocol.notes import Log, Note, Progress
from mcp.protocol.questions import Question, Reply, Unanswered
from mcp.protocol.revisions import STATELESS
from mcp.protocol.state import LogLevel

#: Notes of progress that may go out within a second (PRG-2).
_MOST_PROGRESS: Final = 20


@dataclass(frozen=True, slots=True)
class Line:
    """How the client of a connection is reached: `say` sends a message, `pending` waits for what it answers.

    `patience` is how many seconds a person has to answer, as long as the `credential` counts, where one was shown.
    """

    connection: str
    say: Callable[[bytes], None] | None
    pending: Pending | None
    patience: float
    credential: Credential | None = None


class Speaker:
    """What one effect of a step may say and ask. It falls silent once the effect is through."""

    __slots__ = ("_done", "_effect", "_engine", "_line", "_said", "_second", "_state", "_step", "_through")

    def __init__(self, engine: Engine, step: Step, effect: Effect, line: Line) -> None:
        self._engine = engine
        self._step = step
        self._effect = effect
        self._line = line
        self._state = step.slots[effect.slot].state or step.state
        self._done = float("-inf")
        self._said = 0
        self._second = 0.0
        self._through = False

    async def while_running(self, work: Awaitable[Value]) -> Value:
        """The outcome of the effect; whatever it left running is not heard any more (PRG-1, STD-6)."""
        try:
            return await work
        finally:
            self._through = True

    async def tell(self, note: Note) -> None:
        """Tell the client something, if it wants to hear it."""
        if self._line.say is None or self._through:
            return
        message = self._engine.tell(self._step, self._effect.slot, note)
        if message is not None:
            self._line.say(message)

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the call is; what does not grow, and what comes too fast, is left out."""
        if done <= self._done or not self._may_report():
            return
        self._done = done
        await self.tell(Progress(done, total, message))

    async def log(self, level: LogLevel, data: Any, logger: str = "superpi") -> None:
        """Tell the client something for its log."""
        await self.tell(Log(level, data, logger))

    def wants_progress(self) -> bool:
        """Whether the request carries a token for it, and there is a way to tell."""
        request = self._step.slots[self._effect.slot].request
        return self._line.say is not None and request is not None and telling.progress_token(request) is not None

    def can_ask(self, question: Question) -> bool:
        """Whether the client declared what the question needs, and can be reached."""
        return self._lacking(question) is None

    async def ask(self, questions: Mapping[str, Question], *, volunteered: bool = True) -> Mapping[str, Reply]:
        """The answers. A handshake client is asked one after the other, as a person would be."""
        for question in questions.values():
            if (required := self._lacking(question)) is not None:
                raise NotDeclared(required)
        if self._state.revision in STATELESS:
            return self._answers(questions, volunteered=volunteered)
        return {key: await self._asked(question) for key, question in questions.items()}

    def _may_report(self) -> bool:
        now = time.monotonic()
        if now - self._second >= 1:
            self._second, self._said = now, 0
        self._said += 1
        return self._said <= _MOST_PROGRESS

    def _lacking(self, question: Question) -> Mapping[str, Any] | None:
        state = self._state
        lacking = questions.lacking(question, state.capabilities, encode.revision_of(state))
        if lacking is None and state.revision not in STATELESS and not self._can_wait():
            # Declared, but there is no way to put it to the client: the same to whoever asks.
            return questions.lacking(question, {}, encode.revision_of(state))
        return lacking

    def _can_wait(self) -> bool:
        return self._line.say is not None and self._line.pending is not None

    def _answers(self, asked: Mapping[str, Question], *, volunteered: bool) -> Mapping[str, Reply]:
        """What earlier rounds brought; what is missing has to be asked first, what is unfit is an error (MRTR-10)."""
        effect = self._effect
        brought: dict[str, Any] = {}
        if isinstance(effect, CallTool | ReadResource | GetPrompt):
            brought = {**(effect.volunteered if volunteered else {}), **effect.answers}
        replies = {key: questions.read(asked[key], brought[key]) for key in asked if key in brought}
        for key, reply in replies.items():
            if isinstance(reply, Unanswered):
                raise AnswerUnfit(_unfit(key, asked[key], reply))
        if missing := {key: question for key, question in asked.items() if key not in brought}:
            raise InputNeeded(missing)
        return replies

    async def _asked(self, question: Question) -> Reply:
        line = self._line
        assert line.say is not None  # noqa: S101 - `_lacking` looked
        assert line.pending is not None  # noqa: S101
        waiting = await line.pending.open(line.connection, self._state.principal, line.credential)
        if isinstance(waiting, Fault):
            return Unanswered(waiting.message)
        line.say(telling.question(waiting.id, question, self._state))
        try:
            body = await waiting.wait(line.patience)
        except asyncio.CancelledError:
            line.say(telling.withdrawal(waiting.id, "the call that asked was withdrawn"))
            raise
        if body is None:
            line.say(telling.withdrawal(waiting.id, waiting.why))
            return Unanswered(waiting.why)
        if "result" not in body:
            return Unanswered("the client answered with an error")
        return questions.read(question, body["result"])


def _unfit(key: str, question: Question, reply: Unanswered) -> str:
    return (
        f"Invalid params: inputResponses[{json.dumps(key)}] is no answer: {reply.why}. "
        f"{questions.right_form(question)} Send the request again with that; nothing was changed."
    )
