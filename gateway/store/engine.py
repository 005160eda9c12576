"""Opening a database and running functions of a connection in its threads. Knows no table and no row.

SQLAlchemy runs synchronously in a small pool of threads (docs/decisions/0002-sync-sqlalchemy-core-in-threads.md). A
connection is taken and given back inside one thread: none is held across an await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, Executable, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from gateway.store import sqlite
from gateway.store.faults import StoreUnavailable

T = TypeVar("T")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Connect = Callable[[], AbstractContextManager[Connection]]

#: Threads that read at once; a read on SQLite takes about 0.1 ms, so a few serve thousands a second.
READERS: Final = 4

#: Seconds to wait for another process's lock before the database counts as unavailable.
PATIENCE: Final = 5.0


def open_database(url: str, *, readers: int = READERS, patience: float = PATIENCE) -> Database:
    """Open the database at that URL, `sqlite:///` and a path; a missing file is made, without tables.

    `patience` is in seconds. Raises StoreUnavailable.
    """
    parsed = parse(url)
    prepare(parsed, patience)
    return Database(
        parsed,
        reading=sqlite.reading(parsed, patience, readers),
        writing=sqlite.writing(parsed, patience),
        readers=readers,
    )


def parse(url: str) -> URL:
    """The URL taken apart. Raises StoreUnavailable, without showing it, when no database can be opened there."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreUnavailable("The database URL cannot be read; use one like sqlite:///data/superpi.db.") from None
    if parsed.get_backend_name() != "sqlite":
        raise StoreUnavailable(f"The database {name_of(parsed)} is of a kind that is not supported; use sqlite:///.")
    if refused := sqlite.refusal(parsed):
        raise StoreUnavailable(f"The database {name_of(parsed)} {refused}.")
    return parsed.set(drivername="sqlite")


def prepare(url: URL, patience: float) -> None:
    """Make what is missing around a database before its first use. Raises StoreUnavailable."""
    with failures_named(name_of(url)):
        sqlite.prepare(url, name_of(url), patience)


def exists(url: URL) -> bool:
    """Whether there may be a database to ask; looks without making one. Raises StoreUnavailable."""
    try:
        return sqlite.file_of(url).exists()
    except OSError as error:
        raise StoreUnavailable(f"The database {name_of(url)} cannot be opened: {error.strerror}.") from error


def looking(url: URL) -> Engine:
    """An engine for a short look; its user disposes of it."""
    return sqlite.reading(url, PATIENCE, connections=1)


def migrating(url: URL, patience: float) -> Engine:
    """An engine for one schema change, which excludes every other from its begin on; its user disposes of it."""
    return sqlite.migrating(url, patience)


def name_of(url: URL) -> str:
    """How messages name a database: as configured, without credentials and options."""
    shown = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return shown.render_as_string()


@contextmanager
def failures_named(name: str) -> Iterator[None]:
    """Turn errors of the world into StoreUnavailable and a column type's refusal into itself; bugs stay as they are."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable(f"The database {name} is busy: no connection became free in time.") from error
    except DBAPIError as error:
        words = sqlite.words(error)
        if words is None:
            raise
        raise StoreUnavailable(f"The database {name} {words}.") from error
    except StatementError as error:
        raise (error.orig or error) from None


def executing(statement: Executable, parameters: Parameters) -> Callable[[Connection], int]:
    """A job of one statement; answers how many rows it changed, so that no cursor leaves its thread."""

    def job(connection: Connection) -> int:
        return connection.execute(statement, parameters).rowcount

    return job


class Database:
    """An open database. All methods are safe to call from any number of tasks, and of event loops, at once."""

    def __init__(self, url: URL, *, reading: Engine, writing: Engine, readers: int) -> None:
        self.name = name_of(url)
        self._reading = reading
        self._writing = writing
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="superpi-db-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="superpi-db-write")
        self._closed = False

    async def read(self, job: Callable[[Connection], T]) -> T:
        """Run `job` in a thread, outside a transaction: each of its statements sees the newest commit.

        Raises what `job` raises, and StoreUnavailable.
        """
        return await self._run(self._readers, self._reading.connect, job)

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Run `job` in a thread, in a transaction: committed when this returns, undone when `job` raises.

        A caller that is cancelled while its job runs does not undo it. Raises what `job` raises, and
        StoreUnavailable.
        """
        return await self._run(self._writer, self._writing.begin, job)

    async def close(self) -> None:
        """Finish the jobs that were asked for and close every connection; a second call does nothing."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._shut)

    async def _run(self, threads: ThreadPoolExecutor, connect: Connect, job: Callable[[Connection], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"The database {self.name} is closed.")
        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(threads, run, self._perform, connect, job)

    def _perform(self, connect: Connect, job: Callable[[Connection], T]) -> T:
        with failures_named(self.name), connect() as connection:
            return job(connection)

    def _shut(self) -> None:
        for threads in (self._readers, self._writer):
            threads.shutdown(wait=True)
        for engine in (self._reading, self._writing):
            engine.dispose()
