"""A name for sessions that can be shown: whoever knows a session's id may use it where no token is asked for.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    # An older version that runs on leaves it out; such a session is listed without it until it ends.
    op.add_column("session", sa.Column("label", sa.Text().with_variant(sa.Text(collation="C"), "postgresql")))
    connection = op.get_bind()
    ids = connection.execute(sa.text("SELECT id FROM session")).scalars().all()
    rows = [{"key": id, "name": hashlib.sha256(id.encode()).hexdigest()[:16]} for id in ids]
    if rows:
        connection.execute(sa.text("UPDATE session SET label = :name WHERE id = :key"), rows)
    op.create_index(op.f("ix_session_label"), "session", ["label"])
    op.create_index(op.f("ix_session_created_at_label"), "session", ["created_at", "label"])


def downgrade() -> None:
    op.drop_index(op.f("ix_session_created_at_label"), "session")
    op.drop_index(op.f("ix_session_label"), "session")
    op.drop_column("session", "label")
