"""Bringing a database to this version's schema, and telling where it stands.

Any number of processes may call `migrate` at once: one of them does the work under a lock, the others find it
done. Alembic is loaded only when there is work, since it costs more than everything else at start.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, assert_never

from sqlalchemy import URL, Connection, Engine, event, inspect, text

from gateway.store import engine
from gateway.store.attempts import Attempt, GivenUpError
from gateway.store.faults import SchemaBehind, SchemaForeign, StoreUnavailable
from gateway.store.tables import metadata
from migrations import FOLDER, revisions

if TYPE_CHECKING:
    from alembic.config import Config

_VERSION_TABLE: Final = "alembic_version"
_CURRENT: Final = text("SELECT version_num FROM alembic_version")
_TABLES_MISSING: Final = "lacks tables that this superpi needs: run `superpi migrate`"
_SOMEBODY_ELSES: Final = "has tables but no revision: use an empty one"

#: Seconds to wait for another process that migrates.
_PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class UpToDate:
    """The schema is the one this version needs."""

    revision: str


@dataclass(frozen=True, slots=True)
class Behind:
    """The schema is older than `head`; `revision` is None for an empty database."""

    revision: str | None
    head: str


@dataclass(frozen=True, slots=True)
class Newer:
    """The schema was made by a version that knows more revisions than this one, up to `head`."""

    revision: str
    head: str


Standing = UpToDate | Behind | Newer


def explain(standing: Standing) -> str:
    """One sentence for an operator: what is so and what to do."""
    match standing:
        case UpToDate(revision):
            return f"The database schema is at revision {revision}, which is current."
        case Behind(revision, head):
            return f"The database schema is at revision {revision or 'none'}, not {head}: run `superpi migrate`."
        case Newer(revision, head):
            return (
                f"The database schema is at revision {revision}, newer than this superpi knows ({head}): "
                "install the newer superpi again. Nothing was changed."
            )
        case _:
            assert_never(standing)


def current_revision(url: str) -> str | None:
    """The revision of the database at that URL; None when it is empty or missing. Raises StoreUnavailable."""
    parsed = engine.parse(url)
    product = engine.product_of(parsed)
    if not product.exists(parsed):
        return None
    with _looking(parsed) as connection:
        return _revision(connection, parsed)


def check(url: str) -> Standing:
    """Where the database stands, without touching it: neither the file nor its folder is made.

    Raises StoreUnavailable.
    """
    return _standing(current_revision(url))


def migrate(url: str) -> UpToDate | Newer:
    """Bring the database to this version's schema in one transaction, making it when it is missing.

    A newer one is left as it is. Raises StoreUnavailable.
    """
    standing = check(url)
    if not isinstance(standing, Behind):
        return standing
    parsed = engine.parse(url)
    engine.prepare(parsed, _PATIENCE)
    once = engine.product_of(parsed).migrating(parsed, _PATIENCE)
    with _connection(once, parsed) as connection, connection.begin():
        # No other process migrates from here on, so what is asked now stays so.
        standing = _standing(_revision(connection, parsed))
        return _upgrade(connection, standing) if isinstance(standing, Behind) else standing


How = Literal["auto", "check", "off"]


def make_ready(url: str, how: How) -> None:
    """What comes before a database is opened: migrate it, or only see that it is current, or nothing.

    Raises SchemaBehind and SchemaForeign, with what to do, for a schema that this version cannot work on, and
    StoreUnavailable.
    """
    if how == "off":
        return
    standing = migrate(url) if how == "auto" else check(url)
    match standing:
        case UpToDate():
            return
        case Behind():
            raise SchemaBehind(explain(standing), public=explain(standing))
        case Newer():
            raise SchemaForeign(explain(standing), public=explain(standing))
        case _:
            assert_never(standing)


def make_usable(url: str, how: How) -> None:
    """What a server does before it serves: `make_ready`, and see that the database can be used at all.

    Under `off` the operator's word is taken for the revision, and only a database without the tables is refused:
    the first statement would fail with the driver's words. Raises as `make_ready` does.
    """
    make_ready(url, how)
    parsed = engine.parse(url)
    engine.prepare(parsed, engine.PATIENCE)
    if how == "off":
        with _looking(parsed) as connection:
            if metadata.tables.keys() - set(inspect(connection).get_table_names()):
                raise engine.unavailable(parsed, _TABLES_MISSING, SchemaBehind)


def configuration() -> Config:
    """Alembic's configuration, without a file, as it is in the wheel too."""
    from alembic.config import Config  # not needed by a process that finds its schema current

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


def _upgrade(connection: Connection, standing: Behind) -> UpToDate:
    from alembic import command

    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return UpToDate(standing.head)


def _standing(revision: str | None) -> Standing:
    known = revisions()
    head = known[-1]
    if revision == head:
        return UpToDate(head)
    if revision is None or revision in known:
        return Behind(revision, head)
    return Newer(revision, head)


def _revision(connection: Connection, url: URL) -> str | None:
    tables = set(inspect(connection).get_table_names())
    revision = connection.scalar(_CURRENT) if _VERSION_TABLE in tables else None
    if revision is None and tables & metadata.tables.keys():
        raise engine.unavailable(url, _SOMEBODY_ELSES, SchemaForeign)
    return revision


@contextmanager
def _looking(url: URL) -> Iterator[Connection]:
    """A connection for a short look, which is given up when the database has not answered in time."""
    product = engine.product_of(url)
    once = product.looking(url, engine.PATIENCE)
    attempt = Attempt(product.sever)
    attempt.begin()
    # Before SQLAlchemy's own hook, which asks the database on its first connection.
    event.listen(once, "connect", lambda connection, _record: attempt.hold(connection), insert=True)
    end = threading.Timer(engine.PATIENCE, attempt.end)
    end.daemon = True
    end.start()
    try:
        with _connection(once, url) as connection:
            yield connection
    except (StoreUnavailable, GivenUpError) as error:
        if not attempt.given_up:
            raise
        raise engine.unavailable(url, engine.LATE) from error
    finally:
        attempt.release()
        end.cancel()


@contextmanager
def _connection(once: Engine, url: URL) -> Iterator[Connection]:
    """A connection of an engine that is used for nothing else."""
    try:
        with engine.failures_named(url), once.connect() as connection:
            yield connection
    finally:
        once.dispose()
