"""Open questions to clients as rows: fills `mcp.pending.QuestionStore`. Knows no protocol.

They go with the row of their session, by the foreign key.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from auth.changes import Change, Subject
from gateway.store import values
from gateway.store.changes import record
from gateway.store.engine import Database, executing, one_at_a_time
from gateway.store.tables import Document, session
from gateway.store.tables import question as table
from mcp.pending import Asked, Body

_INSERT: Final = insert(table)
#: Whoever ends the session meanwhile waits for the question, and ends that too.
_SESSION: Final = (
    select(session.c.id)
    .where(session.c.id == bindparam("of"), session.c.principal == bindparam("owner"))
    .with_for_update(read=True, key_share=True)
)
_OPEN: Final = (
    select(func.count())
    .select_from(table)
    .where(table.c.session == bindparam("of"), table.c.created_at >= bindparam("since"))
)
_ANSWER: Final = (
    update(table)
    .where(
        table.c.id == bindparam("key"),
        table.c.session == bindparam("of"),
        table.c.principal == bindparam("owner"),
        table.c.answer.is_(None),
    )
    .values(answer=bindparam("body", type_=Document))
)
_TAKE: Final = (
    delete(table).where(table.c.id == bindparam("key"), table.c.answer.is_not(None)).returning(table.c.answer)
)
_CLOSE: Final = delete(table).where(table.c.id == bindparam("key"))
_SWEEP: Final = delete(table).where(table.c.created_at < bindparam("before"))


class SqlQuestions:
    """`QuestionStore` on a database. Times must be aware and text `storable`, else ValueError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, asked: Asked, *, most: int, since: datetime) -> bool:
        """One write transaction. A session's questions are asked one after the other, so that `most` holds."""
        values.require_storable(asked.id, asked.session, asked.principal)
        counted = {"of": asked.session, "since": values.utc(since)}
        row = {
            "id": asked.id,
            "session": asked.session,
            "principal": asked.principal,
            "created_at": values.utc(asked.created),
        }

        def job(connection: Connection) -> bool:
            one_at_a_time(connection, asked.session)
            owned = {"of": asked.session, "owner": asked.principal}
            if connection.execute(_SESSION, owned).one_or_none() is None:
                return False
            if connection.execute(_OPEN, counted).scalar_one() >= most:
                return False
            connection.execute(_INSERT, row)
            return True

        try:
            return await self._database.write(job)
        except IntegrityError:
            raise ValueError("the question id is taken") from None

    async def answer(self, session: str, principal: str, id: str, body: Body) -> bool:
        """One transaction; the change is heard by the process that waits."""
        if not values.storable(session, principal, id):
            return False
        bound: dict[str, Any] = {"key": id, "of": session, "owner": principal, "body": body}

        def job(connection: Connection) -> bool:
            answered = connection.execute(_ANSWER, bound).rowcount > 0
            if answered:
                record(connection, Change(Subject.QUESTION, id))
            return answered

        return await self._database.write(job)

    async def take(self, id: str) -> Body | None:
        """One statement."""
        if not values.storable(id):
            return None
        return await self._database.write(
            lambda connection: connection.execute(_TAKE, {"key": id}).scalar_one_or_none()
        )

    async def close(self, id: str) -> None:
        """One statement."""
        if values.storable(id):
            await self._database.write(executing(_CLOSE, {"key": id}))

    async def sweep(self, before: datetime) -> int:
        """One statement, however many there are."""
        return await self._database.write(executing(_SWEEP, {"before": values.utc(before)}))
