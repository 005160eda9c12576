"""The change feed on a database: fills `auth.changes.ChangeFeed`.

The table `change` is the truth: `record` writes a row in the transaction that changes something, and every process
reads the new rows twice a second. PostgreSQL's NOTIFY only says that it is time to read, so losing the listener loses
nothing, and a notification carries nothing. What this process changed itself is heard before its write returns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, text

from auth.changes import Change, Hear, Subject
from gateway.store import values
from gateway.store.engine import Database, note, open_database
from gateway.store.faults import StoreUnavailable
from gateway.store.listening import CHANNEL, NAME, Listener
from gateway.store.positions import Position
from gateway.store.tables import change as table

_log: Final = logging.getLogger("superpi.store")

#: Seconds between two readings.
POLL: Final = 0.5
#: How long a row is kept, and how often older ones are removed.
_KEPT: Final = timedelta(hours=1)
_PRUNE: Final = 600.0
#: Seconds without a reading in which rows may have come and gone unseen, because they are kept no longer.
_LOST: Final = _KEPT.total_seconds() / 2
#: Seconds without a reading that are no silence: two readings, and a busy machine.
_IN_TOUCH: Final = 3 * POLL

_INSERT: Final = insert(table).returning(table.c.seq)
_INSERT_AND_NOTIFY: Final = insert(table).returning(table.c.seq, func.pg_notify(CHANNEL, ""))
_NEW: Final = (
    select(table.c.seq, table.c.subject, table.c.key)
    .where((table.c.seq > bindparam("last")) | table.c.seq.in_(bindparam("missing", expanding=True)))
    .order_by(table.c.seq)
)
_LATEST: Final = select(table.c.seq).order_by(table.c.seq.desc()).limit(bindparam("most"))
_LISTENERS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = :name"
)
#: The newest row stays: SQLite counts on from the highest number that is there.
_PRUNED: Final = delete(table).where(
    table.c.at < bindparam("before"), table.c.seq < select(func.max(table.c.seq)).scalar_subquery()
)


def record(connection: Connection, change: Change) -> None:
    """Write the change in the transaction that makes it; heard everywhere once that has committed.

    Raises ValueError for an id that no database takes.
    """
    values.require_storable(change.id)
    statement = _INSERT_AND_NOTIFY if connection.dialect.name == "postgresql" else _INSERT
    row = {"subject": change.subject.value, "key": change.id, "at": datetime.now(UTC)}
    note((connection.execute(statement, row).scalar_one(), change))


class StoreChanges:
    """`ChangeFeed` on a database. For use on one event loop, between `start` and `stop`.

    Reads over a connection of its own, so that a busy pool does not make it deaf. While the database cannot be
    asked, `silent_seconds` grows; once it can again, everything held is in doubt.
    """

    def __init__(self, database: Database, url: str, *, listen_url: str | None = None, seconds: float = 5.0) -> None:
        self._database = database
        self._url = url
        self._listen_url = listen_url or url
        self._seconds = seconds
        self._hearers: list[Hear] = []
        self._in_touch = time.monotonic()
        self._clock = time.time()
        self._position: Position | None = None
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._reader: Database | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def announce(self, change: Change) -> None:
        """Tell every process of a change that is nothing but news. Raises StoreUnavailable."""
        await self._database.write(lambda connection: record(connection, change))

    async def replicas(self) -> int:
        """How many processes listen to this database, this one among them. Raises StoreUnavailable."""
        if not self._database.is_server or self._reader is None:
            return 1
        rows = await self._asked({"name": NAME}, _LISTENERS)
        return max(1, int(rows[0][0]))

    def silent_seconds(self) -> float:
        """Since the begin of the last reading that succeeded; 0 when that is no longer ago than it should be."""
        silent = time.monotonic() - self._in_touch
        return silent if silent > _IN_TOUCH else 0.0

    def listen(self, hear: Hear) -> None:
        """From now on, in the order of the calls."""
        self._hearers.append(hear)

    async def start(self) -> None:
        """Begin to read and to listen. Never waits for a database that is away: it goes on trying."""
        self._loop = asyncio.get_running_loop()
        self._reader = open_database(self._url, readers=1, writers=1, seconds=self._seconds)
        self._database.watch(self._hear_own)
        await self._read()
        self._tasks.append(asyncio.create_task(self._keep_reading(), name="superpi-changes"))
        listener = Listener.of(self._listen_url, self._wake.set, seconds=self._seconds)
        if listener is not None:
            self._tasks.append(asyncio.create_task(listener.run(), name="superpi-listen"))

    async def stop(self) -> None:
        """Stop both and close their connections; a second call does nothing."""
        tasks, self._tasks, self._loop = self._tasks, [], None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._reader is not None:
            await self._reader.close()

    async def _keep_reading(self) -> None:
        pruned = time.monotonic()
        while True:
            await _woken(self._wake, POLL)
            self._wake.clear()
            try:
                await self._read()
                if time.monotonic() - pruned > _PRUNE:
                    pruned = time.monotonic()
                    await self.prune(datetime.now(UTC) - _KEPT)
            except Exception:  # noqa: BLE001 - a bug in one reading must not make the process deaf
                self._position = None
                _log.exception("changes cannot be read")

    async def _read(self) -> None:
        """Read what is new and tell; after a failure, or a sleep, begin anew and put everything in doubt."""
        began, clock = time.monotonic(), time.time()
        if abs(clock - self._clock) > _LOST:
            self._position = None
        try:
            if self._position is None:
                await self._begin()
            else:
                self._tell(await self._asked(self._position.query(), _NEW))
        except StoreUnavailable as error:
            if self._position is not None:
                _log.warning("changes cannot be read: %s", error)
            self._position = None
        else:
            self._in_touch, self._clock = began, clock

    async def _begin(self) -> None:
        latest = await self._asked({"most": Position.WINDOW}, _LATEST)
        self._position = Position([row.seq for row in latest])
        self._deliver(None)

    async def _asked(self, bound: dict[str, Any], statement: Any) -> Sequence[Row[Any]]:
        assert self._reader is not None  # noqa: S101 - `start` opened it
        return await self._reader.read(lambda connection: connection.execute(statement, bound).all())

    async def prune(self, before: datetime) -> None:
        """Remove rows older than that; every process does so, and another one may have been first."""
        try:
            await self._database.write(lambda connection: connection.execute(_PRUNED, {"before": before}).rowcount)
        except StoreUnavailable as error:
            _log.info("old changes were not removed: %s", error)

    def _tell(self, rows: Sequence[Row[Any]]) -> None:
        assert self._position is not None  # noqa: S101 - rows are asked for from a position
        for row in rows:
            if self._position.take(row.seq):
                self._deliver(_change(row))

    def _hear_own(self, noted: Sequence[Any]) -> None:
        """Called in a writer's thread: the loop hears before the task that waits for the write goes on."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._tell_own, noted)

    def _tell_own(self, noted: Sequence[tuple[int, Change]]) -> None:
        for seq, change in noted:
            if self._position is None or self._position.take(seq):
                self._deliver(change)

    def _deliver(self, change: Change | None) -> None:
        for hear in self._hearers:
            hear(change)


def _change(row: Row[Any]) -> Change | None:
    """What the row says; of a kind that only a newer version knows, that anything may have changed."""
    try:
        return Change(Subject(row.subject), row.key)
    except ValueError:
        return None


async def _woken(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most that long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
