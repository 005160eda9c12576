"""What sessions subscribe to as rows: fills `mcp.subscriptions.SubscriptionStore`. Knows no resource.

They go with the row of their session, by the foreign key.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select

from auth.changes import Change, Subject
from gateway.store import values
from gateway.store.changes import record
from gateway.store.engine import Database, one_at_a_time
from gateway.store.tables import session as sessions
from gateway.store.tables import subscription as table
from mcp.subscriptions import can_be_kept

_INSERT: Final = insert(table)
#: Whoever ends the session meanwhile waits for the subscription, and ends that too.
_SESSION: Final = (
    select(sessions.c.id).where(sessions.c.id == bindparam("of")).with_for_update(read=True, key_share=True)
)
_OF: Final = select(table.c.uri).where(table.c.session == bindparam("of"))
_REMOVE: Final = delete(table).where(table.c.session == bindparam("of"), table.c.uri == bindparam("name"))


class SqlSubscriptions:
    """`SubscriptionStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: str, uri: str, *, most: int) -> bool:
        """One write transaction. A session's are added one after the other, so that `most` holds."""
        if not can_be_kept(uri):
            raise ValueError("the URI cannot be a key")
        if not values.storable(session):
            return False

        def job(connection: Connection) -> bool:
            one_at_a_time(connection, session)
            there = connection.execute(_OF, {"of": session}).scalars().all()
            if uri in there:
                return True
            if len(there) >= most or connection.execute(_SESSION, {"of": session}).one_or_none() is None:
                return False
            connection.execute(_INSERT, {"session": session, "uri": uri})
            record(connection, Change(Subject.SUBSCRIPTION, session))
            return True

        return await self._database.write(job)

    async def remove(self, session: str, uri: str) -> bool:
        """One transaction."""
        if not values.storable(session, uri):
            return False

        def job(connection: Connection) -> bool:
            removed = connection.execute(_REMOVE, {"of": session, "name": uri}).rowcount > 0
            if removed:
                record(connection, Change(Subject.SUBSCRIPTION, session))
            return removed

        return await self._database.write(job)

    async def of(self, session: str) -> frozenset[str]:
        """One statement, along the key."""
        if not values.storable(session):
            return frozenset()
        return frozenset(
            await self._database.read(lambda connection: connection.execute(_OF, {"of": session}).scalars().all())
        )
