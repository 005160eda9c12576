"""What only PostgreSQL needs: its connections, its time limits, its error codes. Knows no table.

Every statement says BEGIN itself (`autocommit`), so that a connection that died in the pool is found before anything
was done. Nothing is prepared on the server: poolers that share connections, and schemas that change under a running
process, both break prepared statements. psycopg is loaded with the first connection.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError

#: Seconds for making one connection.
_CONNECT: Final = 3
#: A connection over which nothing comes back is given up within about as long as a statement may take.
_NETWORK: Final = {
    "connect_timeout": _CONNECT,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "application_name": "superpi",
}

#: Only one process at a time changes the schema of a database; the number is arbitrary and must never change.
_MIGRATING: Final = 0x5350_4D49

#: The first of two numbers, which keeps these locks apart from those of others; as arbitrary.
_ORDERING: Final = 0x5350_4B45
_ONE_AT_A_TIME: Final = text("SELECT pg_advisory_xact_lock(:class, hashtext(:key))")

_WORDS: Final = {
    "25006": "cannot be written: it is read-only, a standby perhaps",
    "25P03": "took too long",
    "40001": "is busy: two changes met",
    "40P01": "is busy: two changes met",
    "42501": "does not let this user do that",
    "53100": "cannot be written: the disk is full",
    "53300": "has no connection left for this user",
    "55P03": "is locked by another process",
    "57014": "did not answer in time",
    "57P01": "is shutting down",
    "57P02": "has crashed",
    "57P03": "is starting or shutting down",
    "58030": "cannot be used: the disk reports an error",
    "XX001": "is damaged: restore it from a backup",
    "XX002": "is damaged: restore it from a backup",
}
_CLASSES: Final = {"08": "has lost its connection", "53": "is short of resources", "28": "does not let this user in"}

#: What libpq says while connecting carries no code.
_SAYINGS: Final = (
    ("authentication failed", "does not let this user in"),
    ("no pg_hba.conf entry", "does not let this user in"),
    ("no password supplied", "does not let this user in"),
    ("too many clients", "has no connection left for this user"),
    ("does not exist", "or its user does not exist"),
    ("refused", "refuses connections: is it running?"),
    ("timeout expired", "does not answer"),
    ("timed out", "does not answer"),
    ("starting up", "is starting or shutting down"),
    ("shutting down", "is starting or shutting down"),
    ("resolve", "cannot be found: its host name is not known"),
    ("name resolution", "cannot be found: its host name is not known"),
    ("translate host name", "cannot be found: its host name is not known"),
    ("SSL", "cannot be reached: the two sides do not agree on TLS"),
    ("certificate", "cannot be reached: the two sides do not agree on TLS"),
    ("closed the connection", "has lost its connection"),
)
_CONFLICTS: Final = frozenset({"40001", "40P01"})


def words(error: DBAPIError) -> str | None:
    """What stops the database, as the end of a sentence; None when the error is a bug of ours."""
    code = _code(error)
    if code is not None:
        return _WORDS.get(code) or _CLASSES.get(code[:2])
    if not isinstance(error, OperationalError):
        return None
    said = str(error.orig)
    return next((words for part, words in _SAYINGS if part in said), "cannot be reached")


def is_conflict(error: DBAPIError) -> bool:
    """Whether the database undid a transaction because it met another: done again, it may well succeed."""
    return _code(error) in _CONFLICTS


def _code(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def normalized(url: URL) -> URL:
    """The URL with the driver that is used, whichever it names."""
    return url.set(drivername="postgresql")


def refusal(url: URL) -> str | None:
    """Why no database can be opened at this URL, as the end of a sentence; None when one may be."""
    import psycopg

    if not url.database:
        return "must name a database, like postgresql://user@host/superpi"
    try:
        psycopg.conninfo.make_conninfo(**_options(url))
    except psycopg.Error:
        return "has an option in its URL that PostgreSQL does not know"
    return None


def prepare(url: URL, patience: float) -> None:
    """Nothing: a server's administrator makes its databases."""


def exists(url: URL) -> bool:  # noqa: ARG001
    """Always: only the server can tell."""
    return True


def dsn(url: URL, seconds: float) -> str:
    """The connection string for a connection outside the pools, with the same limits. Holds the password."""
    import psycopg

    return psycopg.conninfo.make_conninfo(**_connecting(url, _limits(seconds)))


def reading(url: URL, seconds: float, connections: int) -> Engine:
    """An engine whose connections see each statement's newest commit and begin no transaction.

    `seconds` bounds a statement, on the server's side.
    """
    return _engine(url, _limits(seconds), connections, isolation_level="AUTOCOMMIT")


def writing(url: URL, seconds: float, connections: int) -> Engine:
    """An engine whose transactions begin with a statement of their own."""
    engine = _engine(url, _limits(seconds), connections)
    event.listen(engine, "begin", _begin)
    return engine


def migrating(url: URL, patience: float) -> Engine:
    """An engine of one connection whose transactions exclude those of other processes like it, from their begin on.

    `patience`, in seconds, bounds the wait for one of them, and for any lock.
    """
    engine = _engine(url, {"statement_timeout": 0, "lock_timeout": round(patience * 1000)}, 1)
    event.listen(engine, "begin", _begin_alone)
    return engine


def looking(url: URL, patience: float) -> Engine:
    """An engine of one connection for a short look; `patience` is in seconds."""
    return reading(url, patience, connections=1)


def sever(connection: Any) -> None:
    """Close a driver connection's socket under the thread that waits on it, so that the thread comes back."""
    with suppress(OSError, Exception), socket.socket(fileno=os.dup(connection.pgconn.socket)) as ours:
        ours.shutdown(socket.SHUT_RDWR)


def one_at_a_time(connection: Connection, key: str) -> None:
    """Wait for the transactions that asked for this key before; two keys may rarely share a lock."""
    connection.execute(_ONE_AT_A_TIME, {"class": _ORDERING, "key": key})


def _limits(seconds: float) -> dict[str, int]:
    """A transaction whose process vanished between two statements must not keep its locks either."""
    limit = max(round(seconds * 1000), 1)
    return {"statement_timeout": limit, "idle_in_transaction_session_timeout": limit}


def _engine(url: URL, limits: dict[str, int], connections: int, **options: Any) -> Engine:
    return create_engine(
        "postgresql+psycopg://",  # everything is handed to the driver itself
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=_CONNECT,
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={**_connecting(url, limits), "autocommit": True, "prepare_threshold": None},
        **options,
    )


def _connecting(url: URL, limits: dict[str, int]) -> dict[str, Any]:
    """Every parameter of a connection; what the URL says comes before what we would."""
    settings = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return {**_NETWORK, "options": settings, **_options(url)}


def _options(url: URL) -> dict[str, Any]:
    named = {
        "host": url.host,
        "port": url.port,
        "user": url.username,
        "password": url.password,
        "dbname": url.database,
        **{name: value if isinstance(value, str) else ",".join(value) for name, value in url.query.items()},
    }
    return {name: value for name, value in named.items() if value is not None}


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_alone(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
