"""The grants' in-memory twin, beside the twin of the sessions. Never loads SQLAlchemy.

It accepts and refuses exactly what the database does (`tests/gateway/store/test_grants.py`). One event loop uses it;
no method awaits, so each is atomic in it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from auth.ports import Page
from gateway.store import pages, values
from gateway.store.memory import MemorySessions
from mcp.grants import MOST_GRANTS, Grant, OfHarness, OfSession, can_be_kept


class MemoryGrants:
    """`GrantStore` in a dictionary."""

    def __init__(self, sessions: MemorySessions) -> None:
        self._sessions = sessions
        self._grants: dict[str, Grant] = {}
        sessions.watch(self._end_with)

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """Times are kept in UTC."""
        new = _storable(grant)
        same = next((kept for kept in self._grants.values() if _what(kept) == _what(new)), None)
        if same is not None:
            self._grants[same.id] = _later(same, new)
            return self._grants[same.id]
        if isinstance(new.reach, OfSession) and not self._sessions.holds(new.reach.id, new.principal):
            return None
        own = sorted((kept for kept in self._grants.values() if kept.principal == new.principal), key=_place)
        oldest = {kept.id for kept in own[: max(len(own) - max(most - 1, 0), 0)]}
        if new.id in self._grants.keys() - oldest:
            raise ValueError("the grant id is taken")
        self._forget(oldest)
        self._grants[new.id] = new
        return new

    async def covering(self, principal: str, session: str | None, harness: str, now: datetime) -> tuple[Grant, ...]:
        """Every grant is looked at on each call."""
        moment = values.utc(now)
        if not values.storable(session, harness):
            return ()
        own = [kept for kept in self._grants.values() if kept.principal == principal]
        return tuple(sorted((kept for kept in own if _reaches(kept, session, harness, moment)), key=_place))

    async def list(self, principal: str, *, after: str | None = None, limit: int = 100) -> Page[Grant]:
        """Sorted on each call."""
        before = None if after is None else values.parse_position(after)
        own = [kept for kept in self._grants.values() if kept.principal == principal]
        found = [kept for kept in sorted(own, key=_place, reverse=True) if before is None or _place(kept) < before]
        return pages.grants(found[: limit + 1], limit)

    async def remove(self, principal: str, id: str) -> bool:
        """Another's stays."""
        if (kept := self._grants.get(id)) is None or kept.principal != principal:
            return False
        del self._grants[id]
        return True

    async def sweep(self, now: datetime) -> int:
        """At that time or before."""
        moment = values.utc(now)
        expired = {
            kept.id
            for kept in self._grants.values()
            if isinstance(kept.reach, OfHarness) and kept.reach.expires <= moment
        }
        self._forget(expired)
        return len(expired)

    def _end_with(self, session: str) -> None:
        self._forget({kept.id for kept in self._grants.values() if kept.reach == OfSession(session)})

    def _forget(self, ids: set[str]) -> None:
        for id in ids:
            del self._grants[id]


def _storable(grant: Grant) -> Grant:
    values.require_storable(grant.id, grant.principal, grant.reach.id, grant.tool, grant.subject)
    if not can_be_kept(grant.subject):
        raise ValueError("the subject of a grant is too long")
    reach = grant.reach
    if isinstance(reach, OfHarness):
        reach = replace(reach, expires=values.utc(reach.expires))
    return replace(grant, reach=reach, created=values.utc(grant.created))


def _what(grant: Grant) -> tuple[str, type, str, str, str]:
    """What two grants have in common when they are the same one."""
    return grant.principal, type(grant.reach), grant.reach.id, grant.tool, grant.subject


def _later(kept: Grant, new: Grant) -> Grant:
    if isinstance(kept.reach, OfHarness) and isinstance(new.reach, OfHarness):
        return replace(kept, reach=max(kept.reach, new.reach, key=lambda reach: reach.expires))
    return kept


def _reaches(grant: Grant, session: str | None, harness: str, now: datetime) -> bool:
    match grant.reach:
        case OfSession(id):
            return id == session
        case OfHarness(id, expires):
            return id == harness and expires > now


def _place(grant: Grant) -> tuple[datetime, str]:
    return grant.created, grant.id
