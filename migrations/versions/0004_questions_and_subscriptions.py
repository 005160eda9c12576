"""Questions that wait for a client's answer, and what sessions subscribe to.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def _id() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "question",
        sa.Column("id", _id(), nullable=False),
        sa.Column("session", _id(), nullable=False),
        sa.Column("principal", _id(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.ForeignKeyConstraint(
            ["session"], ["session.id"], name=op.f("fk_question_session_session"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_question_session"), "question", ["session"])
    op.create_index(op.f("ix_question_created_at"), "question", ["created_at"])
    op.create_table(
        "subscription",
        sa.Column("session", _id(), nullable=False),
        sa.Column("uri", _id(), nullable=False),
        sa.PrimaryKeyConstraint("session", "uri", name=op.f("pk_subscription")),
        sa.ForeignKeyConstraint(
            ["session"], ["session.id"], name=op.f("fk_subscription_session_session"), ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    for table in ("subscription", "question"):
        op.drop_table(table)
