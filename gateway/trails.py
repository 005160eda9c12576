"""What the command line and the administrative interface share on the audit log: all of it, as lines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from telemetry.audit import AuditRow, AuditSink

#: Rows that are read at once.
_PAGE: Final = 500


async def pages(audit: AuditSink, filters: Mapping[str, Any]) -> AsyncIterator[tuple[AuditRow, ...]]:
    """All rows that the filters of `AuditSink.page` let through, the oldest first."""
    after: int | None = None
    while rows := await audit.page(**filters, after=after, limit=_PAGE):
        yield tuple(rows)
        after = rows[-1].seq


def line(row: AuditRow) -> str:
    """A row as a line of JSON in ASCII, so that no control character reaches a terminal."""
    return json.dumps(row.plain(), ensure_ascii=True) + "\n"
