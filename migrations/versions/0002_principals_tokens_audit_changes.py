"""Principals and their tokens, the audit log, and the changes that caches hear of.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _id() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def _counter() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _principals_and_tokens()
    op.create_table(
        "audit",
        sa.Column("seq", _counter(), nullable=False),
        sa.Column("at", _moment(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text()),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("token", _id()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("arguments_sha256", sa.Text()),
        sa.Column("arguments_bytes", sa.Integer()),
        sa.Column("result_bytes", sa.Integer()),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_principal_seq"), "audit", ["principal", "seq"])
    op.create_index(op.f("ix_audit_action_seq"), "audit", ["action", "seq"])
    op.create_table(
        "change",
        sa.Column("seq", _counter(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("key", _id(), nullable=False),
        sa.Column("at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_change")),
    )
    op.create_index(op.f("ix_change_at"), "change", ["at"])


def _principals_and_tokens() -> None:
    op.create_table(
        "principal",
        sa.Column("id", _id(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("created_by", _id(), nullable=False),
        sa.Column("disabled_at", _moment()),
        sa.Column("disabled_by", _id()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_principal")),
    )
    op.create_table(
        "token",
        sa.Column("id", _id(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("last4", sa.Text(), nullable=False),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("created_by", _id(), nullable=False),
        sa.Column("expires_at", _moment()),
        sa.Column("last_used_at", _moment()),
        sa.Column("revoked_at", _moment()),
        sa.Column("revoked_by", _id()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
        sa.ForeignKeyConstraint(["principal"], ["principal.id"], name=op.f("fk_token_principal_principal")),
    )
    op.create_index(op.f("ix_token_principal_created_at_id"), "token", ["principal", "created_at", "id"])
    op.create_index(op.f("ix_token_created_at_id"), "token", ["created_at", "id"])


def downgrade() -> None:
    for table in ("change", "audit", "token", "principal"):
        op.drop_table(table)
