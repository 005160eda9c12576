"""In-memory twins of the stores of principals and tokens. Never loads SQLAlchemy.

They accept and refuse exactly what the database does (`tests/gateway/store/test_*_contract.py`). One event loop
uses them; no method awaits, so each is atomic in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from auth.changes import Change, Subject
from auth.ports import Also, Found, Obstacle, Page
from auth.tokens import PrincipalRecord, TokenRecord, revoked
from gateway.store import pages, values

Tell = Callable[[Change], None]


def _to_nobody(_: Change) -> None:
    """Changes that no cache waits for."""


class MemoryPrincipals:
    """`PrincipalStore` in a dictionary. `tell` hears of each change once it is made."""

    def __init__(self, tell: Tell = _to_nobody) -> None:
        self._tell = tell
        self._principals: dict[str, PrincipalRecord] = {}
        self._watchers: list[Callable[[str], None]] = []

    def watch(self, hear: Callable[[str], None]) -> None:
        """Have `hear` called with the id of each principal that is disabled: its grants end in the same transaction."""
        self._watchers.append(hear)

    async def create(self, principal: PrincipalRecord, *, also: Also | None = None) -> bool:
        """Times are kept in UTC."""
        return self.make(principal, also)

    def make(self, principal: PrincipalRecord, also: Also | None = None) -> bool:
        """`create`, for the twin of the tokens."""
        values.require_storable(principal.id, principal.created_by, principal.disabled_by)
        disabled = None if principal.disabled is None else values.utc(principal.disabled)
        kept = replace(principal, created=values.utc(principal.created), disabled=disabled)
        if principal.id in self._principals:
            return False
        if also is not None:
            also(None)
        self._put(kept)
        return True

    async def get(self, id: str) -> PrincipalRecord | None:
        """A frozen value."""
        return self.find(id)

    def find(self, id: str) -> PrincipalRecord | None:
        """`get`, for the twin of the tokens."""
        return self._principals.get(id)

    async def list(self, *, after: str | None = None, limit: int = 100) -> Page[PrincipalRecord]:
        """Sorted on each call."""
        values.require_storable(after)
        found = [self._principals[id] for id in sorted(self._principals) if after is None or id > after]
        return pages.principals(found, limit)

    async def disable(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> PrincipalRecord | None:
        """The first one stands."""
        moment = values.utc(at)
        values.require_storable(by)
        kept = self._principals.get(id)
        if kept is None or kept.disabled is not None:
            return kept
        disabled = self._changed(replace(kept, disabled=moment, disabled_by=by), also)
        for hear in self._watchers:
            hear(id)
        return disabled

    async def enable(self, id: str, *, also: Also | None = None) -> PrincipalRecord | None:
        """Who disabled it is forgotten here; the audit log knows."""
        kept = self._principals.get(id)
        if kept is None or kept.disabled is None:
            return kept
        return self._changed(replace(kept, disabled=None, disabled_by=None), also)

    def _changed(self, principal: PrincipalRecord, also: Also | None) -> PrincipalRecord:
        if also is not None:
            also(None)
        self._put(principal)
        return principal

    def _put(self, principal: PrincipalRecord) -> None:
        self._principals[principal.id] = principal
        self._tell(Change(Subject.PRINCIPAL, principal.id))


@dataclass(frozen=True, slots=True)
class _Kept:
    token: TokenRecord
    sha256: bytes


class MemoryTokens:
    """`TokenStore` in a dictionary, beside the twin of the principals. `tell` hears of each change once it is made."""

    def __init__(self, principals: MemoryPrincipals, tell: Tell = _to_nobody) -> None:
        self.principals = principals
        self._tell = tell
        self._kept: dict[str, _Kept] = {}
        self._ids: dict[bytes, str] = {}
        self._watchers: list[Callable[[str], None]] = []

    def watch(self, hear: Callable[[str], None]) -> None:
        """Have `hear` called with the id of each token that ends at once: its grants end in the same transaction."""
        self._watchers.append(hear)

    async def lookup(self, sha256: bytes) -> Found | None:
        """By the digest."""
        id = self._ids.get(sha256)
        if id is None:
            return None
        token = self._kept[id].token
        principal = self.principals.find(token.principal)
        return None if principal is None else (token, principal)

    async def ever_any(self) -> bool:
        """Tokens are never removed."""
        return bool(self._kept)

    async def create(
        self, token: TokenRecord, sha256: bytes, *, make_principal: bool = False, also: Also | None = None
    ) -> Obstacle | None:
        """All or nothing."""
        kept = self._storable(token, sha256)
        principal = self.principals.find(token.principal)
        if principal is None and not make_principal:
            return Obstacle.PRINCIPAL_UNKNOWN
        if principal is not None and principal.disabled is not None:
            return Obstacle.PRINCIPAL_DISABLED
        self._require_free(kept)
        if also is not None:
            also(None)
        if principal is None:
            self.principals.make(PrincipalRecord(token.principal, token.created, token.created_by))
        self._put(kept)
        return None

    async def get(self, id: str) -> TokenRecord | None:
        """A frozen value."""
        return self.find(id)

    def find(self, id: str) -> TokenRecord | None:
        """`get`, for the twin of the grants."""
        kept = self._kept.get(id)
        return None if kept is None else kept.token

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page[TokenRecord]:
        """Sorted on each call."""
        before = pages.tokens_after(after)
        found = [kept.token for kept in self._kept.values() if principal in {None, kept.token.principal}]
        found.sort(key=_place, reverse=True)
        return pages.tokens([token for token in found if before is None or _place(token) < before], limit)

    async def revoke(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> TokenRecord | None:
        """The earliest one stands."""
        moment = values.utc(at)
        values.require_storable(by)
        if (kept := self._kept.get(id)) is None:
            return None
        changed = replace(kept, token=revoked(kept.token, moment, by))
        if changed != kept:
            if also is not None:
                also(None)
            self._put(changed)
            self._ended(id)
        return changed.token

    async def rotate(
        self, id: str, successor: TokenRecord, sha256: bytes, *, ends: datetime, also: Also | None = None
    ) -> Obstacle | None:
        """All or nothing."""
        moment, following = values.utc(ends), self._storable(successor, sha256)
        if (kept := self._kept.get(id)) is None:
            return Obstacle.TOKEN_UNKNOWN
        token = kept.token
        if token.revoked is not None or (token.expires is not None and token.expires <= following.token.created):
            return Obstacle.TOKEN_ENDED
        principal = self.principals.find(token.principal)
        if principal is None or principal.disabled is not None:
            return Obstacle.PRINCIPAL_DISABLED
        self._require_free(following)
        if also is not None:
            also(None)
        self._put(replace(kept, token=replace(token, revoked=moment, revoked_by=successor.created_by)))
        if moment <= following.token.created:
            self._ended(id)
        self._put(following)
        return None

    async def touch(self, used: Mapping[str, datetime]) -> None:
        """All or none: a naive time refuses the whole call. No cache holds this, so nobody is told."""
        for id, moment in {id: values.utc(moment) for id, moment in used.items()}.items():
            kept = self._kept.get(id)
            if kept is not None and (kept.token.last_used is None or kept.token.last_used < moment):
                self._kept[id] = replace(kept, token=replace(kept.token, last_used=moment))

    def _storable(self, token: TokenRecord, sha256: bytes) -> _Kept:
        texts = (token.id, token.prefix, token.last4, token.principal, token.name, token.created_by, token.revoked_by)
        values.require_storable(*texts)
        expires, last_used, ended = (
            None if moment is None else values.utc(moment) for moment in (token.expires, token.last_used, token.revoked)
        )
        created = values.utc(token.created)
        return _Kept(replace(token, created=created, expires=expires, last_used=last_used, revoked=ended), sha256)

    def _require_free(self, kept: _Kept) -> None:
        if kept.token.id in self._kept or kept.sha256 in self._ids:
            raise ValueError("the token is taken")

    def _ended(self, id: str) -> None:
        for hear in self._watchers:
            hear(id)

    def _put(self, kept: _Kept) -> None:
        self._kept[kept.token.id] = kept
        self._ids[kept.sha256] = kept.token.id
        self._tell(Change(Subject.TOKEN, kept.token.id))


def _place(token: TokenRecord) -> tuple[datetime, str]:
    return token.created, token.id
