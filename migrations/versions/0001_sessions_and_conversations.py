"""Sessions, conversations with their entries, and signing keys.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _id() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "session",
        sa.Column("id", _id(), nullable=False),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text()),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("capabilities", sa.Text(), nullable=False),
        sa.Column("initialized", sa.Boolean(), nullable=False),
        sa.Column("log_level", sa.Text()),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("last_seen_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
    )
    op.create_index(op.f("ix_session_principal_last_seen_at_id"), "session", ["principal", "last_seen_at", "id"])
    op.create_index(op.f("ix_session_last_seen_at"), "session", ["last_seen_at"])
    op.create_table(
        "conversation",
        sa.Column("id", _id(), nullable=False),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("session", _id()),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("updated_at", _moment(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation")),
    )
    op.create_index(op.f("ix_conversation_principal_created_at_id"), "conversation", ["principal", "created_at", "id"])
    op.create_index(op.f("ix_conversation_session_created_at_id"), "conversation", ["session", "created_at", "id"])
    op.create_table(
        "entry",
        sa.Column("conversation", _id(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts", _moment(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("conversation", "seq", name=op.f("pk_entry")),
        sa.ForeignKeyConstraint(
            ["conversation"], ["conversation.id"], name=op.f("fk_entry_conversation_conversation"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "signing_key",
        sa.Column("id", _id(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signing_key")),
    )
    op.create_index(op.f("ix_signing_key_purpose_created_at"), "signing_key", ["purpose", "created_at"])


def downgrade() -> None:
    for table in ("signing_key", "entry", "conversation", "session"):
        op.drop_table(table)
