"""The stores under test: each contract runs over the in-memory twin, over SQLite and over PostgreSQL.

`url` and `database` give an empty, migrated database on either product; a test that asks for one runs on both.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg import sql

from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.grants import SqlGrants
from gateway.store.keys import SqlKeys
from gateway.store.memory import MemoryConversations, MemoryKeys, MemorySessions
from gateway.store.memory_grants import MemoryGrants
from gateway.store.migrate import migrate
from gateway.store.sessions import SqlSessions
from gateway.store.tables import metadata
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support import postgres as support
from tests.support.auth_stores import a_token, beside, digest
from tests.support.grants import ALICE, MINUTE, NOON


@dataclass(frozen=True)
class Stores:
    sessions: MemorySessions | SqlSessions
    conversations: MemoryConversations | SqlConversations
    keys: MemoryKeys | SqlKeys


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this run's own."""
    with support.running() as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres) -> str:
    """The name of a migrated database, to be emptied for each test: a copy takes longer than most tests."""
    name = postgres.create()
    migrate(postgres.url(name))
    return name


@pytest.fixture
def postgresql_url(postgres, migrated) -> str:
    """A migrated, empty database on PostgreSQL."""
    tables = (sql.Identifier(table.name) for table in reversed(metadata.sorted_tables))
    postgres.run(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(table) for table in tables), migrated)
    return postgres.url(migrated)


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A migrated, empty SQLite database, to be copied: Alembic takes longer than most tests."""
    file = tmp_path_factory.mktemp("template") / "superpi.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_url(tmp_path, template) -> str:
    """A migrated, empty database in a file of the test's own, `superpi.db` in `tmp_path`."""
    return f"sqlite:///{shutil.copy(template, tmp_path)}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request) -> str:
    """A migrated, empty database of either product."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
async def database(url):
    database = open_database(url)
    yield database
    await database.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def stores(request):
    if request.param == "memory":
        yield Stores(MemorySessions(), MemoryConversations(), MemoryKeys())
        return
    database = open_database(request.getfixturevalue(f"{request.param}_url"))
    yield Stores(SqlSessions(database), SqlConversations(database), SqlKeys(database))
    await database.close()


@pytest.fixture
def sessions(stores):
    return stores.sessions


@pytest.fixture
def conversations(stores):
    return stores.conversations


@pytest.fixture
def keys(stores):
    return stores.keys


@pytest.fixture
def auth(stores):
    """The stores of principals and tokens beside the others."""
    return beside(stores)


@pytest.fixture
def grants(stores, auth):
    """On the same database as the sessions and tokens, or in memory where those are."""
    database = getattr(stores.sessions, "_database", None)
    return MemoryGrants(stores.sessions, auth.tokens) if database is None else SqlGrants(database)


@pytest.fixture
async def session(sessions):
    """The id of a session of Alice's."""
    await sessions.open(Session("s", State(principal=ALICE), NOON, NOON), most=10)
    return "s"


@pytest.fixture
async def token(auth):
    """The id of a token of Alice's, which is valid for an hour."""
    kept = a_token("t", ALICE, created=NOON - MINUTE, expires=NOON + 60 * MINUTE)
    assert await auth.tokens.create(kept, digest("t"), make_principal=True) is None
    return kept.id
