"""The declared schema. Knows no database product and no row's meaning; `migrations` must lead to exactly this."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)

from gateway.store import values

metadata: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """An aware UTC time on every database; a naive one is refused with ValueError."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """To UTC, because SQLite drops the offset."""
        return None if value is None else values.utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """SQLite gives naive UTC, PostgreSQL aware times in the connection's zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Document(TypeDecorator[Any]):
    """A JSON value as text: keys keep their order, and what one database takes every database takes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        """Encode; None is the JSON null."""
        return values.dump(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Decode."""
        return None if value is None else values.load(value)


def _id() -> Text:
    """Ids compare by code point everywhere; a PostgreSQL locale would order them in its own way."""
    return Text().with_variant(Text(collation="C"), "postgresql")


session: Final = Table(
    "session",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("principal", _id(), nullable=False),
    Column("harness", Text, nullable=False),
    Column("revision", Text),
    Column("client", Document, nullable=False),
    Column("capabilities", Document, nullable=False),
    Column("initialized", Boolean, nullable=False),
    Column("log_level", Text),
    Column("created_at", Moment, nullable=False),
    Column("last_seen_at", Moment, nullable=False),
    # What may be shown of the id; an older version leaves it out.
    Column("label", _id()),
    # `id` makes the index enough to find a principal's idlest sessions.
    Index(None, "principal", "last_seen_at", "id"),
    Index(None, "last_seen_at"),
    Index(None, "label"),
    Index(None, "created_at", "label"),
)

conversation: Final = Table(
    "conversation",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("principal", _id(), nullable=False),
    Column("harness", Text, nullable=False),
    Column("title", Text, nullable=False),
    # No foreign key: a conversation outlives the session that started it.
    Column("session", _id()),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("entries", Integer, nullable=False),
    Index(None, "principal", "created_at", "id"),
    Index(None, "session", "created_at", "id"),
)

entry: Final = Table(
    "entry",
    metadata,
    Column("conversation", _id(), ForeignKey(conversation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("ts", Moment, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Document, nullable=False),
)

#: What a person allowed from now on: as long as a session lives, or in a harness until it expires.
grant: Final = Table(
    "grant",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("principal", _id(), nullable=False),
    Column("session", _id(), ForeignKey(session.c.id, ondelete="CASCADE")),
    Column("harness", _id()),
    Column("tool", Text, nullable=False),
    Column("subject", Text, nullable=False),
    # Of everything that makes two grants the same: a subject is too long for a key.
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    # What stands for the rules that asked; an older version leaves it out, and such a grant answers none.
    Column("rule", Text),
    # No foreign key: a token is never deleted. NULL where none was shown.
    Column("token", _id()),
    CheckConstraint("(session IS NULL) <> (harness IS NULL) AND (harness IS NULL) = (expires_at IS NULL)", "reach"),
    Index(None, "principal", "created_at", "id"),
    Index(None, "principal", "harness", "expires_at"),
    Index(None, "session"),
    Index(None, "expires_at"),
    Index(None, "created_at", "id"),
    Index(None, "token"),
)

#: A question that waits for a client's answer; the row goes once the answer is taken.
question: Final = Table(
    "question",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("session", _id(), ForeignKey(session.c.id, ondelete="CASCADE"), nullable=False),
    Column("principal", _id(), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("answer", Document),
    Index(None, "session"),
    Index(None, "created_at"),
)

#: What a session wants to hear of.
subscription: Final = Table(
    "subscription",
    metadata,
    Column("session", _id(), ForeignKey(session.c.id, ondelete="CASCADE"), primary_key=True),
    Column("uri", _id(), primary_key=True),
)

signing_key: Final = Table(
    "signing_key",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "purpose", "created_at"),
)

principal: Final = Table(
    "principal",
    metadata,
    # `local:alice`, or `https://issuer#subject`.
    Column("id", _id(), primary_key=True),
    Column("created_at", Moment, nullable=False),
    Column("created_by", _id(), nullable=False),
    Column("disabled_at", Moment),
    Column("disabled_by", _id()),
)

#: Rows are never deleted: that one ever was is what closes the door to anonymous callers.
token: Final = Table(
    "token",
    metadata,
    Column("id", _id(), primary_key=True),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("last4", Text, nullable=False),
    Column("principal", _id(), ForeignKey(principal.c.id), nullable=False),
    Column("name", Text, nullable=False),
    # Sorted and separated by spaces.
    Column("scopes", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", _id(), nullable=False),
    Column("expires_at", Moment),
    Column("last_used_at", Moment),
    Column("revoked_at", Moment),
    Column("revoked_by", _id()),
    Index(None, "principal", "created_at", "id"),
    Index(None, "created_at", "id"),
)


def _counter() -> BigInteger:
    """A number that the database counts up; SQLite counts only columns of type INTEGER."""
    return BigInteger().with_variant(Integer(), "sqlite")


#: What happened, append-only.
audit: Final = Table(
    "audit",
    metadata,
    Column("seq", _counter(), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("trace_id", Text),
    Column("principal", _id(), nullable=False),
    Column("token", _id()),
    Column("action", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("reason", Text),
    Column("address", Text),
    Column("duration_ms", Integer),
    Column("arguments_sha256", Text),
    Column("arguments_bytes", Integer),
    Column("result_bytes", Integer),
    Index(None, "principal", "seq"),
    Index(None, "action", "seq"),
)

#: What caches elsewhere must forget: read by those that a notification did not reach, pruned after an hour.
change: Final = Table(
    "change",
    metadata,
    Column("seq", _counter(), primary_key=True),
    Column("subject", Text, nullable=False),
    Column("key", _id(), nullable=False),
    Column("at", Moment, nullable=False),
    Index(None, "at"),
)
