"""What a grant hangs on besides its reach: the rules that asked, and the token through which it was given.

Types are spelled out here, not imported: a migration must not change when the tables do.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    # Nobody knows any more which rules these answered, so people are asked once more.
    op.execute('DELETE FROM "grant"')
    op.add_column("grant", sa.Column("rule", sa.Text()))
    op.add_column("grant", sa.Column("token", sa.Text().with_variant(sa.Text(collation="C"), "postgresql")))
    op.create_index(op.f("ix_grant_created_at_id"), "grant", ["created_at", "id"])
    op.create_index(op.f("ix_grant_token"), "grant", ["token"])


def downgrade() -> None:
    op.drop_index(op.f("ix_grant_token"), "grant")
    op.drop_index(op.f("ix_grant_created_at_id"), "grant")
    op.drop_column("grant", "token")
    op.drop_column("grant", "rule")
