"""Questions that wait for a client's answer, which arrives as a request of its own, perhaps in another process.

A question belongs to a session and its principal, and only they can answer it, once. It ends with the credential of
the call that asked. Knows neither what was asked nor how it was sent.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from auth.caller import Caller
from auth.changes import Change, Subject, doubts
from auth.ports import StoreAway
from mcp.faults import Fault
from mcp.protocol.wire import RequestId

_log: Final = logging.getLogger("superpi.pending")

#: Questions that a session has open at most.
MOST_OPEN: Final = 16
#: How long a question waits where nothing else is said.
PATIENCE: Final = timedelta(minutes=5)
#: How much longer than a question waits its row may stay, as clocks differ; older ones are left by dead processes.
MARGIN: Final = timedelta(minutes=1)
#: Seconds that a question waits for its row. Until that is there, its answer has to come to this process.
_PROMPT: Final = 1.0
_ID_BYTES: Final = 16
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

#: What a client answered: a JSON object with `result` or `error`.
Body = Mapping[str, Any]

IN_TIME: Final = "nobody answered in time"
ENDED: Final = "the session has ended"
EXPIRED: Final = "the token of this call has expired"
REVOKED: Final = "the token of this call counts no more: it was revoked, or its principal is disabled"
SHUT: Final = "callers without a token are not let in any more"
UNSURE: Final = "the server's database is away, so it cannot be told whether the token of this call still counts"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is kept. `id` is 128 random bits in URL-safe Base64; `created` is UTC and aware."""

    id: str
    session: str
    principal: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Credential:
    """What let a call in: the caller, and the way to look at it anew.

    `again` gives who it lets in now, None when nobody. It raises StoreAway when that cannot be told.
    """

    caller: Caller
    again: Callable[[], Awaitable[Caller | None]]


class QuestionStore(Protocol):
    """Where open questions live. All methods are safe to call from any number of tasks at once.

    A question ends with its session, however the session ends.
    """

    async def ask(self, asked: Asked, *, most: int, since: datetime) -> bool:
        """Keep a new question; False when the session has `most` already, or is not the principal's (any more).

        Those from before `since` do not count: nobody waits for them. Raises ValueError when the id is taken.
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

    def __init__(self, pending: Pending, asked: Asked, credential: Credential | None) -> None:
        self._pending = pending
        self._answer: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        self.asked = asked
        #: For `Pending`: what ends it; how often that was doubted, and how many of these doubts are settled.
        self.credential = credential
        self.doubts = 0
        self.cleared = 0
        #: For `Pending`: who looks for the answer in the store does so alone.
        self.looking = asyncio.Lock()
        #: Why there is no answer, as the end of a sentence.
        self.why = IN_TIME

    @property
    def id(self) -> str:
        """The id of the request that carries it, never used before (RPC-3)."""
        return self.asked.id

    @property
    def settled(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._answer.done()

    async def wait(self, seconds: float) -> Body | None:
        """The client's answer; None when none came within that many seconds, or none counts any more (`why` tells)."""
        try:
            await asyncio.wait((self._answer,), timeout=seconds)
            if not self.settled:
                # Another process may have kept it, and this one not have heard of it yet.
                await self._pending.look(self)
            if self.doubts > self.cleared:
                # An answer that was faster than the look at the credential counts only after that.
                await self._pending.judge(self, last=True)
            return self._answer.result() if self.settled and self.why == IN_TIME else None
        finally:
            self.close()

    def close(self) -> None:
        """Wait no more; a second call does nothing."""
        self.expire(None)
        self._pending.close(self)

    def settle(self, body: Body) -> bool:
        """For `Pending`: that is the answer; whether it is the first."""
        if self.settled:
            return False
        self._answer.set_result(body)
        return True

    def end(self, why: str) -> None:
        """For `Pending`: no answer counts any more, not even one that came."""
        self.why = why
        if not self.settled:
            self._answer.set_result(None)

    def expire(self, seconds: float | None) -> None:
        """For `Pending`: the credential expires in that many seconds, None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(max(seconds, 0), self.end, EXPIRED)


class Pending:
    """The questions of one process; for use on one event loop. Without a store they are answered here or nowhere.

    `patience` is how long a question waits at most, here and in every other process.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        store: QuestionStore | None = None,
        *,
        most: int = MOST_OPEN,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._now = now
        self._store = store
        self._most = most
        self._kept_for = patience + MARGIN
        self._waiting: dict[str, Question] = {}
        # Whose rows are in the store, and whose are on their way out.
        self._kept: set[str] = set()
        self._closing: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, session: str, principal: str, credential: Credential | None = None) -> Question | Fault:
        """Begin to wait, before the question is sent; a Fault when the session has too many open.

        It ends with the credential, if there is one. While the store is away the answer has to come to this process.
        """
        if sum(1 for other in self._waiting.values() if other.asked.session == session) >= self._most:
            return self._too_many()
        asked = Asked(secrets.token_urlsafe(_ID_BYTES), session, principal, self._now())
        question = self._waiting[asked.id] = Question(self, asked, credential)
        if credential is not None:
            self._expire_with(question, credential.caller)
        kept = False
        try:
            kept = await self._may_ask(question)
        finally:
            if not kept:
                question.close()
        return question if kept else self._too_many()

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
                question.end(ENDED)

    def hear(self, change: Change | None) -> None:
        """Of an answer elsewhere, or a session or credential that ended; None: anything may have happened unheard."""
        for question in self._waiting.values():
            if question.credential is not None and doubts(change, question.credential.caller):
                question.doubts += 1
                self._soon(self.judge(question))
        match change:
            case None:
                for question in self._waiting.values():
                    self._soon(self._catch_up(question))
            case Change(Subject.QUESTION, id) if id in self._waiting:
                self._soon(self.look(self._waiting[id]))
            case Change(Subject.SESSION, id):
                self.end(id)

    async def tidy(self) -> None:
        """Remove what dead processes left. Called about once a minute. Raises StoreAway."""
        if self._store is not None:
            await self._store.sweep(self._now() - self._kept_for)

    def __len__(self) -> int:
        """How many wait in this process."""
        return len(self._waiting)

    async def look(self, question: Question) -> None:
        """For a question: take its answer, if another process kept one."""
        if self._store is None:
            return
        async with question.looking:
            if question.settled or question.id not in self._kept:
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

    async def judge(self, question: Question, *, last: bool = False) -> None:
        """For a question: look anew at its credential. What cannot be told now stays in doubt; at `last` it is a no."""
        credential, doubts_then = question.credential, question.doubts
        assert credential is not None  # noqa: S101 - nothing else is doubted
        try:
            caller = await credential.again()
        except StoreAway as error:
            _log.info("a credential could not be looked at: %s", error)
            if last:
                question.end(UNSURE)
            return
        if caller is None or caller != credential.caller:
            question.end(SHUT if credential.caller.token is None else REVOKED)
            return
        question.cleared = max(question.cleared, doubts_then)
        self._expire_with(question, caller)

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

    async def _may_ask(self, question: Question) -> bool:
        """Keep the question before it is asked, unless that takes long: then the person does not wait for it too."""
        keeping = asyncio.get_running_loop().create_task(self._keep(question))
        self._tasks.add(keeping)
        keeping.add_done_callback(self._tasks.discard)
        done, _ = await asyncio.wait((keeping,), timeout=_PROMPT)
        if done and keeping.exception() is None:
            return keeping.result()
        keeping.add_done_callback(_noted)
        return True

    async def _keep(self, question: Question) -> bool:
        """Keep the row of a question, if it is not kept yet; False when the store says no. Raises StoreAway."""
        if self._store is None:
            return True
        async with question.looking:
            if question.id in self._kept:
                return True
            since = self._now() - self._kept_for
            if not await self._store.ask(question.asked, most=self._most, since=since):
                return False
            self._kept.add(question.id)
            if question.id not in self._waiting:
                self.close(question)
            return True

    async def _catch_up(self, question: Question) -> None:
        """The store is back: take the answer, or keep the question if that could not be done."""
        if question.id in self._kept:
            await self.look(question)
        elif question.id in self._waiting:
            # ValueError: the row came through when nobody could tell; it is swept.
            with suppress(StoreAway, ValueError):
                await self._keep(question)

    def _expire_with(self, question: Question, caller: Caller) -> None:
        if question.id in self._waiting:
            question.expire(None if caller.until is None else (caller.until - self._now()).total_seconds())

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


def _noted(keeping: asyncio.Task[bool]) -> None:
    """What became of a row that nobody waited for. Raises what is no outage."""
    if keeping.cancelled() or (error := keeping.exception()) is None:
        return
    if not isinstance(error, StoreAway):
        raise error
    _log.warning("a question can be answered in this process alone: %s", error)
