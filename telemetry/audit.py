"""The audit log: what a row says, the port of the store that keeps them, and the trail that writes them behind.

Knows no database and no request. Rows of tool calls and refusals go through an `AuditTrail`, which costs the call
an append to a bounded buffer. Rows of administrative changes do not: whoever makes the change inserts the row in
the same transaction (`gateway.store.audit.insert`).
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec

from telemetry.logs import escaped
from telemetry.redaction import redact

_log: Final = logging.getLogger("superpi.audit")

#: Seconds from the first row in an empty buffer to the write: with the write itself well under the promised one.
INTERVAL: Final = 0.5
#: Rows in the buffer before calls that change things wait; about 10 MiB.
CAPACITY: Final = 10_000
#: Rows of one write.
BATCH: Final = 500
#: Seconds that a call which changes things waits for room.
PATIENCE: Final = 3.0

#: The largest number of a database's INTEGER.
_MOST: Final = 2**31 - 1
#: Characters kept of each text of a row.
LENGTHS: Final[Mapping[str, int]] = {
    "request_id": 64,
    "trace_id": 32,
    "principal": 512,
    "token": 64,
    "action": 64,
    "object": 512,
    "decision": 16,
    "reason": 512,
    "address": 64,
    "arguments_sha256": 64,
}
_NUMBERS: Final = ("duration_ms", "arguments_bytes", "result_bytes")
_texts: Final = attrgetter(*LENGTHS)
_numbers: Final = attrgetter(*_NUMBERS)


class Decision(enum.StrEnum):
    """What became of an action."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    #: Allowed, and it did not succeed.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What happened, before the store gave it a number and a time. Never holds arguments, results or secrets.

    `action` is one of the program's own words (`tools/call`, `token.revoke`), `object` what it was done to.
    `age` is how many seconds ago it happened when the store gets it; it is no column, and the last field.
    """

    request_id: str
    principal: str
    action: str
    object: str
    decision: str
    reason: str | None = None
    trace_id: str | None = None
    token: str | None = None
    address: str | None = None
    duration_ms: int | None = None
    arguments_sha256: str | None = None
    arguments_bytes: int | None = None
    result_bytes: int | None = None
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row as it is kept. `seq` grows in the order of writing; `at` is the database's clock, in UTC."""

    seq: int
    at: datetime
    record: AuditRecord

    def plain(self) -> dict[str, Any]:
        """The row as JSON knows it: every column by its name, in the order of the documentation."""
        moment = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"seq": self.seq, "at": moment} | {name: getattr(self.record, name) for name in COLUMNS}


#: The columns besides `seq` and `at`.
COLUMNS: Final = tuple(field.name for field in fields(AuditRecord) if field.name != "age")
_columns: Final = attrgetter(*COLUMNS)


class AuditSink(Protocol):
    """Where the rows live. All methods are safe to call from any number of tasks at once."""

    async def write(self, records: Sequence[AuditRecord]) -> None:
        """Append all of them in their order, or none."""

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
        """At most `limit` rows that match, by `seq`; `after` is the `seq` of the last row already seen."""


def digest(arguments: Any) -> tuple[str, int]:
    """SHA-256 in hexadecimal, and length in bytes, of the canonical JSON of a call's arguments.

    Canonical is `json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` in UTF-8, with
    exponents of numbers as short as can be (`1e16`, not `1e+16`).
    """
    try:
        text = _FAST.encode(arguments)
    except (TypeError, ValueError):
        # What no caller can send and a test or another transport might: frozen mappings, lone surrogates.
        text = _CANONICAL.encode(arguments).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest(), len(text)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


#: Seven times as fast as the other, which counts when a file of a megabyte is written.
_FAST: Final = msgspec.json.Encoder(order="sorted")
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def tidy(record: AuditRecord) -> AuditRecord:
    """The record as every database takes it: clipped, redacted, control characters escaped, numbers in range."""
    known: dict[str, Any] = {}
    for given, (name, most) in zip(_texts(record), LENGTHS.items(), strict=True):
        # Letters and digits alone are neither a secret's form nor a control character.
        if given is None or (given.isalnum() and len(given) <= most):
            continue
        if (text := _text(given[: 2 * most], most)) != given:
            known[name] = text
    for number, name in zip(_numbers(record), _NUMBERS, strict=True):
        if number is not None and not 0 <= number <= _MOST:
            known[name] = min(max(number, 0), _MOST)
    return replace(record, **known) if known else record


@lru_cache(maxsize=1024)
def _text(given: str, most: int) -> str:
    return escaped(redact(given))[:most]


class AuditTrail:
    """Rows on their way to the store: `record` appends, `run` writes them behind. For one event loop.

    When the buffer is full because the store is away, rows of calls that only read are dropped and counted, and
    calls that change things ask `room` first. A row is written at least once: when a store fails after it has
    committed, its rows come again.
    """

    def __init__(
        self,
        sink: AuditSink,
        *,
        away: type[Exception] | tuple[type[Exception], ...] = (OSError,),
        capacity: int = CAPACITY,
        batch: int = BATCH,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`away` is what the sink raises when it cannot be used now; anything else is a bug in a row."""
        self._sink = sink
        self._away = away
        self._capacity = capacity
        self._batch = batch
        self._interval = interval
        self._clock = clock
        self._rows: deque[tuple[float, AuditRecord]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._some = asyncio.Event()
        self._hurry = asyncio.Event()
        self._freed = asyncio.Event()
        self.written = 0
        self.dropped = 0
        self.failures = 0
        self.is_away = False

    def __len__(self) -> int:
        """Rows that are not written yet."""
        return len(self._rows)

    def record(self, record: AuditRecord, *, changes: bool = False) -> bool:
        """Take a row; False when it was dropped. `changes` is whether it is of a call that asked `room`."""
        if len(self._rows) >= self._capacity and not changes:
            self.dropped += 1
            return False
        self._rows.append((self._clock(), _clipped(record)))
        self._some.set()
        if len(self._rows) >= self._batch and not self.is_away:
            self._hurry.set()
        return True

    async def room(self, seconds: float = PATIENCE) -> bool:
        """Whether a call that changes things may begin; waits up to that long for room. False is a 503.

        Calls that waited together may exceed the capacity by their number.
        """
        if len(self._rows) < self._capacity:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._rows) >= self._capacity:
                    self._freed.clear()
                    await self._freed.wait()
        return len(self._rows) < self._capacity

    async def run(self) -> None:
        """Write behind for as long as the process lives; to be cancelled before `close`."""
        while True:
            await self._some.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._hurry.wait()
            await self.flush()

    async def flush(self) -> int:
        """Try once to write every row taken so far; answers how many are left. Raises nothing.

        One write runs at a time, and cancelling who waits for it does not end it.
        """
        if self._writing is not None and not self._writing.done():
            await asyncio.shield(self._writing)
        if self._rows:
            self._writing = asyncio.get_running_loop().create_task(self._write(len(self._rows)))
            await asyncio.shield(self._writing)
        return len(self._rows)

    async def close(self, seconds: float = 5.0) -> int:
        """Write every row, trying again for up to that long; answers how many were lost, logged and counted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.flush():  # noqa: ASYNC110 - the store tells nobody when it is back
                    await asyncio.sleep(min(self._interval, 0.1))
        lost = len(self._rows)
        if lost:
            self.dropped += lost
            _log.error("%d audit rows were lost: the store was away when the process ended", lost)
        return lost

    async def _write(self, most: int) -> None:
        """Write up to that many rows in batches, in their order, until the store fails."""
        self._hurry.clear()
        while most > 0:
            taken = tuple(islice(self._rows, min(most, self._batch)))
            done = await self._append([self._aged(*row) for row in taken])
            for _ in range(done):
                self._rows.popleft()
            if done < len(taken):
                return
            most -= done
            self._freed.set()
        if not self._rows:
            self._some.clear()

    async def _append(self, records: Sequence[AuditRecord]) -> int:
        """Write one batch; answers how many of its rows are done with, fewer than all when the store is away."""
        try:
            await self._sink.write(records)
        except self._away as error:
            self._found_away(error)
            return 0
        except Exception as error:  # noqa: BLE001 - a bug in one row must not hold up the others
            self.failures += 1
            return self._drop(error) if len(records) == 1 else await self._append_singly(records)
        self.written += len(records)
        if self.is_away:
            _log.info("the store takes audit rows again")
        self.is_away = False
        return len(records)

    async def _append_singly(self, records: Sequence[AuditRecord]) -> int:
        for done, record in enumerate(records):
            if not await self._append([record]):
                return done
        return len(records)

    def _found_away(self, error: Exception) -> None:
        self.failures += 1
        if not self.is_away:
            _log.warning("audit rows wait, the store is away: %s", error)
        self.is_away = True

    def _drop(self, error: Exception) -> int:
        self.dropped += 1
        _log.error("an audit row was dropped: the store does not take it", exc_info=error)
        return 1

    def _aged(self, then: float, record: AuditRecord) -> AuditRecord:
        values: tuple[Any, ...] = (*_columns(tidy(record)), max(self._clock() - then, 0.0))
        return AuditRecord(*values)


def _clipped(record: AuditRecord) -> AuditRecord:
    """The record without the rest of an enormous text, so that the buffer's size is bounded in bytes too."""
    if len(record.object) + len(record.principal) + len(record.reason or "") < LENGTHS["object"]:
        return record
    return tidy(record)
