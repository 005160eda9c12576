"""What a process asks of its database, statement by statement, as SQLAlchemy hands it to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from gateway.store.engine import Database


@contextmanager
def statements_of(*databases: Database) -> Iterator[list[tuple[str, Any]]]:
    """Each statement with its parameters, in order and while the block runs; a transaction's COMMIT is none."""
    seen: list[tuple[str, Any]] = []
    engines = [lane.engine for database in databases for lane in (database._reading, database._writing)]

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        seen.append((statement, parameters))

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)
