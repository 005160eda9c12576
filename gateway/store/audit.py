"""The audit log as rows: fills `telemetry.audit.AuditSink`. Appends and reads; nothing here changes or removes a row.

The time of a row is the database's: its clock at the write, less the age that the record has by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Float, Row, Select, bindparam, select
from sqlalchemy import insert as insert_into
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from gateway.store import values
from gateway.store.engine import Database
from gateway.store.tables import Moment
from gateway.store.tables import audit as table
from telemetry.audit import COLUMNS, AuditRecord, AuditRow, tidy


class _Ago(FunctionElement[datetime]):
    """The database's clock, some seconds ago."""

    type = Moment()
    inherit_cache = True
    name = "ago"


@compiles(_Ago, "sqlite")
def _ago_in_sqlite(element: _Ago, compiler: SQLCompiler, **options: Any) -> str:
    # SQLite knows milliseconds; the zeros make its text what the column's type writes.
    age = compiler.process(element.clauses, **options)
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', {age}))"


@compiles(_Ago, "postgresql")
def _ago_in_postgresql(element: _Ago, compiler: SQLCompiler, **options: Any) -> str:
    age = compiler.process(element.clauses, **options)
    return f"clock_timestamp() - make_interval(secs => CAST({age} AS double precision))"


_INSERT: Final = insert_into(table).values(
    {"at": _Ago(bindparam("age", type_=Float()))} | {name: bindparam(name) for name in COLUMNS}
)
_ALL: Final = select(table)
_columns: Final = attrgetter(*COLUMNS)


def insert(connection: Connection, record: AuditRecord) -> None:
    """Append one row in the caller's transaction, so that a change and its row commit together.

    Any record is taken, tidied: what is odd about an id must not undo the change.
    """
    connection.execute(_INSERT, _parameters(tidy(record)))


class SqlAudit:
    """`AuditSink` on a database. Text must be `storable`, else ValueError; raises StoreUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, records: Sequence[AuditRecord]) -> None:
        """One transaction for all."""
        rows = [_parameters(record) for record in records]
        if rows:
            await self._database.write(lambda connection: _insert_all(connection, rows))

    async def page(
        self,
        *,
        principal: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 100,
    ) -> tuple[AuditRow, ...]:
        """One statement."""
        if not values.storable(principal, action):
            return ()
        query = _matching(principal, action, since)
        if after is not None:
            query = query.where(table.c.seq < after if newest_first else table.c.seq > after)
        ordered = query.order_by(table.c.seq.desc() if newest_first else table.c.seq).limit(max(limit, 0))
        rows = await self._database.read(lambda connection: connection.execute(ordered).all())
        return tuple(_row(row) for row in rows)


def _insert_all(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(_INSERT, rows)


def _matching(principal: str | None, action: str | None, since: datetime | None) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = []
    if principal is not None:
        conditions.append(table.c.principal == principal)
    if action is not None:
        conditions.append(table.c.action == action)
    if since is not None:
        conditions.append(table.c.at >= values.utc(since))
    return _ALL.where(*conditions)


def _parameters(record: AuditRecord) -> dict[str, Any]:
    parameters = dict(zip(COLUMNS, _columns(record), strict=True))
    values.require_storable(*(value for value in parameters.values() if isinstance(value, str)))
    return parameters | {"age": record.age}


def _row(row: Row[Any]) -> AuditRow:
    return AuditRow(row.seq, row.at, AuditRecord(**{name: getattr(row, name) for name in COLUMNS}))
