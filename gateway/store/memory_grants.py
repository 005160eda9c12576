"""The grants' in-memory twin, beside the twins of what grants end with. Never loads SQLAlchemy.

It accepts and refuses exactly what the database does (`tests/gateway/store/test_grants.py`). One event loop uses it;
no method awaits, so each is atomic in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from auth.ports import Also, Page
from gateway.store import pages, values
from gateway.store.memory import MemorySessions
from gateway.store.memory_auth import MemoryTokens
from mcp.grants import MOST_GRANTS, Grant, OfHarness, OfSession, can_be_kept


class MemoryGrants:
    """`GrantStore` in a dictionary. Without `tokens` there is none, and no principal is disabled."""

    def __init__(self, sessions: MemorySessions, tokens: MemoryTokens | None = None) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._grants: dict[str, Grant] = {}
        sessions.watch(self._end_with)
        if tokens is not None:
            tokens.watch(self._end_of_token)
            tokens.principals.watch(self._end_of_principal)

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """Times are kept in UTC."""
        new = _storable(grant)
        if not self._may_begin(new):
            return None
        same = next((kept for kept in self._grants.values() if _what(kept) == _what(new)), None)
        if same is not None:
            self._grants[same.id] = _later(same, new)
            return self._grants[same.id]
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
        own = [kept for kept in self._grants.values() if kept.principal == principal and self._counts(kept, moment)]
        return tuple(sorted((kept for kept in own if _reaches(kept, session, harness)), key=_place))

    async def list(
        self, principal: str | None, *, now: datetime | None = None, after: str | None = None, limit: int = 100
    ) -> Page[Grant]:
        """Sorted on each call."""
        before = None if after is None else values.parse_position(after)
        moment = None if now is None else values.utc(now)
        own = [kept for kept in self._grants.values() if principal in {None, kept.principal}]
        own = [kept for kept in own if moment is None or self._counts(kept, moment)]
        found = [kept for kept in sorted(own, key=_place, reverse=True) if before is None or _place(kept) < before]
        return pages.grants(found[: limit + 1], limit)

    async def remove(
        self, principal: str | None, id: str, *, also: Callable[[Grant], Also] | None = None
    ) -> Grant | None:
        """Another's stays."""
        if (kept := self._grants.get(id)) is None or principal not in {None, kept.principal}:
            return None
        if also is not None:
            also(kept)(None)
        del self._grants[id]
        return kept

    async def sweep(self, now: datetime) -> int:
        """At that time or before."""
        moment = values.utc(now)
        ended = {kept.id for kept in self._grants.values() if not self._counts(kept, moment)}
        self._forget(ended)
        return len(ended)

    def _may_begin(self, new: Grant) -> bool:
        if self._tokens is not None:
            owner = self._tokens.principals.find(new.principal)
            if owner is not None and owner.disabled is not None:
                return False
        if new.token is not None and not self._is_valid(new.token, new.created, of=new.principal):
            return False
        return not isinstance(new.reach, OfSession) or self._sessions.holds(new.reach.id, new.principal)

    def _counts(self, grant: Grant, now: datetime) -> bool:
        """Whether it has neither expired nor lost its token."""
        if isinstance(grant.reach, OfHarness) and grant.reach.expires <= now:
            return False
        return grant.token is None or self._is_valid(grant.token, now, of=grant.principal)

    def _is_valid(self, token: str, now: datetime, *, of: str) -> bool:
        found = None if self._tokens is None else self._tokens.find(token)
        return found is not None and found.principal == of and (found.until is None or found.until > now)

    def _end_with(self, session: str) -> None:
        self._forget({kept.id for kept in self._grants.values() if kept.reach == OfSession(session)})

    def _end_of_token(self, id: str) -> None:
        self._forget({kept.id for kept in self._grants.values() if kept.token == id})

    def _end_of_principal(self, id: str) -> None:
        self._forget({kept.id for kept in self._grants.values() if kept.principal == id})

    def _forget(self, ids: set[str]) -> None:
        for id in ids:
            del self._grants[id]


def _storable(grant: Grant) -> Grant:
    values.require_storable(
        grant.id, grant.principal, grant.reach.id, grant.tool, grant.subject, grant.rule, grant.token
    )
    if not can_be_kept(grant.subject):
        raise ValueError("the subject of a grant is too long")
    reach = grant.reach
    if isinstance(reach, OfHarness):
        reach = replace(reach, expires=values.utc(reach.expires))
    return replace(grant, reach=reach, created=values.utc(grant.created))


def _what(grant: Grant) -> tuple[object, ...]:
    """What two grants have in common when they are the same one."""
    return grant.principal, type(grant.reach), grant.reach.id, grant.tool, grant.subject, grant.rule, grant.token


def _later(kept: Grant, new: Grant) -> Grant:
    if isinstance(kept.reach, OfHarness) and isinstance(new.reach, OfHarness):
        return replace(kept, reach=max(kept.reach, new.reach, key=lambda reach: reach.expires))
    return kept


def _reaches(grant: Grant, session: str | None, harness: str) -> bool:
    match grant.reach:
        case OfSession(id):
            return id == session
        case OfHarness(id):
            return id == harness


def _place(grant: Grant) -> tuple[datetime, str]:
    return grant.created, grant.id
