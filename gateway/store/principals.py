"""Principals as rows: fills `auth.ports.PrincipalStore`. Knows no token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Executable, Row, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from auth.changes import Change, Subject
from auth.ports import Also, Page
from auth.tokens import PrincipalRecord
from gateway.store import grants, pages, values
from gateway.store.engine import Database
from gateway.store.tables import principal as table

#: Writes a change in the transaction that makes it.
Record = Callable[[Connection, Change], None]

_KEEP_THE_FIRST: Final = {
    "sqlite": sqlite.insert(table).on_conflict_do_nothing().returning(table.c.id),
    "postgresql": postgresql.insert(table).on_conflict_do_nothing().returning(table.c.id),
}
_FIND: Final = select(table).where(table.c.id == bindparam("key"))
_LIST: Final = select(table).order_by(table.c.id).limit(bindparam("most"))
_LIST_AFTER: Final = _LIST.where(table.c.id > bindparam("last"))
_DISABLE: Final = (
    update(table)
    .where(table.c.id == bindparam("key"), table.c.disabled_at.is_(None))
    .values(disabled_at=bindparam("at"), disabled_by=bindparam("by"))
)
_ENABLE: Final = (
    update(table)
    .where(table.c.id == bindparam("key"), table.c.disabled_at.is_not(None))
    .values(disabled_at=None, disabled_by=None)
)


class SqlPrincipals:
    """`PrincipalStore` on a database."""

    def __init__(self, database: Database, record: Record) -> None:
        self._database = database
        self._record = record

    async def create(self, principal: PrincipalRecord, *, also: Also | None = None) -> bool:
        """One transaction."""
        require_storable(principal)

        def job(connection: Connection) -> bool:
            if not make(connection, principal):
                return False
            self._record(connection, Change(Subject.PRINCIPAL, principal.id))
            if also is not None:
                also(connection)
            return True

        return await self._database.write(job)

    async def get(self, id: str) -> PrincipalRecord | None:
        """One statement."""
        return await self._database.read(lambda connection: find(connection, id)) if values.storable(id) else None

    async def list(self, *, after: str | None = None, limit: int = 100) -> Page[PrincipalRecord]:
        """One statement."""
        values.require_storable(after)
        statement = _LIST if after is None else _LIST_AFTER
        bound = {"most": limit + 1} | ({} if after is None else {"last": after})

        def job(connection: Connection) -> list[PrincipalRecord]:
            return [principal_of(row) for row in connection.execute(statement, bound)]

        return pages.principals(await self._database.read(job), limit)

    async def disable(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> PrincipalRecord | None:
        """One transaction."""
        values.require_storable(by)
        return await self._change(_DISABLE, {"key": id, "at": values.utc(at), "by": by}, _first_its_grants(id, also))

    async def enable(self, id: str, *, also: Also | None = None) -> PrincipalRecord | None:
        """One transaction. Who disabled it is forgotten here; the audit log knows."""
        return await self._change(_ENABLE, {"key": id}, also)

    async def _change(self, statement: Executable, bound: dict[str, Any], also: Also | None) -> PrincipalRecord | None:
        id = bound["key"]
        if not values.storable(id):
            return None

        def job(connection: Connection) -> PrincipalRecord | None:
            if connection.execute(statement, bound).rowcount:
                self._record(connection, Change(Subject.PRINCIPAL, id))
                if also is not None:
                    also(connection)
            return find(connection, id)

        return await self._database.write(job)


def _first_its_grants(id: str, also: Also | None) -> Also:
    def end(connection: Connection) -> None:
        grants.end_of_principal(connection, id)
        if also is not None:
            also(connection)

    return end


def require_storable(principal: PrincipalRecord) -> None:
    """Raise ValueError unless every database takes it."""
    values.require_storable(principal.id, principal.created_by, principal.disabled_by)
    for moment in (principal.created, principal.disabled):
        if moment is not None:
            values.utc(moment)


def make(connection: Connection, principal: PrincipalRecord) -> bool:
    """Insert the row unless the id is there; whether it was inserted. Others may do the same at once."""
    row = {
        "id": principal.id,
        "created_at": principal.created,
        "created_by": principal.created_by,
        "disabled_at": principal.disabled,
        "disabled_by": principal.disabled_by,
    }
    return connection.execute(_KEEP_THE_FIRST[connection.dialect.name], row).one_or_none() is not None


def find(connection: Connection, id: str) -> PrincipalRecord | None:
    """The principal with that id."""
    row = connection.execute(_FIND, {"key": id}).one_or_none()
    return None if row is None else principal_of(row)


def principal_of(row: Row[Any]) -> PrincipalRecord:
    """The record of a row."""
    return PrincipalRecord(row.id, row.created_at, row.created_by, row.disabled_at, row.disabled_by)
