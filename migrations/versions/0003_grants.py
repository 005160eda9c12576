"""Grants: what a person allowed from now on.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _id() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "grant",
        sa.Column("id", _id(), nullable=False),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("session", _id()),
        sa.Column("harness", _id()),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("expires_at", _moment()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grant")),
        sa.UniqueConstraint("digest", name=op.f("uq_grant_digest")),
        sa.ForeignKeyConstraint(["session"], ["session.id"], name=op.f("fk_grant_session_session"), ondelete="CASCADE"),
        sa.CheckConstraint(
            "(session IS NULL) <> (harness IS NULL) AND (harness IS NULL) = (expires_at IS NULL)",
            name=op.f("ck_grant_reach"),
        ),
    )
    op.create_index(op.f("ix_grant_principal_created_at_id"), "grant", ["principal", "created_at", "id"])
    op.create_index(op.f("ix_grant_principal_harness_expires_at"), "grant", ["principal", "harness", "expires_at"])
    op.create_index(op.f("ix_grant_session"), "grant", ["session"])
    op.create_index(op.f("ix_grant_expires_at"), "grant", ["expires_at"])


def downgrade() -> None:
    op.drop_table("grant")
