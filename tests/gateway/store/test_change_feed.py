"""The change feed on both products: what is heard, when, and what happens when the way to it is cut."""

import asyncio
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from auth.changes import Change, Subject
from gateway.store.changes import StoreChanges, record
from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.migrate import migrate
from gateway.store.sessions import SqlSessions
from gateway.store.tables import change as table
from mcp.conversations import Conversation
from mcp.protocol.state import State
from mcp.sessions import Session

ROOT = Path(__file__).parents[3]
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
#: Longer than any change may take to be heard, in seconds.
HEARD = 2.0


class Ears:
    """Keeps what a feed tells, and waits for it."""

    def __init__(self, feed):
        self.heard = []
        self._news = asyncio.Event()
        feed.listen(self._hear)

    def _hear(self, change):
        self.heard.append(change)
        self._news.set()

    async def until(self, *changes, seconds=HEARD):
        """Wait until all of these were heard."""
        async with asyncio.timeout(seconds):
            while not set(changes) <= set(self.heard):
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def feeding(url, **options):
    """A feed that reads, and the database beside it."""
    database = open_database(url)
    feed = StoreChanges(database, url, **options)
    try:
        await feed.start()
        yield feed, database
    finally:
        await feed.stop()
        await database.close()


@pytest.fixture
async def feed(url):
    async with feeding(url) as (feed, _):
        yield feed


def token(id):
    return Change(Subject.TOKEN, str(id))


async def write(database, *changes):
    """One transaction that changes all of these."""

    def job(connection):
        for change in changes:
            record(connection, change)

    await database.write(job)


WRITE = """
import asyncio, sys
from auth.changes import Change, Subject
from gateway.store.changes import record
from gateway.store.engine import open_database

async def main():
    database = open_database(sys.argv[1])
    for id in sys.argv[2:]:
        await database.write(lambda connection: record(connection, Change(Subject.TOKEN, id)))
    await database.close()
asyncio.run(main())
"""


async def test_a_change_made_in_another_process_is_heard(feed, url):
    ears = Ears(feed)
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITE, url, "a", "b", "c", cwd=ROOT)
    assert await other.wait() == 0
    await ears.until(token("c"))
    assert ears.heard == [token("a"), token("b"), token("c")]


async def test_a_change_made_over_another_connection_is_heard_in_time(feed, database):
    """`database` is as far from the feed as another process is."""
    ears = Ears(feed)
    for n in range(5):
        await write(database, token(n))
        await ears.until(token(n))
    assert ears.heard == [token(n) for n in range(5)]


async def test_ones_own_change_is_heard_before_the_write_returns_and_once(url):
    async with feeding(url) as (feed, database):
        ears = Ears(feed)
        for n in range(20):
            await write(database, token(n), Change(Subject.PRINCIPAL, str(n)))
            assert ears.heard[-2:] == [token(n), Change(Subject.PRINCIPAL, str(n))]
        async with feeding(url) as (_, other):
            await write(other, token("last"))
        await ears.until(token("last"))
        assert len(ears.heard) == 41


async def test_a_change_that_is_undone_is_never_heard(url):
    async with feeding(url) as (feed, database):
        ears = Ears(feed)

        def job(connection):
            record(connection, token("undone"))
            raise LookupError("changed my mind")

        with pytest.raises(LookupError):
            await database.write(job)
        await write(database, token("done"))
        async with feeding(url) as (_, other):
            await write(other, token("later"))
        await ears.until(token("later"))
        assert ears.heard == [token("done"), token("later")]


async def test_a_feed_that_reads_is_not_silent_and_one_that_never_did_is(url, database):
    never = StoreChanges(database, url)
    async with feeding(url) as (feed, _):
        await asyncio.sleep(2)  # the time itself is what is looked at
        assert (feed.silent_seconds(), never.silent_seconds() > 1.9) == (0.0, True)


@pytest.mark.parametrize("id", ["a\0b", "\ud800"])
async def test_an_id_that_no_database_takes_is_refused(database, id):
    with pytest.raises(ValueError, match=r"U\+0000"):
        await write(database, token(id))


async def test_old_changes_are_removed_but_never_the_newest(url):
    async with feeding(url) as (feed, database):
        ears = Ears(feed)
        for n in range(3):
            await write(database, token(n))
        await feed.prune(datetime.now(UTC) + timedelta(days=1))
        assert await database.read(lambda c: c.execute(select(table.c.key)).scalars().all()) == ["2"]
        async with feeding(url) as (_, other):
            await write(other, token("after"))
        await ears.until(token("after"))


async def test_a_kind_of_change_that_only_a_newer_version_knows_puts_everything_in_doubt(feed, database):
    ears = Ears(feed)
    await database.write(
        lambda connection: (
            connection.execute(table.insert(), {"subject": "moon phase", "key": "k", "at": datetime.now(UTC)}).rowcount
        )
    )
    await ears.until(None)
    assert ears.heard == [None]


async def test_a_hearer_that_fails_does_not_make_the_feed_deaf(feed, database, caplog):
    def fail(change):
        if change == token("bad"):
            raise ZeroDivisionError

    feed.listen(fail)
    ears = Ears(feed)
    await write(database, token("bad"))
    await ears.until(None)  # begun anew
    await write(database, token("good"))
    await ears.until(token("good"))
    assert "ZeroDivisionError" in caplog.text


async def test_sessions_that_end_are_heard_and_those_that_expire_are_not(feed, database):
    ears, sessions = Ears(feed), SqlSessions(database)
    for id, minute in [("a", 0), ("b", 1), ("c", 2)]:
        seen = NOON + timedelta(minutes=minute)
        await sessions.open(Session(id, State(principal="local:alice"), seen, seen), most=2)
    await ears.until(Change(Subject.SESSION, "a"))
    await sessions.end("b")
    await sessions.end("never")
    assert await sessions.sweep(NOON + timedelta(hours=1)) == 1
    await write(database, token("last"))
    await ears.until(token("last"))
    assert ears.heard == [Change(Subject.SESSION, "a"), Change(Subject.SESSION, "b"), token("last")]


async def test_conversations_that_begin_and_go_on_are_heard_and_refused_ones_are_not(feed, database):
    """The one by the id of their principal, whose list they change, the other by their own."""
    ears, conversations = Ears(feed), SqlConversations(database)
    begun = Conversation("c", "local:alice", "h", "t", None, NOON, NOON)
    await conversations.start(begun)
    await conversations.append("c", NOON, "user", {})
    for refused in (conversations.start(begun), conversations.append("c", NOON, "user", {"n": float("nan")})):
        with pytest.raises(ValueError, match=r"taken|JSON"):
            await refused
    await write(database, token("last"))
    await ears.until(token("last"))
    heard = [Change(Subject.CONVERSATIONS, "local:alice"), Change(Subject.CONVERSATION, "c"), token("last")]
    assert ears.heard == heard


# What only PostgreSQL can do.


def backends(postgres, database, query):
    """The pids of connections whose last statement was like that."""
    found = postgres.run(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        f" AND query LIKE '{query}'",
        database,
    )
    return [pid for (pid,) in found]


async def listeners(postgres, database):
    """The pids of those that listen, once there is one."""
    async with asyncio.timeout(10):
        while not (found := backends(postgres, database, "LISTEN%")):
            await asyncio.sleep(0.02)
    return found


async def test_nothing_is_missed_while_the_listener_is_killed_again_and_again(postgres, migrated, postgresql_url):
    async with feeding(postgresql_url) as (feed, _), feeding(postgresql_url) as (_, other):
        ears = Ears(feed)
        for n in range(60):
            if n % 20 == 5:
                await listeners(postgres, migrated)
                postgres.run("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
            await write(other, token(n))
        await ears.until(*(token(n) for n in range(60)))
        assert ears.heard == [token(n) for n in range(60)]
        assert feed.silent_seconds() == 0.0


async def test_a_listener_that_was_lost_comes_back(postgres, migrated, postgresql_url):
    async with feeding(postgresql_url):
        (before,) = await listeners(postgres, migrated)
        postgres.run(f"SELECT pg_terminate_backend({before})")
        async with asyncio.timeout(10):
            while before in (after := await listeners(postgres, migrated)):
                await asyncio.sleep(0.02)
        assert len(after) == 1


async def test_without_a_listener_changes_are_heard_by_reading(postgresql_url):
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    async with feeding(postgresql_url, listen_url=nowhere) as (feed, _), feeding(postgresql_url) as (_, other):
        ears = Ears(feed)
        for n in range(3):
            await write(other, token(n))
            await ears.until(token(n))


async def test_a_change_that_commits_after_a_later_one_is_heard(postgresql_url):
    async with feeding(postgresql_url) as (feed, _), feeding(postgresql_url) as (_, other):
        ears = Ears(feed)
        taken, go_on = threading.Event(), threading.Event()

        def slow(connection):
            record(connection, token("slow"))
            taken.set()
            assert go_on.wait(30)

        late = asyncio.create_task(other.write(slow))
        await asyncio.to_thread(taken.wait, 30)
        for n in range(3):
            await write(other, token(n))
            await ears.until(token(n))
        go_on.set()
        await late
        await ears.until(token("slow"))
        assert ears.heard == [token(0), token(1), token(2), token("slow")]


async def test_a_change_under_way_when_the_feed_begins_is_heard(postgresql_url):
    taken, go_on = threading.Event(), threading.Event()
    database = open_database(postgresql_url)

    def slow(connection):
        record(connection, token("slow"))
        taken.set()
        assert go_on.wait(30)

    late = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(taken.wait, 30)
    await write(database, token("early"))
    async with feeding(postgresql_url) as (feed, _):
        ears = Ears(feed)
        go_on.set()
        await late
        await ears.until(token("slow"))
        assert ears.heard == [token("slow")]
    await database.close()


async def test_when_the_database_comes_back_everything_is_in_doubt_and_not_before(postgres):
    with postgres.database() as url:
        name = url.rpartition("/")[2]
        migrate(url)
        async with feeding(url) as (feed, _):
            ears = Ears(feed)
            postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            async with asyncio.timeout(10):
                while feed.silent_seconds() < 2:
                    await asyncio.sleep(0.02)
            assert ears.heard == []
            postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            await ears.until(None, seconds=10)
            assert (ears.heard, feed.silent_seconds()) == ([None], 0.0)
            async with feeding(url) as (_, other):
                await write(other, token("after"))
            await ears.until(token("after"))


async def test_stopping_closes_every_connection(postgres, migrated, postgresql_url):
    async with feeding(postgresql_url):
        await listeners(postgres, migrated)
    assert backends(postgres, migrated, "%") == []


def test_the_feed_loads_no_alembic():
    code = "import sys, gateway.store.changes; print('alembic' in sys.modules, 'psycopg' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "False False\n"
