"""The in-memory twin of the open questions, beside the twin of the sessions. Never loads SQLAlchemy.

It accepts and refuses exactly what the database does (`tests/gateway/store/test_question_contract.py`). One event loop
uses it; no method awaits, so each is atomic in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from auth.changes import Change, Subject
from gateway.store import values
from gateway.store.memory import MemorySessions, to_nobody
from mcp.pending import Asked, Body


@dataclass(slots=True)
class _Kept:
    """A question, and its answer as JSON text once there is one."""

    asked: Asked
    answer: str | None = None


class MemoryQuestions:
    """`QuestionStore` in a dictionary. `tell` hears of each answer once it is kept."""

    def __init__(self, sessions: MemorySessions, tell: Callable[[Change], None] = to_nobody) -> None:
        self._sessions = sessions
        self._tell = tell
        self._kept: dict[str, _Kept] = {}
        sessions.watch(self._end_with)

    async def ask(self, asked: Asked, *, most: int, since: datetime) -> bool:
        """Times are kept in UTC."""
        values.require_storable(asked.id, asked.session, asked.principal)
        new, limit = replace(asked, created=values.utc(asked.created)), values.utc(since)
        if not self._sessions.holds(asked.session, asked.principal):
            return False
        others = [kept.asked for kept in self._kept.values() if kept.asked.session == asked.session]
        if sum(1 for other in others if other.created >= limit) >= most:
            return False
        if asked.id in self._kept:
            raise ValueError("the question id is taken")
        self._kept[asked.id] = _Kept(new)
        return True

    async def answer(self, session: str, principal: str, id: str, body: Body) -> bool:
        """The first one stands."""
        kept = self._kept.get(id)
        text = values.dump(body) if values.storable(session, principal, id) else ""
        if kept is None or (kept.asked.session, kept.asked.principal) != (session, principal):
            return False
        if kept.answer is not None:
            return False
        kept.answer = text
        self._tell(Change(Subject.QUESTION, id))
        return True

    async def take(self, id: str) -> Body | None:
        """Decoded anew."""
        kept = self._kept.get(id)
        if kept is None or kept.answer is None:
            return None
        del self._kept[id]
        body: dict[str, Any] = values.load(kept.answer)
        return body

    async def close(self, id: str) -> None:
        """Answered or not."""
        self._kept.pop(id, None)

    async def sweep(self, before: datetime) -> int:
        """Strictly before that time."""
        limit = values.utc(before)
        old = [id for id, kept in self._kept.items() if kept.asked.created < limit]
        for id in old:
            del self._kept[id]
        return len(old)

    def _end_with(self, session: str) -> None:
        for id in [id for id, kept in self._kept.items() if kept.asked.session == session]:
            del self._kept[id]
