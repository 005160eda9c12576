"""The stores under test: each contract runs over the in-memory twin and over a database of its own."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.keys import SqlKeys
from gateway.store.memory import MemoryConversations, MemoryKeys, MemorySessions
from gateway.store.migrate import migrate
from gateway.store.sessions import SqlSessions


@dataclass(frozen=True)
class Stores:
    sessions: MemorySessions | SqlSessions
    conversations: MemoryConversations | SqlConversations
    keys: MemoryKeys | SqlKeys


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A migrated, empty database, to be copied: Alembic takes longer than most tests."""
    file = tmp_path_factory.mktemp("template") / "superpi.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def url(tmp_path, template) -> str:
    """A migrated, empty database of the test's own."""
    return f"sqlite:///{shutil.copy(template, tmp_path)}"


@pytest.fixture
async def database(url):
    database = open_database(url)
    yield database
    await database.close()


@pytest.fixture(params=["memory", "sqlite"])
async def stores(request, tmp_path, template):
    if request.param == "memory":
        yield Stores(MemorySessions(), MemoryConversations(), MemoryKeys())
        return
    database = open_database(f"sqlite:///{shutil.copy(template, tmp_path)}")
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
