"""What a process asks of its database, statement by statement, as SQLAlchemy hands it to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event

from gateway.store.engine import Database


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with its parameters; `of_request` is whether it was asked for while a request was answered."""

    text: str
    parameters: Any
    of_request: bool


#: Goes along into the tasks that a request starts and the threads that ask the database for them.
_of_request: ContextVar[bool] = ContextVar("of_request", default=False)


@contextmanager
def answering() -> Iterator[None]:
    """What is asked for in this block, and by what it starts, is asked for by a request."""
    before = _of_request.set(True)
    try:
        yield
    finally:
        _of_request.reset(before)


@contextmanager
def statements_of(database: Database) -> Iterator[list[Statement]]:
    """Each statement, in order and while the block runs; BEGIN counts on PostgreSQL, COMMIT nowhere."""
    seen: list[Statement] = []
    engines = [lane.engine for lane in (database._reading, database._writing)]

    def note(_connection: Any, _cursor: Any, text: str, parameters: Any, _context: Any, _many: bool) -> None:
        seen.append(Statement(text, parameters, _of_request.get()))

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)
