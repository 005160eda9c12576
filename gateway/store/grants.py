"""Grants as rows: fills `mcp.grants.GrantStore`. Knows no rule and no tool.

Every statement but the sweep names the principal in its condition, so that no other's row is read or changed. Grants
of a session go with its row, by the foreign key.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, assert_never

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, tuple_, union_all, update
from sqlalchemy.exc import IntegrityError

from auth.ports import Page
from gateway.store import pages, values
from gateway.store.engine import Database, executing, one_at_a_time
from gateway.store.tables import grant as table
from gateway.store.tables import session
from mcp.grants import MOST_GRANTS, Grant, OfHarness, OfSession, can_be_kept

_OWNED: Final = table.c.principal == bindparam("owner")
_INSERT: Final = insert(table)
_SAME: Final = select(table).where(_OWNED, table.c.digest == bindparam("same"))
_PROLONG: Final = update(table).where(_OWNED, table.c.id == bindparam("key")).values(expires_at=bindparam("until"))
#: Whoever ends the session meanwhile waits for the grant, and ends that too.
_SESSION: Final = (
    select(session.c.id)
    .where(session.c.id == bindparam("key"), session.c.principal == bindparam("owner"))
    .with_for_update(read=True, key_share=True)
)
_NEWEST: Final = (table.c.created_at.desc(), table.c.id.desc())
_OLDEST: Final = select(table.c.id).where(_OWNED).order_by(*_NEWEST).offset(bindparam("kept"))
_END_OLDEST: Final = delete(table).where(table.c.id.in_(_OLDEST))
_OF_HARNESS: Final = select(table).where(
    _OWNED, table.c.harness == bindparam("in_harness"), table.c.expires_at > bindparam("now")
)
#: Two searches, each along an index of its own.
_OF_BOTH: Final = union_all(_OF_HARNESS, select(table).where(_OWNED, table.c.session == bindparam("in_session")))
_LIST: Final = select(table).where(_OWNED).order_by(*_NEWEST).limit(bindparam("most"))
_REMOVE: Final = delete(table).where(_OWNED, table.c.id == bindparam("key"))
_SWEEP: Final = delete(table).where(table.c.expires_at <= bindparam("now"))


class SqlGrants:
    """`GrantStore` on a database. Times must be aware and text `storable`, else ValueError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """One write transaction. A principal's grants are added one after the other, so that `most` holds."""
        row = _row(grant)

        def job(connection: Connection) -> Grant | None:
            one_at_a_time(connection, grant.principal)
            same = connection.execute(_SAME, {"owner": grant.principal, "same": row["digest"]}).one_or_none()
            if same is not None:
                return _prolonged(connection, _grant(same), row)
            if not _may_begin(connection, grant):
                return None
            connection.execute(_END_OLDEST, {"owner": grant.principal, "kept": max(most - 1, 0)})
            connection.execute(_INSERT, row)
            return _grant(connection.execute(_SAME, {"owner": grant.principal, "same": row["digest"]}).one())

        try:
            return await self._database.write(job)
        except IntegrityError:
            raise ValueError("the grant id is taken") from None

    async def covering(self, principal: str, session: str | None, harness: str, now: datetime) -> tuple[Grant, ...]:
        """One statement, along indexes."""
        bound = {"owner": principal, "in_harness": harness, "now": values.utc(now)}
        if not values.storable(principal, session, harness):
            return ()
        statement = _OF_HARNESS if session is None else _OF_BOTH
        bound |= {} if session is None else {"in_session": session}
        rows = await self._database.read(lambda connection: connection.execute(statement, bound).all())
        return tuple(sorted(map(_grant, rows), key=lambda grant: (grant.created, grant.id)))

    async def list(self, principal: str, *, after: str | None = None, limit: int = 100) -> Page[Grant]:
        """One statement, along an index, wherever in the list the page lies."""
        query = _LIST
        if after is not None:
            query = query.where(tuple_(table.c.created_at, table.c.id) < values.parse_position(after))
        if not values.storable(principal):
            return Page(())
        bound = {"owner": principal, "most": limit + 1}
        rows = await self._database.read(lambda connection: connection.execute(query, bound).all())
        return pages.grants([_grant(row) for row in rows], limit)

    async def remove(self, principal: str, id: str) -> bool:
        """One statement."""
        if not values.storable(principal, id):
            return False
        return await self._database.write(executing(_REMOVE, {"owner": principal, "key": id})) > 0

    async def sweep(self, now: datetime) -> int:
        """One statement, however many there are."""
        return await self._database.write(executing(_SWEEP, {"now": values.utc(now)}))


def _prolonged(connection: Connection, kept: Grant, row: dict[str, Any]) -> Grant:
    """The grant that is there already, until the later of both times."""
    until = row["expires_at"]
    if not isinstance(kept.reach, OfHarness) or kept.reach.expires >= until:
        return kept
    connection.execute(_PROLONG, {"owner": kept.principal, "key": kept.id, "until": until})
    return replace(kept, reach=replace(kept.reach, expires=until))


def _may_begin(connection: Connection, grant: Grant) -> bool:
    """Whether there is what the grant is to end with."""
    if isinstance(grant.reach, OfHarness):
        return True
    return connection.execute(_SESSION, {"owner": grant.principal, "key": grant.reach.id}).one_or_none() is not None


def _row(grant: Grant) -> dict[str, Any]:
    values.require_storable(grant.id, grant.principal, grant.reach.id, grant.tool, grant.subject)
    if not can_be_kept(grant.subject):
        raise ValueError("the subject of a grant is too long")
    match grant.reach:
        case OfSession(id):
            reach: dict[str, Any] = {"session": id, "harness": None, "expires_at": None}
        case OfHarness(id, expires):
            reach = {"session": None, "harness": id, "expires_at": values.utc(expires)}
        case _:
            assert_never(grant.reach)
    named = (grant.principal, reach["session"], reach["harness"], grant.tool, grant.subject)
    return reach | {
        "id": grant.id,
        "principal": grant.principal,
        "tool": grant.tool,
        "subject": grant.subject,
        "digest": hashlib.sha256(values.dump(named).encode()).digest(),
        "created_at": values.utc(grant.created),
    }


def _grant(row: Row[Any]) -> Grant:
    reach = OfSession(row.session) if row.harness is None else OfHarness(row.harness, row.expires_at)
    return Grant(row.id, row.principal, reach, row.tool, row.subject, row.created_at)
