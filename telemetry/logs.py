"""Logs: one line a record on stderr, as text for people or JSON for collectors.

A caller's words can end up in a record, so control characters are escaped: a record never spans two lines.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

#: Attributes that every record has; what a record has beyond them came in by `extra`.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(level: str, form: Literal["text", "json"]) -> None:
    """Send every logger's records of at least that level to stderr in that form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Below warning these repeat every request and every statement in words of their own.
    for name in ("uvicorn", "sqlalchemy", "alembic", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


def escaped(text: str) -> str:
    """The text with control characters written out, so that it stays on its line."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO superpi.calls message key=value`; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        parts = [_time(record), record.levelname, record.name, escaped(record.getMessage())]
        parts += [f"{name}={escaped(str(value))}" for name, value in _extra(record).items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object a record, a traceback included as a string."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as JSON."""
        body: dict[str, Any] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        body |= _extra(record)
        if record.exc_info:
            body["exception"] = self.formatException(record.exc_info)
        return json.dumps(body, ensure_ascii=True, default=str)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
