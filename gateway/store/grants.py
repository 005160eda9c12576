"""Grants as rows: fills `mcp.grants.GrantStore`. Knows no rule and no tool.

Every statement for a principal names it in its condition, so that no other's row is read or changed. Grants of a
session go with its row, by the foreign key; those of a token and of a principal go in the transaction that ends these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, assert_never

from sqlalchemy import Connection, Row, bindparam, delete, exists, insert, or_, select, tuple_, union_all, update
from sqlalchemy.exc import IntegrityError

from auth.ports import Also, Page
from gateway.store import pages, values
from gateway.store.engine import Database, executing, one_at_a_time
from gateway.store.tables import grant as table
from gateway.store.tables import principal, session, token
from mcp.grants import MOST_GRANTS, Grant, OfHarness, OfSession, can_be_kept

_OWNED: Final = table.c.principal == bindparam("owner")
_INSERT: Final = insert(table)
_SAME: Final = select(table).where(_OWNED, table.c.digest == bindparam("same"))
_PROLONG: Final = update(table).where(_OWNED, table.c.id == bindparam("key")).values(expires_at=bindparam("until"))
#: Whoever ends one of these meanwhile waits for the grant, and ends that too.
_SESSION: Final = (
    select(session.c.id)
    .where(session.c.id == bindparam("key"), session.c.principal == bindparam("owner"))
    .with_for_update(read=True, key_share=True)
)
_PRINCIPAL: Final = (
    select(principal.c.disabled_at).where(principal.c.id == bindparam("owner")).with_for_update(read=True)
)
_VALID: Final = (
    or_(token.c.revoked_at.is_(None), token.c.revoked_at > bindparam("now")),
    or_(token.c.expires_at.is_(None), token.c.expires_at > bindparam("now")),
)
_TOKEN: Final = (
    select(token.c.id)
    .where(token.c.id == bindparam("key"), token.c.principal == bindparam("owner"), *_VALID)
    .with_for_update(read=True)
)
_NEWEST: Final = (table.c.created_at.desc(), table.c.id.desc())
_OLDEST: Final = select(table.c.id).where(_OWNED).order_by(*_NEWEST).offset(bindparam("kept"))
_END_OLDEST: Final = delete(table).where(table.c.id.in_(_OLDEST))
_TOKEN_COUNTS: Final = or_(table.c.token.is_(None), exists().where(token.c.id == table.c.token, *_VALID))
_OF_HARNESS: Final = select(table).where(
    _OWNED, table.c.harness == bindparam("in_harness"), table.c.expires_at > bindparam("now"), _TOKEN_COUNTS
)
#: Two searches, each along an index of its own.
_OF_BOTH: Final = union_all(
    _OF_HARNESS, select(table).where(_OWNED, table.c.session == bindparam("in_session"), _TOKEN_COUNTS)
)
_LIST: Final = select(table).order_by(*_NEWEST).limit(bindparam("most"))
_COUNTING: Final = (or_(table.c.expires_at.is_(None), table.c.expires_at > bindparam("now")), _TOKEN_COUNTS)
_REMOVE: Final = delete(table).where(table.c.id == bindparam("key")).returning(table)
_ENDED: Final = select(token.c.id).where(
    or_(token.c.revoked_at <= bindparam("now"), token.c.expires_at <= bindparam("now"))
)
_SWEEP: Final = delete(table).where(or_(table.c.expires_at <= bindparam("now"), table.c.token.in_(_ENDED)))
_END_OF_TOKEN: Final = delete(table).where(table.c.token == bindparam("key"))
_END_OF_PRINCIPAL: Final = delete(table).where(_OWNED)


def end_of_token(connection: Connection, id: str) -> None:
    """In the transaction that ends a token, after it is marked so: its grants end too."""
    connection.execute(_END_OF_TOKEN, {"key": id})


def end_of_principal(connection: Connection, id: str) -> None:
    """In the transaction that disables a principal, after it is marked so: its grants end too."""
    connection.execute(_END_OF_PRINCIPAL, {"owner": id})


class SqlGrants:
    """`GrantStore` on a database. Times must be aware and text `storable`, else ValueError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """One write transaction. A principal's grants are added one after the other, so that `most` holds."""
        row = _row(grant)

        def job(connection: Connection) -> Grant | None:
            one_at_a_time(connection, grant.principal)
            if not _may_begin(connection, grant):
                return None
            same = connection.execute(_SAME, {"owner": grant.principal, "same": row["digest"]}).one_or_none()
            if same is not None:
                return _prolonged(connection, _grant(same), row)
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

    async def list(
        self, principal: str | None, *, now: datetime | None = None, after: str | None = None, limit: int = 100
    ) -> Page[Grant]:
        """One statement, along an index, wherever in the list the page lies."""
        query = _LIST
        bound: dict[str, Any] = {"most": limit + 1}
        if after is not None:
            query = query.where(tuple_(table.c.created_at, table.c.id) < values.parse_position(after))
        if now is not None:
            query = query.where(*_COUNTING)
            bound["now"] = values.utc(now)
        if principal is not None:
            query = query.where(_OWNED)
            bound["owner"] = principal
        if not values.storable(principal):
            return Page(())
        rows = await self._database.read(lambda connection: connection.execute(query, bound).all())
        return pages.grants([_grant(row) for row in rows], limit)

    async def remove(
        self, principal: str | None, id: str, *, also: Callable[[Grant], Also] | None = None
    ) -> Grant | None:
        """One transaction."""
        if not values.storable(principal, id):
            return None
        statement, bound = _REMOVE, {"key": id}
        if principal is not None:
            statement, bound = statement.where(_OWNED), bound | {"owner": principal}

        def job(connection: Connection) -> Grant | None:
            row = connection.execute(statement, bound).one_or_none()
            if row is None:
                return None
            ended = _grant(row)
            if also is not None:
                also(ended)(connection)
            return ended

        return await self._database.write(job)

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
    """Whether there is all that the grant is to end with. A principal without a row is one that nobody can disable."""
    owned = {"owner": grant.principal}
    if connection.execute(_PRINCIPAL, owned).scalar() is not None:
        return False
    if grant.token is not None:
        given = owned | {"key": grant.token, "now": values.utc(grant.created)}
        if connection.execute(_TOKEN, given).one_or_none() is None:
            return False
    if isinstance(grant.reach, OfHarness):
        return True
    return connection.execute(_SESSION, owned | {"key": grant.reach.id}).one_or_none() is not None


def _row(grant: Grant) -> dict[str, Any]:
    values.require_storable(
        grant.id, grant.principal, grant.reach.id, grant.tool, grant.subject, grant.rule, grant.token
    )
    if not can_be_kept(grant.subject):
        raise ValueError("the subject of a grant is too long")
    match grant.reach:
        case OfSession(id):
            reach: dict[str, Any] = {"session": id, "harness": None, "expires_at": None}
        case OfHarness(id, expires):
            reach = {"session": None, "harness": id, "expires_at": values.utc(expires)}
        case _:
            assert_never(grant.reach)
    named = (grant.principal, reach["session"], reach["harness"], grant.tool, grant.subject, grant.rule, grant.token)
    return reach | {
        "id": grant.id,
        "principal": grant.principal,
        "tool": grant.tool,
        "subject": grant.subject,
        "rule": grant.rule,
        "token": grant.token,
        "digest": hashlib.sha256(values.dump(named).encode()).digest(),
        "created_at": values.utc(grant.created),
    }


def _grant(row: Row[Any]) -> Grant:
    reach = OfSession(row.session) if row.harness is None else OfHarness(row.harness, row.expires_at)
    return Grant(row.id, row.principal, reach, row.tool, row.subject, row.rule or "", row.created_at, row.token)
