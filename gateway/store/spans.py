"""A span for each statement, as a part of the request that it serves; without its text and without what is bound to it.

By SQLAlchemy's own events, which are there only where spans go anywhere. A job runs in the context of who asked for
it, so the statement finds the request without being handed it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Engine, ExceptionContext, event

from telemetry import tracing
from telemetry.tracing import Attribute, Kind, Span

_KEY: Final = "superpi_span"
_NAMES: Final = re.compile(r"\s*(?P<does>[A-Za-z]+)(?:.*?\b(?:FROM|INTO|UPDATE)\s+\"?(?P<table>\w+))?", re.DOTALL)


def observe(engine: Engine) -> None:
    """Tell of the engine's statements from now on."""

    @event.listens_for(engine, "before_cursor_execute")
    def begin(_connection: Any, _cursor: Any, statement: str, _bound: Any, context: Any, _many: Any) -> None:
        does, table = _named(statement)
        span = tracing.current().child(f"{does} {table}" if table else does, Kind.CLIENT)
        span.set(Attribute.DATABASE, engine.dialect.name)
        span.set(Attribute.STATEMENT, does)
        if table:
            span.set(Attribute.TABLE, table)
        setattr(context, _KEY, span)

    @event.listens_for(engine, "after_cursor_execute")
    def end(_connection: Any, _cursor: Any, _statement: Any, _bound: Any, context: Any, _many: Any) -> None:
        getattr(context, _KEY).end()

    @event.listens_for(engine, "handle_error")
    def fail(failure: ExceptionContext) -> None:
        span: Span | None = getattr(failure.execution_context, _KEY, None)
        if span is not None:
            span.fail(type(failure.original_exception).__name__)
            span.end()


@lru_cache(maxsize=512)
def _named(statement: str) -> tuple[str, str]:
    """What a statement does, and the first table that it names; empty where it names none."""
    found = _NAMES.match(statement)
    return ("", "") if found is None else (found["does"].upper(), found["table"] or "")
