"""Opening a database and running functions of a connection in its threads. Knows no table and no row.

SQLAlchemy runs synchronously in a small pool of threads (docs/decisions/0002-sync-sqlalchemy-core-in-threads.md). A
connection is taken and given back inside one thread: none is held across an await. What only one product needs is in
`sqlite` and `postgresql`, which offer the same functions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, Executable, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from gateway.store import postgresql, spans, sqlite
from gateway.store.attempts import Attempt
from gateway.store.faults import StoreUnavailable

T = TypeVar("T")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: Threads that read at once; a read on SQLite takes about 0.1 ms, so a few serve thousands a second.
READERS: Final = 4

#: Threads that write at once on PostgreSQL; SQLite's file has a single writer anyway.
WRITERS: Final = 4

#: Seconds to wait for another process's lock before SQLite counts as unavailable.
PATIENCE: Final = 5.0

#: Seconds in which PostgreSQL must have answered, waiting for a thread included.
SECONDS: Final = 5.0

#: Seconds that a job may wait for a thread of PostgreSQL's.
WAIT: Final = 3.0


#: Seconds before a transaction that was undone because it met another is tried again: the other goes first.
_STEP_BACK: Final = 0.02
_TRIES: Final = 3

_BUSY: Final = "is busy: no connection became free in time"
LATE: Final = "did not answer in time"
_UNREADABLE: Final = (
    "The database URL cannot be read; use one like sqlite:///data/superpi.db or "
    "postgresql://user:password@host/superpi, with %40 for an @ in the password."
)


class _Product(Protocol):
    """What `sqlite` and `postgresql` offer, as modules."""

    def normalized(self, url: URL) -> URL: ...
    def refusal(self, url: URL) -> str | None: ...
    def exists(self, url: URL) -> bool: ...
    def prepare(self, url: URL, patience: float) -> None: ...
    def looking(self, url: URL, patience: float) -> Engine: ...
    def migrating(self, url: URL, patience: float) -> Engine: ...
    def words(self, error: DBAPIError) -> str | None: ...
    def is_conflict(self, error: DBAPIError) -> bool: ...
    def sever(self, connection: Any) -> None: ...
    def one_at_a_time(self, connection: Connection, key: str) -> None: ...


_PRODUCTS: Final[Mapping[str, _Product]] = {"sqlite": sqlite, "postgresql": postgresql, "postgres": postgresql}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a job may take, in seconds: `wait` until its turn comes, `total` until it is given up."""

    wait: float
    total: float


def open_database(
    url: str,
    *,
    readers: int = READERS,
    writers: int = WRITERS,
    patience: float = PATIENCE,
    seconds: float = SECONDS,
    wait: float = WAIT,
    unseen: bool = False,
) -> Database:
    """Open the database at that URL: `sqlite:///` and a path, or `postgresql://`.

    A missing file is made, without tables, unless it is to be left `unseen` until somebody prepares it; nobody asks a
    PostgreSQL server whether it is there. `patience` is for SQLite; `writers`, `seconds` and `wait` are for
    PostgreSQL. Raises StoreUnavailable.
    """
    parsed = parse(url)
    if product_of(parsed) is postgresql:
        return Database(
            parsed,
            _Lane(postgresql.reading(parsed, seconds, readers), "superpi-db-read", readers),
            _Lane(postgresql.writing(parsed, seconds, writers), "superpi-db-write", writers),
            Bounds(min(wait, seconds), seconds),
        )
    if not unseen:
        prepare(parsed, patience)
    return Database(
        parsed,
        _Lane(sqlite.reading(parsed, patience, readers), "superpi-db-read", readers),
        _Lane(sqlite.writing(parsed, patience), "superpi-db-write", 1),
        None,
    )


def parse(url: str) -> URL:
    """The URL taken apart. Raises StoreUnavailable, without showing it, when no database can be opened there."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreUnavailable(_UNREADABLE) from None
    if "@" in (parsed.host or ""):
        raise StoreUnavailable(_UNREADABLE)  # what stands there is the end of a password
    product = _PRODUCTS.get(parsed.get_backend_name())
    if product is None:
        raise StoreUnavailable(
            f"The database {name_of(parsed)} is of a kind that is not supported; use sqlite:/// or postgresql://."
        )
    parsed = product.normalized(parsed)
    if refused := product.refusal(parsed):
        raise StoreUnavailable(f"The database {name_of(parsed)} {refused}.")
    return parsed


def product_of(url: URL) -> _Product:
    """The module of a parsed URL's product."""
    return _PRODUCTS[url.get_backend_name()]


def prepare(url: URL, patience: float) -> None:
    """Make what is missing around a database before its first use. Raises StoreUnavailable."""
    with failures_named(url):
        product_of(url).prepare(url, patience)


def unavailable(url: URL, words: str, kind: type[StoreUnavailable] = StoreUnavailable) -> StoreUnavailable:
    """The failure of the database at that URL, from words that end the sentence and name nothing of the URL."""
    ending = words if words.endswith("?") else f"{words}."
    return kind(f"The database {name_of(url)} {ending}", public=f"The database {ending}")


def name_of(url: URL) -> str:
    """How messages name a database: as configured, without credentials and options."""
    shown = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return shown.render_as_string()


@contextmanager
def failures_named(url: URL) -> Iterator[None]:
    """Turn errors of the world into StoreUnavailable and a column type's refusal into itself; bugs stay as they are."""
    try:
        yield
    except PoolTimeout as error:
        raise unavailable(url, _BUSY) from error
    except DBAPIError as error:
        words = product_of(url).words(error)
        if words is None:
            raise
        raise unavailable(url, words) from error
    except StatementError as error:
        raise (error.orig or error) from None


def executing(statement: Executable, parameters: Parameters) -> Callable[[Connection], int]:
    """A job of one statement; answers how many rows it changed, so that no cursor leaves its thread."""

    def job(connection: Connection) -> int:
        return connection.execute(statement, parameters).rowcount

    return job


def one_at_a_time(connection: Connection, key: str) -> None:
    """From inside a job of `Database.write`: let no other transaction that asks for this key go on before this ends."""
    _PRODUCTS[connection.dialect.name].one_at_a_time(connection, key)


#: What the running job noted for after its commit.
_noted: ContextVar[list[Any] | None] = ContextVar("superpi_noted", default=None)


def note(value: Any) -> None:
    """From inside a job of `Database.write`: hand `value` to those who `watch`, once the transaction has committed."""
    noted = _noted.get()
    if noted is not None:
        noted.append(value)


@dataclass(slots=True)
class _Lane:
    """An engine and the threads that use it, as many as it has connections."""

    engine: Engine
    name: str
    size: int
    threads: ThreadPoolExecutor = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.threads = ThreadPoolExecutor(self.size, thread_name_prefix=self.name)


class Database:
    """An open database. All methods are safe to call from any number of tasks, and of event loops, at once."""

    def __init__(self, url: URL, reading: _Lane, writing: _Lane, bounds: Bounds | None) -> None:
        self.url = url
        self.name = name_of(url)
        self._product = product_of(url)
        self._reading = reading
        self._writing = writing
        self._bounds = bounds
        self._watchers: list[Callable[[Sequence[Any]], None]] = []
        self._shut_because: str | None = None
        self._closed = False

    async def read(self, job: Callable[[Connection], T]) -> T:
        """Run `job` in a thread, outside a transaction: each of its statements sees the newest commit.

        A job whose connection turns out to be lost is run once more. Raises what `job` raises, and StoreUnavailable.
        """
        return await self._run(self._reading, self._read, job)

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Run `job` in a thread, in a transaction: committed when this returns, undone when `job` raises.

        PostgreSQL may undo a transaction that met another; then `job` is run again, twice at most. A caller that is
        cancelled while its job runs does not undo it. Raises what `job` raises, and StoreUnavailable, after which it
        is not known whether a running transaction was committed.
        """
        return await self._run(self._writing, self._write, job)

    async def ping(self) -> None:
        """Ask for nothing. Raises StoreUnavailable."""
        await self.read(lambda connection: connection.exec_driver_sql("SELECT 1").one())

    def observe(self) -> None:
        """Have each statement be a span of the request that it serves."""
        for lane in (self._reading, self._writing):
            spans.observe(lane.engine)

    def watch(self, hear: Callable[[Sequence[Any]], None]) -> None:
        """Have `hear` called with what each write noted, in the write's thread and before it returns."""
        self._watchers.append(hear)

    @property
    def is_server(self) -> bool:
        """Whether it is a server, which may come later or be away for a while. A file does neither."""
        return self._bounds is not None

    def shut(self) -> None:
        """Refuse every job until `admit` is called: the database is not known to be there and current."""
        self._shut_because = "is not in use yet"

    def admit(self) -> None:
        """Take jobs."""
        self._shut_because = None

    async def close(self) -> None:
        """Finish the jobs that were asked for and close every connection; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._shut_because = "is closed"
            await asyncio.to_thread(self._end)

    async def _run(self, lane: _Lane, perform: Callable[..., T], job: Callable[[Connection], T]) -> T:
        if self._shut_because is not None:
            raise unavailable(self.url, self._shut_because)
        attempt = Attempt(self._product.sever)
        run = copy_context().run
        work = asyncio.get_running_loop().run_in_executor(lane.threads, run, self._perform, perform, job, attempt)
        return await (work if self._bounds is None else self._bounded(work, attempt, self._bounds))

    async def _bounded(self, work: asyncio.Future[T], attempt: Attempt, bounds: Bounds) -> T:
        """Wait for a job as long as it may take; one that nobody waits for any more is still ended in time."""
        end = asyncio.get_running_loop().call_later(bounds.total, attempt.end)
        work.add_done_callback(partial(_settle, end))
        try:
            if not await _within(bounds.wait, work) and attempt.withdraw():
                raise unavailable(self.url, _BUSY)
            in_time = await _within(bounds.total - bounds.wait, work)
            # A job that was ended by us says whatever its thread found then.
            if not in_time or (attempt.given_up and work.exception() is not None):
                raise unavailable(self.url, LATE)
        except asyncio.CancelledError:
            attempt.withdraw()
            raise
        return work.result()

    def _perform(self, perform: Callable[..., T], job: Callable[[Connection], T], attempt: Attempt) -> T:
        attempt.begin()
        with failures_named(self.url):
            return perform(job, attempt)

    def _read(self, job: Callable[[Connection], T], attempt: Attempt) -> T:
        try:
            return self._read_once(job, attempt)
        except DBAPIError as error:
            if not error.connection_invalidated or attempt.given_up:
                raise
        return self._read_once(job, attempt)

    def _read_once(self, job: Callable[[Connection], T], attempt: Attempt) -> T:
        with self._reading.engine.connect() as connection, _held(connection, attempt):
            return job(connection)

    def _write(self, job: Callable[[Connection], T], attempt: Attempt) -> T:
        begun = False

        def marked(connection: Connection) -> T:
            nonlocal begun
            begun = True
            return job(connection)

        for _ in range(_TRIES - 1):
            try:
                return self._write_once(marked, attempt)
            except DBAPIError as error:
                conflict = self._product.is_conflict(error)
                # A connection that was lost before the job began did nothing; later, nobody knows.
                if attempt.given_up or not (conflict or (error.connection_invalidated and not begun)):
                    raise
            if conflict:
                time.sleep(_STEP_BACK)
        return self._write_once(job, attempt)

    def _write_once(self, job: Callable[[Connection], T], attempt: Attempt) -> T:
        noted: list[Any] = []
        _noted.set(noted)
        with self._writing.engine.connect() as connection, _held(connection, attempt), connection.begin():
            result = job(connection)
        for hear in self._watchers if noted else ():
            hear(noted)
        return result

    def _end(self) -> None:
        for lane in (self._reading, self._writing):
            lane.threads.shutdown(wait=True)
        for lane in (self._reading, self._writing):
            lane.engine.dispose()


@contextmanager
def _held(connection: Connection, attempt: Attempt) -> Iterator[None]:
    """Let the attempt be ended from outside while it works on this connection."""
    attempt.hold(connection.connection.driver_connection)
    try:
        yield
    finally:
        attempt.release()


def _settle(end: asyncio.TimerHandle, work: asyncio.Future[Any]) -> None:
    """Called when the job is done: it need not be ended, and its error counts as seen if nobody waits any more."""
    end.cancel()
    if not work.cancelled():
        work.exception()


async def _within(seconds: float, work: asyncio.Future[Any]) -> bool:
    """Whether the work is done within that time; it goes on in any case."""
    done, _ = await asyncio.wait((work,), timeout=seconds)
    return bool(done)
