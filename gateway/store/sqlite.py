"""What only SQLite needs: its file, its pragmas, its transactions, its error codes. Knows no table.

The driver's own transaction handling is off (`isolation_level=None`); writers begin with BEGIN IMMEDIATE, since a
deferred transaction that turns into a write fails at once, without waiting, when another one wrote meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from gateway.store.faults import StoreUnavailable

#: RETURNING, which the append of an entry needs.
_OLDEST: Final = (3, 35, 0)

_WORDS: Final = {
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_LOCKED: "is locked by another connection",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a backup",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "cannot be opened: permission denied",
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be used: the disk reports an error",
    sqlite3.SQLITE_PROTOCOL: "is locked by another process",
}


def words(error: DBAPIError) -> str | None:
    """What stops the database, as the end of a sentence; None when the error is a bug of ours."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else _WORDS.get(code & 0xFF)


def is_conflict(error: DBAPIError) -> bool:  # noqa: ARG001
    """Never: a writer owns the lock from its begin on, so transactions do not meet."""
    return False


def normalized(url: URL) -> URL:
    """The URL with the driver that is used, whichever it names."""
    return url.set(drivername="sqlite")


def refusal(url: URL) -> str | None:
    """Why no database can be opened at this URL, as the end of a sentence; None when one may be."""
    if sqlite3.sqlite_version_info < _OLDEST:
        return f"needs SQLite 3.35 or newer, and this Python has {sqlite3.sqlite_version}"
    if url.database in {None, "", ":memory:"} or url.query:
        return "must name a file and nothing else, like sqlite:///data/superpi.db"
    return None


def file_of(url: URL) -> Path:
    """The database file, as configured."""
    return Path(url.database or "")


def exists(url: URL) -> bool:
    """Whether there may be a database to ask; looks without making one. Raises StoreUnavailable."""
    try:
        return file_of(url).exists()
    except OSError as error:
        name = url.render_as_string()
        raise StoreUnavailable(f"The database {name} cannot be opened: {error.strerror}.") from error


def prepare(url: URL, patience: float) -> None:
    """Make the file (0600) below its folder (0700) if missing, and switch it to write-ahead logging.

    `patience` is in seconds. Raises StoreUnavailable.
    """
    try:
        _create(file_of(url))
    except OSError as error:
        raise StoreUnavailable(f"The database {url} cannot be opened: {error.strerror}.") from error
    engine = reading(url, patience, connections=1)
    try:
        with engine.connect() as connection:
            mode = _write_ahead(connection, patience)
    finally:
        engine.dispose()
    if mode != "wal":
        raise StoreUnavailable(f"The database {url} must lie on a local disk: its file system has no shared memory.")


def _create(file: Path) -> None:
    """Make the file and the folders that are missing above it, closed to others from the first moment."""
    for folder in reversed([folder for folder in file.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if not file.is_file():
            raise OSError(0, "not a regular file") from None


def _write_ahead(connection: Connection, patience: float) -> str:
    """Switch to WAL; SQLite does not wait for locks here, so this does, for `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return str(connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one())
        except DBAPIError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def reading(url: URL, patience: float, connections: int) -> Engine:
    """An engine whose connections see each statement's newest commit and begin no transaction."""
    return _engine(url, patience, connections, _connect_hook("PRAGMA foreign_keys=ON"), isolation_level="AUTOCOMMIT")


def looking(url: URL, patience: float) -> Engine:
    """An engine of one connection for a short look; `patience` is in seconds."""
    return reading(url, patience, connections=1)


def writing(url: URL, patience: float) -> Engine:
    """An engine of one connection whose transactions own the write lock from their first statement."""
    return _immediate(_engine(url, patience, 1, _connect_hook("PRAGMA foreign_keys=ON", "PRAGMA synchronous=NORMAL")))


def migrating(url: URL, patience: float) -> Engine:
    """Like `writing`, without enforced foreign keys: a table rebuilt by ALTER must not empty its children."""
    return _immediate(_engine(url, patience, 1, _connect_hook("PRAGMA foreign_keys=OFF")))


def sever(connection: Any) -> None:
    """Nothing: no file keeps a thread waiting longer than its patience."""


def one_at_a_time(connection: Connection, key: str) -> None:
    """Nothing: all writers wait for each other."""


def _engine(url: URL, patience: float, connections: int, hook: Callable[..., None], **options: Any) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=patience,
        hide_parameters=True,
        connect_args={"isolation_level": None, "check_same_thread": False, "timeout": patience},
        **options,
    )
    event.listen(engine, "connect", hook)
    return engine


def _connect_hook(*pragmas: str) -> Callable[..., None]:
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in pragmas:
            connection.execute(pragma)

    return configure


def _immediate(engine: Engine) -> Engine:
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
