"""`superpi audit`: read the audit log, from the machine that has the database. It never writes.

Rows go to stdout, words to stderr. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from gateway.reach import add_run
from gateway.token_output import Fields, say, show

if TYPE_CHECKING:
    from gateway.settings import Settings
    from gateway.store.audit import SqlAudit
    from telemetry.audit import AuditRow

_DONE: Final = 0
_FAILED: Final = 1
#: What a shell shows for a program that a closed pipe ended.
_PIPE_CLOSED: Final = 128 + 13

_COLUMNS: Final = ("at", "principal", "action", "object", "decision", "reason", "address", "request_id")
_MOST: Final = 10_000
_AGO: Final = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `audit` to the commands of `superpi`."""
    audit = commands.add_parser("audit", help="read the audit log")
    actions = audit.add_subparsers(required=True, metavar="ACTION")

    listed = actions.add_parser("list", help="show the newest rows, the newest first")
    _add_filters(listed)
    listed.add_argument("--limit", type=_limit, default=50, help=f"how many, at most {_MOST} (default 50)")
    add_run(listed, _list, "audit list")

    export = actions.add_parser("export", help="write every row as one line of JSON, the oldest first")
    _add_filters(export)
    add_run(export, _export, "audit export")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--principal", help="only what this principal did, like local:alice")
    parser.add_argument("--action", help="only this action, like tools/call or token.revoke")
    parser.add_argument(
        "--since", type=_since, help="only from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or 30m, 12h, 7d ago"
    )


def _since(text: str) -> datetime:
    """A time, or how long ago; one without a zone is UTC."""
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(text)
        return (moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2026-01-31, 2026-01-31T12:00:00Z, or 30m, 12h, 7d"
        ) from None


def _limit(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= _MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {_MOST}")


def _list(options: argparse.Namespace) -> int:
    rows = asyncio.run(_newest(_settings(), options))
    if rows is None:
        return _FAILED
    show_rows([row.plain() for row in rows])
    return _DONE


def show_rows(rows: Sequence[Fields]) -> None:
    """The rows on stdout."""
    show(rows, _COLUMNS, as_json=False, nothing="There are no such rows in the audit log.")


def _export(options: argparse.Namespace) -> int:
    return piped(lambda: asyncio.run(_write_all(_settings(), options)))


def piped(write: Callable[[], int]) -> int:
    """Write, until whoever reads has enough."""
    try:
        return write()
    except BrokenPipeError:
        # Who read has enough; Python would complain once more when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


async def _newest(settings: Settings, options: argparse.Namespace) -> tuple[AuditRow, ...] | None:
    """The rows, or None when there is no log to read."""
    async with _opened(settings) as audit:
        if audit is None:
            return None
        return await audit.page(**_filters(options), newest_first=True, limit=options.limit)


async def _write_all(settings: Settings, options: argparse.Namespace) -> int:
    from gateway import trails

    async with _opened(settings) as audit:
        if audit is None:
            return _FAILED
        async for rows in trails.pages(audit, _filters(options)):
            sys.stdout.writelines(map(trails.line, rows))
        sys.stdout.flush()
        return _DONE


def _filters(options: argparse.Namespace) -> dict[str, Any]:
    return {"principal": options.principal, "action": options.action, "since": options.since}


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[SqlAudit | None]:
    """The audit log; None, with a word why, when the schema is not this version's."""
    from gateway.store.audit import SqlAudit
    from gateway.store.engine import open_database
    from gateway.store.migrate import UpToDate, check, explain

    standing = check(settings.store_url)
    if not isinstance(standing, UpToDate):
        say(explain(standing))
        yield None
        return
    database = open_database(settings.store_url, readers=1, writers=1, seconds=settings.database_seconds)
    try:
        yield SqlAudit(database)
    finally:
        await database.close()


def _settings() -> Settings:
    from gateway.settings import load

    return load()
