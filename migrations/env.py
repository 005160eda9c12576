"""What Alembic runs for every command: takes the open connection of the caller, makes none of its own.

The caller owns the transaction and the lock around it (`gateway.store.migrate`).
"""

from __future__ import annotations

from alembic import context

from gateway.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_server_default=True,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
