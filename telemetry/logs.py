"""Logs: one line a record on stderr, as text for people or JSON for collectors.

A caller's words and a library's debug output can end up in a record. So everything in one (message, arguments,
extras, traceback) is redacted by `telemetry.redaction`, and control characters are escaped: no record spans two
lines but for a traceback, whose lines are marked so that none can pass for a record.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal

from telemetry.redaction import MASK, Redactor, names_a_secret

#: Attributes that every record has; what a record has beyond them came in by `extra`.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

#: What repeats every request, statement or export in words of its own below warning.
_CHATTY: Final = ("uvicorn", "sqlalchemy", "alembic", "asyncio", "urllib3", "httpx", "httpcore", "opentelemetry")

#: How deep an extra is looked into; what lies deeper is shown as text.
_DEPTH: Final = 8

_TRACE_MARK: Final = "  | "

_log: Final = logging.getLogger("superpi")


def configure(level: str, form: Literal["text", "json"], secrets: Iterable[str] = ()) -> None:
    """Send every logger's records of at least that level to stderr in that form, without those secret values.

    What would end the process or a thread with a traceback on stderr becomes a record too.
    """
    handler = logging.StreamHandler(sys.stderr)
    redactor = Redactor(secrets)
    handler.setFormatter(JsonLines(redactor) if form == "json" else TextLines(redactor))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def escaped(text: str) -> str:
    """The text with control characters written out, so that it stays on its line."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _Redacting(logging.Formatter):
    """What both forms share: the parts of a record, redacted."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        super().__init__()
        self._redact = redactor or Redactor()

    def message(self, record: logging.LogRecord) -> str:
        """The message with its arguments; arguments that do not fit are left out rather than raised about.

        `logging` would print them, unredacted, to stderr.
        """
        try:
            return self._redact(record.getMessage())
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not end the request that wrote it
            return self._redact(f"{record.msg} (its arguments do not fit)")

    def extras(self, record: logging.LogRecord) -> dict[str, Any]:
        """What came in by `extra`."""
        return {
            self._redact(name): MASK if names_a_secret(name) else self.clean(value)
            for name, value in vars(record).items()
            if name not in _STANDARD
        }

    def clean(self, value: Any, depth: int = _DEPTH) -> Any:
        """A value as JSON knows it, every text in it redacted."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth and isinstance(value, Mapping):
            return {
                self._text(key): MASK if names_a_secret(self._text(key)) else self.clean(item, depth - 1)
                for key, item in value.items()
            }
        if depth and isinstance(value, list | tuple | set | frozenset):
            return [self.clean(item, depth - 1) for item in value]
        return self._text(value)

    def trace(self, record: logging.LogRecord) -> str:
        """The traceback, and the stack where one was asked for; empty without either."""
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            parts.append(record.stack_info)
        return self._redact("\n".join(parts))

    def _text(self, value: Any) -> str:
        try:
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        except Exception:  # noqa: BLE001 - someone else's `__str__`
            text = f"<{type(value).__name__}>"
        return self._redact(text)


class TextLines(_Redacting):
    """`2026-01-31T12:00:00.000Z INFO superpi.calls message key=value`; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        parts = [_time(record), record.levelname, escaped(record.name), escaped(self.message(record))]
        parts += [f"{escaped(name)}={escaped(str(value))}" for name, value in self.extras(record).items()]
        trace = [_TRACE_MARK + escaped(line) for line in self.trace(record).splitlines()]
        return "\n".join([" ".join(parts), *trace])


class JsonLines(_Redacting):
    """One JSON object a record, a traceback included as a string."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as JSON."""
        body: dict[str, Any] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message(record),
        }
        # An extra never replaces what tells when, where and how bad.
        body = body | self.extras(record) | body
        if trace := self.trace(record):
            body["exception"] = trace
        return json.dumps(body, ensure_ascii=True, default=str)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _log.critical("the process ends by an exception", exc_info=(kind, error, trace))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        _log.critical("a thread ended by an exception", exc_info=(args.exc_type, args.exc_value, args.exc_traceback))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
