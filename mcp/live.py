"""Sessions as the HTTP side uses them: found without the store when warm, bound to their principal, ending by idleness.

A small cache stands before the store. It holds the sessions that are in use and forgets them when they fall
idle, so that an abandoned session costs a row and no memory. It must never answer one principal with another's
session: a foreign, unknown, ended or expired id all give None.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from auth.changes import Change, Subject
from mcp.protocol.state import State
from mcp.sessions import Session, SessionStore

#: How old a stored `last_seen` may grow while its session is in use.
TOUCH_AFTER: Final = timedelta(seconds=60)
_ID_BYTES: Final = 32
_LONGEST_ID: Final = 128


@dataclass(slots=True)
class _Warm:
    """A session in use; `stored` is the `last_seen` that the store knows."""

    session: Session
    seen: datetime
    stored: datetime

    @property
    def is_stale(self) -> bool:
        """Whether the store has fallen behind by more than it may."""
        return self.seen - self.stored >= TOUCH_AFTER


class Sessions:
    """The sessions of one process over a store that all processes share. For use on one event loop.

    `idle` ends a session that long after it was last used; `most` bounds the sessions of a principal; `warm`
    bounds how many are kept in memory.
    """

    def __init__(
        self, store: SessionStore, now: Callable[[], datetime], *, idle: timedelta, most: int, warm: int = 1024
    ) -> None:
        self._store = store
        self._now = now
        self._idle = idle
        self._most = most
        self._most_warm = warm
        self._warm: OrderedDict[str, _Warm] = OrderedDict()
        self._owed: dict[str, datetime] = {}
        self._endings = 0

    async def open(self, state: State) -> Session:
        """Begin a session for a connection whose `initialize` succeeded; it is stored when this returns."""
        now = self._now()
        session = Session(secrets.token_urlsafe(_ID_BYTES), state, now, now)
        for ended in await self._store.open(session, most=self._most):
            self._forget(ended)
        self._keep(session)
        return session

    async def find(self, id: str, principal: str) -> Session | None:
        """The principal's session with that id, if it still lives. Finding it counts as using it."""
        if len(id) > _LONGEST_ID:
            return None
        warm = self._warm.get(id) or await self._load(id)
        if warm is None or warm.session.principal != principal:
            return None
        now = self._now()
        if warm.seen + self._idle < now:
            await self._end(id)
            return None
        warm.seen = now
        self._warm.move_to_end(id)
        return warm.session

    async def save(self, session: Session, state: State) -> None:
        """Store the state that a call ended with, if it changed it; the last call to finish wins."""
        if state == session.state:
            return
        warm = self._warm.get(session.id)
        if warm is not None:
            warm.session = replace(warm.session, state=state)
        await self._store.save(session.id, state)

    async def end(self, id: str, principal: str) -> bool:
        """End the principal's session; False when there is none."""
        if await self.find(id, principal) is None:
            return False
        return await self._end(id)

    def used(self, id: str) -> None:
        """Count a call that still runs as use of its session."""
        warm = self._warm.get(id)
        if warm is not None:
            warm.seen = self._now()

    def hear(self, change: Change | None) -> None:
        """Forget what ended elsewhere; everything when that is in doubt."""
        match change:
            case None:
                for id in list(self._warm):
                    self._evict(id)
            case Change(Subject.SESSION, id):
                self._forget(id)

    async def tidy(self) -> None:
        """Write what use moved forward, forget what fell idle, and end what expired. Called about once a minute."""
        now = self._now()
        await self._touch({id: warm for id, warm in self._warm.items() if warm.is_stale})
        for id in [id for id, warm in self._warm.items() if now - warm.seen >= TOUCH_AFTER]:
            del self._warm[id]
        await self._store.sweep(now - self._idle)

    async def flush(self) -> None:
        """Write every use that the store does not know yet. Called on the way out."""
        await self._touch({id: warm for id, warm in self._warm.items() if warm.seen > warm.stored})

    async def _touch(self, warm: dict[str, _Warm]) -> None:
        seen = self._owed | {id: entry.seen for id, entry in warm.items()}
        self._owed = {}
        if not seen:
            return
        await self._store.touch(seen)
        for id, entry in warm.items():
            entry.stored = seen[id]

    async def _end(self, id: str) -> bool:
        self._forget(id)
        ended = await self._store.end(id)
        self._forget(id)
        return ended

    def _forget(self, id: str) -> None:
        self._endings += 1
        self._warm.pop(id, None)
        self._owed.pop(id, None)

    async def _load(self, id: str) -> _Warm | None:
        """The session from the store. A row read while a session ended may be the ended one, so it is read again."""
        while True:
            endings = self._endings
            session = await self._store.find(id)
            if session is None:
                return None
            if id in self._warm:
                return self._warm[id]
            if endings == self._endings:
                return self._keep(session)

    def _evict(self, id: str) -> None:
        """Let a session that lives leave memory; the use that the store does not know of is still owed to it."""
        evicted = self._warm.pop(id)
        if evicted.is_stale:
            self._owed[id] = evicted.seen

    def _keep(self, session: Session) -> _Warm:
        warm = _Warm(session, session.last_seen, session.last_seen)
        self._warm[session.id] = warm
        while len(self._warm) > self._most_warm:
            self._evict(next(iter(self._warm)))
        return warm
