"""Opening, using and closing a SQLite database: files, locks, threads, and words for what goes wrong."""

import asyncio
import os
import sqlite3
import stat
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError

from gateway.store.engine import open_database
from gateway.store.faults import StoreUnavailable


@pytest.fixture
def url(sqlite_url):
    """These tests are about files, so on SQLite alone."""
    return sqlite_url


def run(statement):
    """A job of one statement."""
    return lambda connection: connection.execute(text(statement)).all()


def change(statement):
    """A job of one statement that gives no rows."""
    return lambda connection: connection.execute(text(statement)).rowcount


@contextmanager
def locked(file):
    """Another process's write transaction, as SQLite sees it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


async def opening(url, **options):
    """The words with which opening fails."""
    with pytest.raises(StoreUnavailable) as failure:
        open_database(url, **options)
    return str(failure.value)


async def test_opening_makes_closed_folders_and_a_closed_file(tmp_path):
    database = open_database(f"sqlite:///{tmp_path}/data/deep/superpi.db")
    await database.write(change("CREATE TABLE t (n INTEGER)"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*")}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert modes == {"deep": 0o700, "superpi.db": 0o600, "superpi.db-wal": 0o600, "superpi.db-shm": 0o600}
    await database.close()


async def test_opening_leaves_the_mode_of_what_exists(tmp_path):
    (tmp_path / "data").mkdir(mode=0o750)
    file = tmp_path / "data" / "superpi.db"
    file.touch()
    file.chmod(0o640)
    await open_database(f"sqlite:///{file}").close()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)] == [0o750, 0o640]


async def test_a_relative_path_starts_at_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await open_database("sqlite:///data/superpi.db").close()
    assert (tmp_path / "data" / "superpi.db").is_file()


async def test_connections_are_configured_as_decided(database):
    pragmas = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")

    def ask(connection):
        return [connection.execute(text(f"PRAGMA {pragma}")).scalar_one() for pragma in pragmas]

    assert await database.write(ask) == ["wal", 1, 5000, 1]
    reader = dict(zip(pragmas, await database.read(ask), strict=True))
    assert (reader["journal_mode"], reader["busy_timeout"], reader["foreign_keys"]) == ("wal", 5000, 1)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("not a url", "The database URL cannot be read", id="no URL at all"),
        pytest.param("sqlite://", "must name a file", id="no file"),
        pytest.param("sqlite:///:memory:", "must name a file", id="in memory, which threads cannot share"),
        pytest.param("sqlite:////tmp/x.db?mode=ro&uri=true", "nothing else", id="options"),
        pytest.param("mysql://root:hunter2@db/x", "mysql://db/x is of a kind", id="another product"),
        pytest.param("bogus+x://u:hunter2@db/x?password=hunter2", "bogus+x://db/x is of a kind", id="no product"),
    ],
)
async def test_a_url_that_cannot_be_opened_is_refused_without_its_secrets(url, words):
    said = await opening(url)
    assert words in said
    assert "hunter2" not in said


async def test_a_file_that_is_no_database_is_named_as_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("not a database " * 100)
    said = await opening("sqlite:///notes.txt")
    assert said == "The database sqlite:///notes.txt is not a SQLite database."
    assert Path("notes.txt").read_text() == "not a database " * 100


async def test_a_folder_in_the_files_place_is_refused(tmp_path):
    assert "cannot be opened: not a regular file" in await opening(f"sqlite:///{tmp_path}")


async def test_a_pipe_in_the_files_place_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in await opening(f"sqlite:///{tmp_path}/pipe")


async def test_a_file_in_a_folders_place_is_refused(tmp_path):
    (tmp_path / "data").touch()
    assert "cannot be opened" in await opening(f"sqlite:///{tmp_path}/data/superpi.db")


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_opening_waits_for_the_lock_that_the_switch_to_write_ahead_logging_needs(tmp_path, lock):
    """SQLite itself waits for only one of these two."""
    file = tmp_path / "superpi.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE t (n INTEGER)")
        other.execute(lock)
        start = time.monotonic()
        assert "is locked by another process" in await opening(f"sqlite:///{file}", patience=0.2)
        assert time.monotonic() - start >= 0.2
    await open_database(f"sqlite:///{file}").close()


async def test_a_damaged_page_is_unavailable_and_says_what_to_do(url, tmp_path):
    file = tmp_path / "superpi.db"
    with closing(sqlite3.connect(file)) as other:
        page = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'session'").fetchone()[0]
        size = other.execute("PRAGMA page_size").fetchone()[0]
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * size)
    database = open_database(url)
    with pytest.raises(StoreUnavailable, match="is damaged: restore it from a backup"):
        await database.read(run("SELECT * FROM session"))
    await database.close()


async def test_a_lock_that_stays_is_unavailable_and_one_that_goes_is_waited_for(url, tmp_path):
    hasty, patient = open_database(url, patience=0.05), open_database(url)
    with locked(tmp_path / "superpi.db"):
        with pytest.raises(StoreUnavailable, match="is locked by another process"):
            await hasty.write(change("DELETE FROM session"))
        waiting = asyncio.create_task(patient.write(change("DELETE FROM session")))
        assert await patient.read(run("SELECT count(*) FROM session")) == [(0,)]
        assert not waiting.done()
    assert await waiting == 0
    assert await hasty.write(change("DELETE FROM session")) == 0
    await asyncio.gather(hasty.close(), patient.close())


@pytest.mark.parametrize(
    ("pragma", "words"),
    [
        pytest.param("max_page_count=1", "cannot be written: the disk is full", id="full"),
        pytest.param("query_only=ON", "cannot be written: it is read-only", id="read-only"),
    ],
)
async def test_a_database_that_cannot_be_written_is_unavailable(database, pragma, words):
    def job(connection):
        connection.execute(text(f"PRAGMA {pragma}"))
        connection.execute(text("INSERT INTO signing_key VALUES ('a', 'p', zeroblob(100000), '2026-01-01')"))

    with pytest.raises(StoreUnavailable, match=words):
        await database.write(job)
    assert await database.read(run("SELECT * FROM signing_key")) == []


async def test_a_read_sees_the_newest_commit_of_another_process_between_two_statements(database, tmp_path):
    def job(connection):
        before = connection.execute(text("SELECT count(*) FROM signing_key")).scalar_one()
        with closing(sqlite3.connect(tmp_path / "superpi.db", isolation_level=None)) as other:
            other.execute("INSERT INTO signing_key VALUES ('a', 'p', x'00', '2026-01-01 00:00:00.000000')")
        return before, connection.execute(text("SELECT count(*) FROM signing_key")).scalar_one()

    assert await database.read(job) == (0, 1)


async def test_a_write_that_raises_is_undone_whole(database):
    def job(connection):
        connection.execute(text("INSERT INTO signing_key VALUES ('a', 'p', x'00', '2026-01-01 00:00:00.000000')"))
        connection.execute(text("CREATE TABLE extra (n INTEGER)"))
        raise LookupError("changed my mind")

    with pytest.raises(LookupError, match="changed my mind"):
        await database.write(job)
    assert await database.read(run("SELECT * FROM signing_key")) == []
    assert await database.read(run("SELECT name FROM sqlite_master WHERE name = 'extra'")) == []


async def test_a_writer_owns_the_lock_from_its_begin(url, tmp_path):
    """A deferred transaction would fail at once when another process wrote between its read and its write."""
    database = open_database(url)

    def job(connection):
        with closing(sqlite3.connect(tmp_path / "superpi.db", timeout=0)) as other:
            try:
                other.execute("DELETE FROM session")
            except sqlite3.OperationalError as error:
                return error.sqlite_errorcode
        return None

    assert await database.write(job) == sqlite3.SQLITE_BUSY
    await database.close()


async def test_foreign_keys_are_enforced_and_cascade(database):
    with pytest.raises(IntegrityError):
        await database.write(change("INSERT INTO entry VALUES ('none', 1, '2026-01-01 00:00:00.000000', 'k', '{}')"))
    await database.write(
        change("INSERT INTO conversation VALUES ('c', 'p', 'h', 't', NULL, '2026-01-01', '2026-01-01', 1)")
    )
    await database.write(change("INSERT INTO entry VALUES ('c', 1, '2026-01-01 00:00:00.000000', 'k', '{}')"))
    await database.write(change("DELETE FROM conversation"))
    assert await database.read(run("SELECT * FROM entry")) == []


async def test_a_mistake_in_sql_stays_a_bug_and_its_parameters_stay_out_of_the_message(database):
    def job(connection):
        connection.execute(text("SELECT :secret FROM nowhere"), {"secret": "hunter2"})

    with pytest.raises(OperationalError, match="no such table") as bug:
        await database.read(job)
    assert "hunter2" not in str(bug.value)


async def test_jobs_run_in_few_named_threads_and_never_in_the_event_loops(url):
    database = open_database(url, readers=2)
    names = await asyncio.gather(*(database.read(lambda _: threading.current_thread().name) for _ in range(20)))
    names += await asyncio.gather(*(database.write(lambda _: threading.current_thread().name) for _ in range(20)))
    assert set(names) <= {"superpi-db-read_0", "superpi-db-read_1", "superpi-db-write_0"}
    await database.close()


async def test_no_connection_is_held_once_a_job_has_ended(database):
    await asyncio.gather(*(database.read(run("SELECT 1")) for _ in range(20)), database.write(run("SELECT 1")))
    assert [lane.engine.pool.checkedout() for lane in (database._reading, database._writing)] == [0, 0]


async def test_closing_finishes_what_was_asked_for_and_happens_once(url, tmp_path):
    database = open_database(url)
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection):
        begun.set()
        assert go_on.wait(30)
        return change("DELETE FROM session")(connection)

    first = asyncio.create_task(database.write(slow))
    queued = asyncio.create_task(database.write(change("DELETE FROM session")))
    await asyncio.to_thread(begun.wait, 30)
    closing_twice = asyncio.gather(database.close(), database.close())
    await asyncio.sleep(0)  # the first close begins
    with pytest.raises(StoreUnavailable, match="is closed"):
        await database.read(run("SELECT 1"))
    go_on.set()
    assert [await first, await queued, await closing_twice] == [0, 0, [None, None]]
    await database.close()
    assert [path.name for path in tmp_path.iterdir()] == ["superpi.db"]


async def test_cancelling_a_caller_does_not_undo_a_write_that_runs(url):
    database = open_database(url)
    begun, go_on = threading.Event(), threading.Event()

    def job(connection):
        begun.set()
        assert go_on.wait(30)
        connection.execute(text("INSERT INTO signing_key VALUES ('a', 'p', x'00', '2026-01-01 00:00:00.000000')"))

    caller = asyncio.create_task(database.write(job))
    await asyncio.to_thread(begun.wait, 30)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    await database.write(change("DELETE FROM session"))  # waits for its turn behind the first
    assert await database.read(run("SELECT id FROM signing_key")) == [("a",)]
    await database.close()
