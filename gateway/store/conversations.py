"""Conversations and their entries as rows: fills `mcp.conversations.ConversationStore`.

Every read names the principal in its condition, so that no other's row can come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from auth.changes import Change, Subject
from gateway.store import values
from gateway.store.changes import record
from gateway.store.engine import Database
from gateway.store.tables import conversation as table
from gateway.store.tables import entry
from mcp.conversations import Conversation, ConversationPage, Entry

_INSERT: Final = insert(table)
_NEXT: Final = (
    update(table)
    .where(table.c.id == bindparam("key"))
    .values(
        entries=table.c.entries + 1,
        updated_at=case((table.c.updated_at < bindparam("at"), bindparam("at")), else_=table.c.updated_at),
    )
    .returning(table.c.entries)
)
_INSERT_ENTRY: Final = insert(entry)
_OWNED: Final = and_(table.c.id == bindparam("key"), table.c.principal == bindparam("owner"))
_FIND: Final = select(table).where(_OWNED)
_IS_OWNED: Final = select(table.c.id).where(_OWNED)
_ENTRIES: Final = (
    select(entry.c.seq, entry.c.ts, entry.c.kind, entry.c.body)
    .where(entry.c.conversation == bindparam("key"), entry.c.seq > bindparam("since"))
    .order_by(entry.c.seq)
    .limit(bindparam("most"))
)
_NEWEST: Final = (
    select(table)
    .where(table.c.principal == bindparam("owner"))
    .order_by(table.c.created_at.desc(), table.c.id.desc())
    .limit(bindparam("most"))
)


class SqlConversations:
    """`ConversationStore` on a database. Times must be aware and text `storable`, else ValueError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, conversation: Conversation) -> None:
        """One transaction."""
        row = _row(conversation)

        def job(connection: Connection) -> None:
            connection.execute(_INSERT, row)
            record(connection, Change(Subject.CONVERSATIONS, conversation.principal))

        try:
            await self._database.write(job)
        except IntegrityError:
            raise ValueError("the conversation id is taken") from None

    async def append(self, id: str, ts: datetime, kind: str, body: Mapping[str, Any]) -> int:
        """One write transaction; the conversation's row is locked from taking the number to storing the entry."""
        values.require_storable(kind)
        moment = values.utc(ts)

        def job(connection: Connection) -> int:
            seq: int | None = connection.execute(_NEXT, {"key": id, "at": moment}).scalar_one_or_none()
            if seq is None:
                raise LookupError("no such conversation")
            row = {"conversation": id, "seq": seq, "ts": moment, "kind": kind, "body": body}
            connection.execute(_INSERT_ENTRY, row)
            record(connection, Change(Subject.CONVERSATION, id))
            return seq

        if not values.storable(id):
            raise LookupError("no such conversation")
        return await self._database.write(job)

    async def list(
        self, principal: str, *, session: str | None = None, after: str | None = None, limit: int = 100
    ) -> ConversationPage:
        """One statement, along an index, wherever in the list the page lies."""
        query = _page_query(session, after)
        if not values.storable(principal, session):
            return ConversationPage((), None)
        arguments = {"owner": principal, "most": limit + 1}
        rows = await self._database.read(lambda connection: connection.execute(query, arguments).all())
        return values.page([_conversation(row) for row in rows], limit)

    async def find(self, principal: str, id: str) -> Conversation | None:
        """One statement."""
        if not values.storable(principal, id):
            return None
        key = {"key": id, "owner": principal}
        row = await self._database.read(lambda connection: connection.execute(_FIND, key).one_or_none())
        return None if row is None else _conversation(row)

    async def entries(self, principal: str, id: str, *, since: int = 0, limit: int = 1000) -> tuple[Entry, ...] | None:
        """Two statements, the first asks whose it is."""

        def job(connection: Connection) -> tuple[Entry, ...] | None:
            if connection.execute(_IS_OWNED, {"key": id, "owner": principal}).one_or_none() is None:
                return None
            rows = connection.execute(_ENTRIES, {"key": id, "since": since, "most": limit})
            return tuple(Entry(*row) for row in rows)

        return await self._database.read(job) if values.storable(principal, id) else None


def _page_query(session: str | None, after: str | None) -> Select[Any]:
    query = _NEWEST
    if session is not None:
        query = query.where(table.c.session == session)
    if after is not None:
        query = query.where(tuple_(table.c.created_at, table.c.id) < values.parse_position(after))
    return query


def _row(conversation: Conversation) -> dict[str, Any]:
    named = (conversation.id, conversation.principal, conversation.harness, conversation.title, conversation.session)
    values.require_storable(*named)
    return {
        "id": conversation.id,
        "principal": conversation.principal,
        "harness": conversation.harness,
        "title": conversation.title,
        "session": conversation.session,
        "created_at": conversation.created,
        "updated_at": conversation.updated,
        "entries": 0,
    }


def _conversation(row: Row[Any]) -> Conversation:
    return Conversation(
        id=row.id,
        principal=row.principal,
        harness=row.harness,
        title=row.title,
        session=row.session,
        created=row.created_at,
        updated=row.updated_at,
        entries=row.entries,
    )
