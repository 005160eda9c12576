"""The audit log's in-memory twin, for tests and for servers without a database. Never loads SQLAlchemy.

It accepts and refuses exactly what the database does (`tests/gateway/store/test_audit_contract.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.store import values
from telemetry.audit import COLUMNS, AuditRecord, AuditRow


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryAudit:
    """`AuditSink` in a list; `now` stands for the database's clock."""

    def __init__(self, now: Callable[[], datetime] = _now) -> None:
        self._now = now
        self._rows: list[AuditRow] = []

    async def write(self, records: Sequence[AuditRecord]) -> None:
        """All or none: text that is not `storable` refuses the whole call."""
        for record in records:
            values.require_storable(*(text for name in COLUMNS if isinstance(text := getattr(record, name), str)))
        now = values.utc(self._now())
        for seq, record in enumerate(records, len(self._rows) + 1):
            at = now - timedelta(milliseconds=round(record.age * 1000))
            self._rows.append(AuditRow(seq, at, replace(record, age=0.0)))

    async def page(
        self,
        *,
        principal: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        after: int | None = None,
        newest_first: bool = False,
        limit: int = 100,
    ) -> tuple[AuditRow, ...]:
        """Every row is looked at on each call."""
        moment = None if since is None else values.utc(since)
        found = [
            row
            for row in self._rows
            if principal in {None, row.record.principal}
            and action in {None, row.record.action}
            and (moment is None or row.at >= moment)
            and (after is None or (row.seq < after if newest_first else row.seq > after))
        ]
        ordered = reversed(found) if newest_first else iter(found)
        return tuple(ordered)[: max(limit, 0)]
