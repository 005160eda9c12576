"""Sessions as rows: fills `mcp.sessions.SessionStore`. Knows no protocol beyond the fields of a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from auth.changes import Change, Subject
from auth.ports import Also
from gateway.store import values
from gateway.store.changes import record
from gateway.store.engine import Database, executing, one_at_a_time
from gateway.store.tables import session as table
from mcp.protocol.revisions import by_name
from mcp.protocol.state import LogLevel, State
from mcp.sessions import Session

_INSERT: Final = insert(table)
_FIND: Final = select(table).where(table.c.id == bindparam("key"))
_IDLEST: Final = (
    select(table.c.id)
    .where(table.c.principal == bindparam("owner"))
    .order_by(table.c.last_seen_at.desc(), table.c.id.desc())
    .offset(bindparam("kept"))
)
_END_IDLEST: Final = delete(table).where(table.c.id.in_(_IDLEST)).returning(table.c.id)
_SAVE: Final = update(table).where(table.c.id == bindparam("key"))
_TOUCH: Final = (
    update(table)
    .where(table.c.id == bindparam("key"), table.c.last_seen_at < bindparam("seen"))
    .values(last_seen_at=bindparam("seen"))
)
_END: Final = delete(table).where(table.c.id == bindparam("key"))
_NEWEST: Final = (
    select(table).where(table.c.label.is_not(None)).order_by(table.c.created_at.desc(), table.c.label.desc())
)
_LABELLED: Final = select(table).where(table.c.label == bindparam("name"))
_SWEEP: Final = delete(table).where(table.c.last_seen_at < bindparam("idle_since"))
_COUNT: Final = select(func.count()).select_from(table)


class SqlSessions:
    """`SessionStore` on a database. Times must be aware and text `storable`, else ValueError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, session: Session, *, most: int) -> tuple[str, ...]:
        """One write transaction; the ids in their order. Raises ValueError when the id is taken.

        The new session always stays. A principal's sessions open one after the other, so that `most` holds.
        """
        row = _row(session)

        def job(connection: Connection) -> tuple[str, ...]:
            one_at_a_time(connection, session.principal)
            ended = connection.execute(_END_IDLEST, {"owner": session.principal, "kept": max(most - 1, 0)})
            ids = tuple(sorted(ended.scalars()))
            connection.execute(_INSERT, row)
            for id in ids:
                record(connection, Change(Subject.SESSION, id))
            return ids

        try:
            return await self._database.write(job)
        except IntegrityError:
            raise ValueError("the session id is taken") from None

    async def find(self, id: str) -> Session | None:
        """One statement. A row of a revision that this version does not speak counts as gone."""
        if not values.storable(id):
            return None
        row = await self._database.read(lambda connection: connection.execute(_FIND, {"key": id}).one_or_none())
        return None if row is None else _session(row)

    async def save(self, id: str, state: State) -> None:
        """One statement."""
        if values.storable(id):
            await self._database.write(executing(_SAVE, {"key": id, **_changing(state)}))

    async def touch(self, seen: Mapping[str, datetime]) -> None:
        """One transaction for all; in order of id, so that two touches never wait for each other in a circle."""
        moments = sorted((id, values.utc(moment)) for id, moment in seen.items())
        if rows := [{"key": id, "seen": moment} for id, moment in moments if values.storable(id)]:
            await self._database.write(executing(_TOUCH, rows))

    async def end(self, id: str, *, also: Also | None = None) -> bool:
        """One transaction."""

        def job(connection: Connection) -> bool:
            ended = connection.execute(_END, {"key": id}).rowcount > 0
            if ended:
                record(connection, Change(Subject.SESSION, id))
                if also is not None:
                    also(connection)
            return ended

        return await self._database.write(job) if values.storable(id) else False

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[Session], str | None]:
        """One statement. A session without a label, of an older version's, is left out."""
        query = _NEWEST
        if principal is not None:
            query = query.where(table.c.principal == principal)
        if after is not None:
            query = query.where(tuple_(table.c.created_at, table.c.label) < values.parse_position(after))
        if not values.storable(principal):
            return (), None
        rows = await self._database.read(lambda connection: connection.execute(query.limit(limit + 1)).all())
        return _part([found for row in rows if (found := _session(row)) is not None], limit)

    async def labelled(self, label: str) -> Session | None:
        """One statement."""
        if not values.storable(label):
            return None
        row = await self._database.read(lambda connection: connection.execute(_LABELLED, {"name": label}).first())
        return None if row is None else _session(row)

    async def sweep(self, idle_since: datetime) -> int:
        """One statement, however many there are. No change is recorded: every process tells an idle one by itself."""
        return await self._database.write(executing(_SWEEP, {"idle_since": idle_since}))

    async def count(self) -> int:
        """One statement."""
        return await self._database.read(lambda connection: connection.execute(_COUNT).scalar_one())


def _part(found: Sequence[Session], limit: int) -> tuple[Sequence[Session], str | None]:
    items = found[:limit]
    more = len(found) > limit and items
    return items, values.position(items[-1].created, items[-1].label) if more else None


def _row(session: Session) -> dict[str, Any]:
    state = session.state
    values.require_storable(session.id, state.principal, state.harness)
    return {
        "id": session.id,
        "principal": state.principal,
        "harness": state.harness,
        "revision": state.revision and state.revision.value,
        "client": state.client,
        "capabilities": state.capabilities,
        "label": session.label,
        "created_at": session.created,
        "last_seen_at": session.last_seen,
        **_changing(state),
    }


def _changing(state: State) -> dict[str, Any]:
    """The part of a state that `save` stores."""
    return {"initialized": state.initialized, "log_level": state.log_level and state.log_level.value}


def _session(row: Row[Any]) -> Session | None:
    revision = None if row.revision is None else by_name(row.revision)
    if revision is None and row.revision is not None:
        return None
    state = State(
        principal=row.principal,
        harness=row.harness,
        revision=revision,
        client=row.client,
        capabilities=row.capabilities,
        initialized=row.initialized,
        log_level=None if row.log_level is None else LogLevel(row.log_level),
    )
    return Session(id=row.id, state=state, created=row.created_at, last_seen=row.last_seen_at)
