"""Tokens as rows: fills `auth.ports.TokenStore`. Sees digests only, never a secret."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, exists, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from auth import scopes
from auth.changes import Change, Subject
from auth.ports import Also, Found, Obstacle, Page
from auth.tokens import Kind, PrincipalRecord, TokenRecord
from gateway.store import grants, pages, principals, values
from gateway.store.engine import Database, executing
from gateway.store.principals import Record
from gateway.store.tables import principal as owner
from gateway.store.tables import token as table

_INSERT: Final = insert(table)
_OWNER: Final = {"owner_created_at": owner.c.created_at, "owner_created_by": owner.c.created_by} | {
    "owner_disabled_at": owner.c.disabled_at,
    "owner_disabled_by": owner.c.disabled_by,
}
_LOOKUP: Final = (
    select(table, *(column.label(label) for label, column in _OWNER.items()))
    .join(owner, owner.c.id == table.c.principal)
    .where(table.c.hash == bindparam("sha256"))
)
_EVER_ANY: Final = select(exists(select(table.c.id)))
_FIND: Final = select(table).where(table.c.id == bindparam("key"))
_PLACE: Final = tuple_(table.c.created_at, table.c.id)
_REVOKE: Final = (
    update(table)
    .where(table.c.id == bindparam("key"), or_(table.c.revoked_at.is_(None), table.c.revoked_at > bindparam("at")))
    .values(revoked_at=bindparam("at"), revoked_by=bindparam("by"))
)
_REPLACE: Final = (
    update(table)
    .where(table.c.id == bindparam("key"), table.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"), revoked_by=bindparam("by"))
)
_TOUCH: Final = (
    update(table)
    .where(
        table.c.id == bindparam("key"),
        or_(table.c.last_used_at.is_(None), table.c.last_used_at < bindparam("used")),
    )
    .values(last_used_at=bindparam("used"))
)


class SqlTokens:
    """`TokenStore` on a database."""

    def __init__(self, database: Database, record: Record) -> None:
        self._database = database
        self._record = record

    async def lookup(self, sha256: bytes) -> Found | None:
        """One statement."""

        def job(connection: Connection) -> Found | None:
            row = connection.execute(_LOOKUP, {"sha256": sha256}).one_or_none()
            return None if row is None else (_token(row), _principal(row))

        return await self._database.read(job)

    async def ever_any(self) -> bool:
        """One statement that reads one row."""
        return await self._database.read(lambda connection: bool(connection.execute(_EVER_ANY).scalar_one()))

    async def create(
        self, token: TokenRecord, sha256: bytes, *, make_principal: bool = False, also: Also | None = None
    ) -> Obstacle | None:
        """One transaction."""
        row = _row(token, sha256)

        def job(connection: Connection) -> Obstacle | None:
            if make_principal:
                self._make_principal(connection, token)
            if obstacle := _owner_obstacle(principals.find(connection, token.principal)):
                return obstacle
            self._insert(connection, row, also)
            return None

        return await self._write(job)

    async def get(self, id: str) -> TokenRecord | None:
        """One statement."""
        return await self._database.read(lambda connection: _find(connection, id)) if values.storable(id) else None

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page[TokenRecord]:
        """One statement."""
        before = pages.tokens_after(after)
        if not values.storable(principal):
            return Page(())
        statement = select(table).order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit + 1)
        if principal is not None:
            statement = statement.where(table.c.principal == principal)
        if before is not None:
            statement = statement.where(tuple_(*before) > _PLACE)

        def job(connection: Connection) -> list[TokenRecord]:
            return [_token(row) for row in connection.execute(statement)]

        return pages.tokens(await self._database.read(job), limit)

    async def revoke(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> TokenRecord | None:
        """One transaction."""
        values.require_storable(by)
        bound = {"key": id, "at": values.utc(at), "by": by}
        if not values.storable(id):
            return None

        def job(connection: Connection) -> TokenRecord | None:
            if connection.execute(_REVOKE, bound).rowcount:
                grants.end_of_token(connection, id)
                self._changed(connection, id)
                if also is not None:
                    also(connection)
            return _find(connection, id)

        return await self._database.write(job)

    async def rotate(
        self, id: str, successor: TokenRecord, sha256: bytes, *, ends: datetime, also: Also | None = None
    ) -> Obstacle | None:
        """One transaction; of several at once the one that updates the row first succeeds."""
        bound = {"key": id, "at": values.utc(ends), "by": successor.created_by}
        row = _row(successor, sha256)

        def job(connection: Connection) -> Obstacle | None:
            token = _find(connection, id) if values.storable(id) else None
            if token is None:
                return Obstacle.TOKEN_UNKNOWN
            if token.expires is not None and token.expires <= successor.created:
                return Obstacle.TOKEN_ENDED
            if token.revoked is None and (obstacle := _owner_obstacle(principals.find(connection, token.principal))):
                return obstacle
            if not connection.execute(_REPLACE, bound).rowcount:
                return Obstacle.TOKEN_ENDED
            if ends <= successor.created:
                grants.end_of_token(connection, id)
            self._changed(connection, id)
            self._insert(connection, row, also)
            return None

        return await self._write(job)

    async def touch(self, used: Mapping[str, datetime]) -> None:
        """One transaction for all; in order of id, so that two touches never wait for each other in a circle."""
        moments = sorted((id, values.utc(moment)) for id, moment in used.items())
        if rows := [{"key": id, "used": moment} for id, moment in moments if values.storable(id)]:
            await self._database.write(executing(_TOUCH, rows))

    async def _write(self, job: Any) -> Obstacle | None:
        try:
            return await self._database.write(job)
        except IntegrityError:
            raise ValueError("the token is taken") from None

    def _make_principal(self, connection: Connection, token: TokenRecord) -> None:
        if principals.make(connection, PrincipalRecord(token.principal, token.created, token.created_by)):
            self._record(connection, Change(Subject.PRINCIPAL, token.principal))

    def _insert(self, connection: Connection, row: dict[str, Any], also: Also | None) -> None:
        connection.execute(_INSERT, row)
        self._changed(connection, row["id"])
        if also is not None:
            also(connection)

    def _changed(self, connection: Connection, id: str) -> None:
        self._record(connection, Change(Subject.TOKEN, id))


def _owner_obstacle(principal: PrincipalRecord | None) -> Obstacle | None:
    """Why that principal can have no new token."""
    if principal is None:
        return Obstacle.PRINCIPAL_UNKNOWN
    return None if principal.disabled is None else Obstacle.PRINCIPAL_DISABLED


def _find(connection: Connection, id: str) -> TokenRecord | None:
    row = connection.execute(_FIND, {"key": id}).one_or_none()
    return None if row is None else _token(row)


def _row(token: TokenRecord, sha256: bytes) -> dict[str, Any]:
    texts = (token.id, token.prefix, token.last4, token.principal, token.name, token.created_by, token.revoked_by)
    values.require_storable(*texts)
    return {
        "id": token.id,
        "hash": sha256,
        "kind": token.kind.value,
        "prefix": token.prefix,
        "last4": token.last4,
        "principal": token.principal,
        "name": token.name,
        "scopes": scopes.text(token.scopes),
        "created_at": values.utc(token.created),
        "created_by": token.created_by,
        "expires_at": _utc(token.expires),
        "last_used_at": _utc(token.last_used),
        "revoked_at": _utc(token.revoked),
        "revoked_by": token.revoked_by,
    }


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else values.utc(moment)


def _token(row: Row[Any]) -> TokenRecord:
    return TokenRecord(
        id=row.id,
        kind=Kind(row.kind),
        prefix=row.prefix,
        last4=row.last4,
        principal=row.principal,
        name=row.name,
        scopes=scopes.stored(row.scopes),
        created=row.created_at,
        created_by=row.created_by,
        expires=row.expires_at,
        last_used=row.last_used_at,
        revoked=row.revoked_at,
        revoked_by=row.revoked_by,
    )


def _principal(row: Row[Any]) -> PrincipalRecord:
    return PrincipalRecord(
        row.principal, row.owner_created_at, row.owner_created_by, row.owner_disabled_at, row.owner_disabled_by
    )
