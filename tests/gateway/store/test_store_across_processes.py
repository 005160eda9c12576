"""What holds when several processes use one database, when one is killed, and when sessions are left behind."""

import gc
import signal
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from gateway.store.conversations import SqlConversations
from gateway.store.keys import SqlKeys
from gateway.store.sessions import SqlSessions
from gateway.store.tables import session as table
from mcp.conversations import Conversation
from mcp.protocol.state import State
from mcp.sessions import Session

ROOT = Path(__file__).parents[3]
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)

PROLOGUE = """
import asyncio, sys
from datetime import UTC, datetime
from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.keys import SqlKeys
from gateway.store.sessions import SqlSessions
from mcp.protocol.state import State
from mcp.sessions import Session

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
database = open_database(sys.argv[1])

def say(*words):
    print(*words, flush=True)

def run(work):
    async def whole():
        try:
            await work()
        finally:
            await database.close()
    say("ready")
    sys.stdin.readline()
    asyncio.run(whole())
"""

APPEND = """
async def work():
    conversations = SqlConversations(database)
    for n in range(100):
        say(await conversations.append("c", NOON, "user", {"from": sys.argv[2], "n": n}))
run(work)
"""

SIGN = """
async def work():
    say((await SqlKeys(database).signing_key("cursor")).hex())
run(work)
"""

OPEN_AND_WAIT = """
async def work():
    await SqlSessions(database).open(Session("s", State(principal="local:alice"), NOON, NOON), most=10)
    say("opened")
    await asyncio.Event().wait()
run(work)
"""


def in_use():
    """Bytes in use by Python; the collection empties the interpreter's free lists too."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def row(id):
    """A session's row, to make many at once."""
    names = dict.fromkeys(["id", "principal"], id) | {"harness": "", "client": {}, "capabilities": {}}
    return names | {"initialized": True, "created_at": NOON, "last_seen_at": NOON}


def process(script, url, *args):
    """Start a Python process that has opened the database and waits for a line before it works."""
    started = subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + script, url, *args],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout.readline() == "ready\n"
    return started


def go(started):
    """Let it work."""
    started.stdin.write("\n")
    started.stdin.flush()


def lines_of(processes):
    """Let them work at the same time; the lines each said."""
    for started in processes:
        go(started)
    said = [started.communicate(timeout=60)[0].split() for started in processes]
    assert [started.returncode for started in processes] == [0] * len(processes)
    return said


async def test_two_processes_that_append_at_once_leave_no_gap_and_lose_nothing(database, url):
    conversations = SqlConversations(database)
    await conversations.start(Conversation("c", "local:alice", "h", "t", None, NOON, NOON))
    said = lines_of([process(APPEND, url, name) for name in ("one", "two")])
    entries = await conversations.entries("local:alice", "c")
    assert [entry.seq for entry in entries] == list(range(1, 201))
    for name, seqs in zip(("one", "two"), said, strict=True):
        own = [(entry.body["n"], str(entry.seq)) for entry in entries if entry.body["from"] == name]
        assert own == list(enumerate(seqs))


async def test_processes_that_make_a_signing_key_at_once_agree_on_one(database, url):
    said = lines_of([process(SIGN, url) for _ in range(2)])
    assert said == [[(await SqlKeys(database).signing_key("cursor")).hex()]] * 2


async def test_a_session_survives_kill_9_as_soon_as_it_was_opened(database, url):
    started = process(OPEN_AND_WAIT, url)
    go(started)
    assert started.stdout.readline() == "opened\n"
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=30)
    assert started.returncode == -signal.SIGKILL
    found = await SqlSessions(database).find("s")
    assert found == Session("s", State(principal="local:alice"), NOON, NOON)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # what is looked at is this side of the database
async def test_ten_thousand_abandoned_sessions_keep_no_memory(database):
    """Growth a session is under 128 bytes, less than its id in a dictionary would take."""
    sessions = SqlSessions(database)
    ids = [f"s{n:042}" for n in range(10_000)]

    async def abandon(some):
        for id in some:
            await sessions.open(Session(id, State(principal=id), NOON, NOON), most=1000)
            assert await sessions.find(id) is not None
        await sessions.touch(dict.fromkeys(ids, NOON + timedelta(seconds=1)))

    await database.write(lambda connection: connection.execute(insert(table), [row(id) for id in ids[:9100]]))
    await abandon(ids[9100:9200])
    tracemalloc.start()
    try:
        await abandon(ids[9200:9300])
        before = in_use()
        await abandon(ids[9300:])
        assert await sessions.count() == 10_000
        grown = in_use() - before
    finally:
        tracemalloc.stop()
    assert await sessions.sweep(NOON + timedelta(seconds=2)) == 10_000
    assert grown < 700 * 128


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        pytest.param("gateway.store.memory", ["sqlalchemy", "alembic"], id="the twin needs no database"),
        pytest.param("gateway.store.faults", ["sqlalchemy", "alembic"], id="nor does catching its failure"),
        pytest.param("gateway.store.migrate", ["alembic"], id="looking at the revision needs no Alembic"),
        pytest.param("gateway.store.sessions", ["alembic"], id="nor do the stores"),
    ],
)
def test_what_is_not_needed_is_not_loaded(module, absent):
    script = f"import sys, {module}; print([name for name in {absent!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
