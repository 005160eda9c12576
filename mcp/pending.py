"""Questions that wait for a client's answer, which arrives as a request of its own, perhaps in another process.

A question belongs to a session and its principal, and only they can answer it, once. Knows neither what was asked nor
how it was sent.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from auth.changes import Change, Subject
from auth.ports import StoreAway
from mcp.faults import Fault
from mcp.protocol.wire import RequestId

_log: Final = logging.getLogger("superpi.pending")

#: Questions that a session has open at most.
MOST_OPEN: Final = 16
#: How long a row may stay; older ones are left over from processes that died.
KEPT: Final = timedelta(hours=1)
_ID_BYTES: Final = 16
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

#: What a client answered: a JSON object with `result` or `error`.
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is kept. `id` is 128 random bits in URL-safe Base64; `created` is UTC and aware."""

    id: str
    session: str
    principal: str
    created: datetime


class QuestionStore(Protocol):
    """Where open questions live. All methods are safe to call from any number of tasks at once.

    A question ends with its session, however the session ends.
    """

    async def ask(self, asked: Asked, *, most: int) -> bool:
        """Keep a new question; False when the session has `most` already, or is not the principal's (any more).

        Raises ValueError when the id is taken.
        """

    async def answer(self, session: str, principal: str, id: str, body: Body) -> bool:
        """Keep the answer to an open question of that session and principal; True when this call answered it."""

    async def take(self, id: str) -> Body | None:
        """The answer to that question, and the end of it; None, and nothing else, while there is no answer."""

    async def close(self, id: str) -> None:
        """End a question, answered or not."""

    async def sweep(self, before: datetime) -> int:
        """End every question from before that time; answers how many."""


class Question:
    """One question that this process asked; for one task. Closed at the end of `wait`, or by `close`."""

    def __init__(self, pending: Pending, asked: Asked) -> None:
        self._pending = pending
        self._answer: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self.asked = asked
        #: For `Pending`: who looks for the answer in the store does so alone.
        self.looking = asyncio.Lock()

    @property
    def id(self) -> str:
        """The id of the request that carries it, never used before (RPC-3)."""
        return self.asked.id

    @property
    def settled(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._answer.done()

    async def wait(self, seconds: float) -> Body | None:
        """The client's answer; None when none came within that many seconds, or the session ended."""
        try:
            await asyncio.wait((self._answer,), timeout=seconds)
            if not self.settled:
                # Another process may have kept it, and this one not have heard of it yet.
                await self._pending.look(self)
            return self._answer.result() if self.settled else None
        finally:
            self.close()

    def close(self) -> None:
        """Wait no more; a second call does nothing."""
        self._pending.close(self)

    def settle(self, body: Body | None) -> bool:
        """For `Pending`: that is the answer, None for none; whether it is the first."""
        if self.settled:
            return False
        self._answer.set_result(body)
        return True


class Pending:
    """The questions of one process; for use on one event loop. Without a store they are answered here or nowhere."""

    def __init__(
        self, now: Callable[[], datetime], store: QuestionStore | None = None, *, most: int = MOST_OPEN
    ) -> None:
        self._now = now
        self._store = store
        self._most = most
        self._waiting: dict[str, Question] = {}
        # Whose rows are in the store, and whose are on their way out.
        self._kept: set[str] = set()
        self._closing: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, session: str, principal: str) -> Question | Fault:
        """Begin to wait, before the question is sent; a Fault when the session has too many open. Raises StoreAway."""
        if sum(1 for other in self._waiting.values() if other.asked.session == session) >= self._most:
            return self._too_many()
        asked = Asked(secrets.token_urlsafe(_ID_BYTES), session, principal, self._now())
        question = self._waiting[asked.id] = Question(self, asked)
        if self._store is None:
            return question
        try:
            if await self._store.ask(asked, most=self._most):
                self._kept.add(asked.id)
                return question
            return self._too_many()
        finally:
            if asked.id not in self._kept:
                del self._waiting[asked.id]

    async def answer(self, session: str, principal: str, id: RequestId, body: Body) -> bool:
        """Hand a client's answer to whoever waits for it; False when nobody does. Raises StoreAway.

        Where the question waits in this process, the store is not asked.
        """
        if not isinstance(id, str) or _ID.fullmatch(id) is None:
            return False
        if (question := self._waiting.get(id)) is not None:
            own = (question.asked.session, question.asked.principal) == (session, principal)
            return own and question.settle(body)
        if id in self._closing:
            return False
        return self._store is not None and await self._store.answer(session, principal, id, body)

    def end(self, session: str) -> None:
        """The session has ended, and its questions with it."""
        for question in self._waiting.values():
            if question.asked.session == session:
                question.settle(None)

    def hear(self, change: Change | None) -> None:
        """A question was answered elsewhere, or a session ended; None means that either may have happened unheard."""
        match change:
            case None:
                for question in self._waiting.values():
                    self._soon(self.look(question))
            case Change(Subject.QUESTION, id) if id in self._waiting:
                self._soon(self.look(self._waiting[id]))
            case Change(Subject.SESSION, id):
                self.end(id)

    async def tidy(self) -> None:
        """Remove what dead processes left. Called about once a minute. Raises StoreAway."""
        if self._store is not None:
            await self._store.sweep(self._now() - KEPT)

    def __len__(self) -> int:
        """How many wait in this process."""
        return len(self._waiting)

    async def look(self, question: Question) -> None:
        """For a question: take its answer, if another process kept one."""
        if self._store is None:
            return
        async with question.looking:
            if question.settled:
                return
            try:
                body = await self._store.take(question.id)
            except StoreAway as error:
                # Looked for again when the store is back, because everything is in doubt then.
                _log.info("an answer could not be looked for: %s", error)
                return
            if body is not None:
                self._kept.discard(question.id)
                question.settle(body)

    def close(self, question: Question) -> None:
        """For a question: nobody waits for it any more. Its row goes in the background, so that no answer waits."""
        self._waiting.pop(question.id, None)
        if question.id in self._kept and self._store is not None:
            self._kept.discard(question.id)
            self._closing.add(question.id)
            self._soon(self._remove(self._store, question.id))

    async def flush(self) -> None:
        """Wait for what is under way with the store. Called on the way out."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _remove(self, store: QuestionStore, id: str) -> None:
        try:
            await store.close(id)
        except StoreAway as error:
            _log.info("a question is left to be swept: %s", error)
        finally:
            self._closing.discard(id)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _too_many(self) -> Fault:
        return Fault(f"This session has {self._most} questions open already: answer or dismiss those first.")
