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

#: How old a stored `last_seen` may grow while its session is in use, unless sessions end sooner than that.
TOUCH_AFTER: Final = timedelta(seconds=60)
#: How long rows of expired sessions stay, so that no process sweeps one whose use another has yet to write.
SWEEP_MARGIN: Final = timedelta(minutes=3)
_ID_BYTES: Final = 32
_LONGEST_ID: Final = 128


@dataclass(slots=True)
class _Warm:
    """A session in use; `stored` is the `last_seen` that the store knows."""

    session: Session
    seen: datetime
    stored: datetime


class Sessions:
    """The sessions of one process over a store that all processes share. For use on one event loop.

    `idle` ends a session that long after it was last used; a call that runs (`busy`, by session id) is use. `most`
    bounds the sessions of a principal; `warm` bounds how many are kept in memory.
    """

    def __init__(
        self,
        store: SessionStore,
        now: Callable[[], datetime],
        *,
        idle: timedelta,
        most: int,
        busy: Callable[[str], bool] = lambda _id: False,
        warm: int = 1024,
    ) -> None:
        self._store = store
        self._now = now
        self._idle = idle
        self._touch_after = min(TOUCH_AFTER, idle / 2)
        #: How often `tidy` is to be called, so that other processes learn in time of a session that is in use.
        self.tidy_every = self._touch_after
        self._lag = 2 * self._touch_after
        self._most = most
        self._busy = busy
        self._most_warm = warm
        self._warm: OrderedDict[str, _Warm] = OrderedDict()
        self._owed: dict[str, datetime] = {}
        self._endings = 0

    async def open(self, state: State) -> Session:
        """Begin a session for a connection whose `initialize` succeeded; it is stored when this returns."""
        now = self._now()
        session = Session(secrets.token_urlsafe(_ID_BYTES), state, now, now)
        # The store ends the idlest beyond the cap, so it has to know which ones are in use.
        self._note_busy(now)
        await self._touch(self._used_since_stored(state.principal))
        for ended in await self._store.open(session, most=self._most):
            self._forget(ended)
        self._keep(session)
        return session

    async def find(self, id: str, principal: str) -> Session | None:
        """The principal's session with that id, if it still lives. Finding it counts as using it."""
        if len(id) > _LONGEST_ID:
            return None
        known = self._warm.get(id)
        warm = known or await self._load(id)
        if warm is None or warm.session.principal != principal:
            return None
        now = self._now()
        # What the store knows of its last use may be older than the last use by another process.
        lag = timedelta(0) if known else self._lag
        if warm.seen + self._idle + lag < now and not self._busy(id):
            await self._end(id)
            return None
        warm.seen = now
        self._warm.move_to_end(id)
        return warm.session

    async def save(self, session: Session, state: State) -> None:
        """Store the state that a call ended with, if it changed it; the last call to finish wins."""
        if state == session.state:
            return
        await self._store.save(session.id, state)
        # Not before: a state that was not stored must not be taken for one that need not be.
        warm = self._warm.get(session.id)
        if warm is not None:
            warm.session = replace(warm.session, state=state)

    def landed(self, id: str) -> None:
        """The last running call of a session has ended: it was in use until now."""
        warm = self._warm.get(id)
        if warm is not None:
            warm.seen = self._now()

    async def end(self, session: Session) -> None:
        """End a session, as its principal asked. Where this raises StoreAway the session goes on as before."""
        await self._end(session.id)

    def hear(self, change: Change | None) -> None:
        """Forget what ended elsewhere; everything when that is in doubt."""
        match change:
            case None:
                for id in list(self._warm):
                    self._evict(id)
            case Change(Subject.SESSION, id):
                self._forget(id)

    def __len__(self) -> int:
        """How many are in memory because they are in use."""
        return len(self._warm)

    async def tidy(self) -> None:
        """Write what use moved forward, forget what fell idle, and end what expired. Called every `tidy_every`."""
        now = self._now()
        self._note_busy(now)
        due = now - self._idle
        await self._touch(
            {id: warm for id, warm in self._warm.items() if self._is_stale(warm) or warm.stored <= due < warm.seen}
        )
        for id in [id for id, warm in self._warm.items() if now - warm.seen >= self._touch_after]:
            del self._warm[id]
        await self._store.sweep(due - min(SWEEP_MARGIN, self._idle))

    async def flush(self) -> None:
        """Write every use that the store does not know yet. Called on the way out."""
        await self._touch(self._used_since_stored())

    def _note_busy(self, now: datetime) -> None:
        """A call that runs is use."""
        for id, warm in self._warm.items():
            if self._busy(id):
                warm.seen = now

    def _used_since_stored(self, principal: str | None = None) -> dict[str, _Warm]:
        return {
            id: warm
            for id, warm in self._warm.items()
            if warm.seen > warm.stored and principal in (None, warm.session.principal)
        }

    def _is_stale(self, warm: _Warm) -> bool:
        """Whether the store has fallen behind by more than it may."""
        return warm.seen - warm.stored >= self._touch_after

    async def _touch(self, warm: dict[str, _Warm]) -> None:
        owed, self._owed = self._owed, {}
        seen = owed | {id: entry.seen for id, entry in warm.items()}
        if not seen:
            return
        try:
            await self._store.touch(seen)
        except BaseException:
            self._owed = owed | self._owed
            raise
        for id, entry in warm.items():
            entry.stored = seen[id]

    async def _end(self, id: str) -> None:
        # Forgotten once it has ended, and not before: while the store is away nothing could find it again.
        await self._store.end(id)
        self._forget(id)

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
        if self._is_stale(evicted):
            self._owed[id] = evicted.seen

    def _keep(self, session: Session) -> _Warm:
        warm = _Warm(session, session.last_seen, session.last_seen)
        self._warm[session.id] = warm
        while len(self._warm) > self._most_warm:
            self._evict(next(iter(self._warm)))
        return warm
