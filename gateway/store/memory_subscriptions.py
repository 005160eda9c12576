"""The in-memory twin of what sessions subscribe to, beside the twin of the sessions. Never loads SQLAlchemy.

It accepts and refuses exactly what the database does (`tests/gateway/store/test_subscription_contract.py`). One event
loop uses it; no method awaits, so each is atomic in it.
"""

from __future__ import annotations

from collections.abc import Callable

from auth.changes import Change, Subject
from gateway.store.memory import MemorySessions, to_nobody
from mcp.subscriptions import can_be_kept


class MemorySubscriptions:
    """`SubscriptionStore` in a dictionary. `tell` hears of each change once it is made."""

    def __init__(self, sessions: MemorySessions, tell: Callable[[Change], None] = to_nobody) -> None:
        self._sessions = sessions
        self._tell = tell
        self._kept: dict[str, set[str]] = {}
        sessions.watch(self._end_with)

    async def add(self, session: str, uri: str, *, most: int) -> bool:
        """What is there already counts as kept."""
        if not can_be_kept(uri):
            raise ValueError("the URI cannot be a key")
        kept = self._kept.get(session, set())
        if uri in kept:
            return True
        if len(kept) >= most or not self._sessions.holds(session):
            return False
        self._kept.setdefault(session, set()).add(uri)
        self._tell(Change(Subject.SUBSCRIPTION, session))
        return True

    async def remove(self, session: str, uri: str) -> bool:
        """True when it was there."""
        kept = self._kept.get(session, set())
        if uri not in kept:
            return False
        kept.remove(uri)
        self._tell(Change(Subject.SUBSCRIPTION, session))
        return True

    async def of(self, session: str) -> frozenset[str]:
        """A copy."""
        return frozenset(self._kept.get(session, ()))

    def _end_with(self, session: str) -> None:
        self._kept.pop(session, None)
