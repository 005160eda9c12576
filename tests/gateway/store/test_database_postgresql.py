"""Using PostgreSQL when all is well and when it is not: threads, time limits, lost connections, words."""

import asyncio
import threading
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError

from gateway.store.engine import open_database
from gateway.store.faults import StoreUnavailable
from tests.support.postgres import PASSWORD
from tests.support.relay import relaying


@pytest.fixture
def url(postgresql_url):
    return postgresql_url


def run(statement):
    """A job of one statement."""
    return lambda connection: connection.execute(text(statement)).all()


def change(statement):
    """A job of one statement that gives no rows."""
    return lambda connection: connection.execute(text(statement)).rowcount


KEY = "INSERT INTO signing_key VALUES ('{}', 'p', '', now())"


async def failure(work):
    """The words with which it fails, and what they must never show."""
    with pytest.raises(StoreUnavailable) as failed:
        await work
    assert PASSWORD not in str(failed.value)
    return str(failed.value)


def named(url):
    """A database as messages name it."""
    return f"postgresql://{url.rpartition('@')[2]}"


async def test_a_read_sees_the_newest_commit_between_two_statements(database, url):
    other = open_database(url)
    between, go_on = threading.Event(), threading.Event()

    def job(connection):
        before = connection.execute(text("SELECT count(*) FROM signing_key")).scalar_one()
        between.set()
        assert go_on.wait(30)
        return before, connection.execute(text("SELECT count(*) FROM signing_key")).scalar_one()

    reading = asyncio.create_task(database.read(job))
    await asyncio.to_thread(between.wait, 30)
    await other.write(change(KEY.format("a")))
    go_on.set()
    assert await reading == (0, 1)
    await other.close()


async def test_a_write_that_raises_is_undone_whole(database):
    def job(connection):
        connection.execute(text(KEY.format("a")))
        connection.execute(text("CREATE TABLE extra (n INTEGER)"))
        raise LookupError("changed my mind")

    with pytest.raises(LookupError, match="changed my mind"):
        await database.write(job)
    assert await database.read(run("SELECT * FROM signing_key")) == []
    assert await database.read(run("SELECT 1 FROM pg_tables WHERE tablename = 'extra'")) == []


async def test_several_writers_work_at_once(database):
    together = threading.Barrier(4)
    await asyncio.gather(*(database.write(lambda _: together.wait(30)) for _ in range(4)))


async def test_jobs_run_in_as_many_named_threads_as_there_are_connections(url, postgres):
    database = open_database(url, readers=2, writers=3)

    def who(connection):
        return threading.current_thread().name, connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

    reads = await asyncio.gather(*(database.read(who) for _ in range(40)))
    writes = await asyncio.gather(*(database.write(who) for _ in range(40)))
    assert {name for name, _ in reads} <= {"superpi-db-read_0", "superpi-db-read_1"}
    assert {name for name, _ in writes} <= {f"superpi-db-write_{n}" for n in range(3)}
    assert (len({pid for _, pid in reads}) <= 2, len({pid for _, pid in writes}) <= 3) == (True, True)
    await database.close()


async def test_no_connection_is_held_and_no_transaction_open_once_a_job_has_ended(database, postgres, migrated):
    async def abandoned():
        await database.write(run("SELECT pg_sleep(0.05)"))

    calls = [asyncio.create_task(abandoned()) for _ in range(20)]
    await asyncio.gather(*(database.read(run("SELECT 1")) for _ in range(20)))
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    lanes = (database._reading, database._writing)
    async with asyncio.timeout(30):  # jobs whose callers went away still run to their end
        while any(lane.engine.pool.checkedout() for lane in lanes):
            await asyncio.sleep(0.02)
    states = postgres.run("SELECT DISTINCT state FROM pg_stat_activity WHERE datname = current_database()", migrated)
    assert {state for (state,) in states} <= {"active", "idle"}


@pytest.mark.parametrize("act", ["read", "write"])
async def test_a_statement_that_takes_too_long_is_ended_by_the_server_too(url, postgres, migrated, act):
    database = open_database(url, seconds=0.5)
    assert await failure(getattr(database, act)(run("SELECT pg_sleep(30)"))) in {
        f"The database {named(url)} did not answer in time.",
        f"The database {named(url)} is busy: no connection became free in time.",
    }
    async with asyncio.timeout(5):
        while postgres.run(
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%' AND state = 'active'"
            " AND pid <> pg_backend_pid()",
            migrated,
        ):
            await asyncio.sleep(0.02)
    assert await getattr(database, act)(run("SELECT 1")) == [(1,)]
    await database.close()


async def test_a_job_waits_for_its_turn_only_so_long_and_then_never_runs(url):
    database = open_database(url, writers=1, wait=0.2)
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection):
        begun.set()
        assert go_on.wait(30)

    holding = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(begun.wait, 30)
    ran = []
    said = await failure(database.write(ran.append))
    assert said == f"The database {named(url)} is busy: no connection became free in time."
    go_on.set()
    await holding
    await database.write(change("DELETE FROM signing_key"))  # behind the one that was given up
    assert ran == []
    await database.close()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({PASSWORD: "wrong-" + PASSWORD}, "does not let this user in", id="a wrong password"),
        pytest.param({"superpi:": "nobody:"}, "does not let this user in", id="an unknown user"),
        pytest.param({"/test": "/none"}, "or its user does not exist", id="an unknown database"),
        pytest.param({"@127.0.0.1:": "@127.0.0.1:1"}, None, id="a port that nobody listens at"),
        pytest.param({"@127.0.0.1": "@nowhere.invalid"}, "its host name is not known", id="an unknown host"),
    ],
)
async def test_why_a_database_cannot_be_used_in_words(url, changed, words):
    if words is None:
        url, words = f"postgresql://superpi:{PASSWORD}@127.0.0.1:1/none", "refuses connections"
    for old, new in changed.items():
        url = url.replace(old, new)
    database = open_database(url)
    for act in (database.read, database.write):
        said = await failure(act(run("SELECT 1")))
        assert said.startswith(f"The database {named(url)} ")
        assert words in said
    await database.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("postgresql://u:hunter2@host", "postgresql://host must name a database", id="no database"),
        pytest.param("postgresql://u:hunter2@host/x?sslmod=no", "has an option in its URL", id="an unknown option"),
        pytest.param("postgresql://u:hun@ter2@host/x", "with %40 for an @", id="an @ in the password"),
        pytest.param("postgresql://u:hunter2@host:port/x", "cannot be read", id="a port that is no number"),
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_without_its_secrets(url, words):
    with pytest.raises(StoreUnavailable) as failed:
        open_database(url)
    assert words in str(failed.value)
    assert "hunter2" not in str(failed.value)
    assert "ter2" not in str(failed.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg"])
async def test_a_url_of_any_driver_is_opened_with_ours(url, scheme):
    database = open_database(url.replace("postgresql", scheme, 1))
    assert await database.read(run("SELECT 1")) == [(1,)]
    await database.close()


async def test_options_of_the_url_come_before_ours(url):
    database = open_database(f"{url}?application_name=mine&options=-c%20statement_timeout%3D1234")
    asked = "SELECT current_setting('application_name'), current_setting('statement_timeout')"
    assert await database.read(run(asked)) == [("mine", "1234ms")]
    await database.close()


async def test_a_mistake_in_sql_stays_a_bug_and_its_parameters_stay_out_of_the_message(database):
    def job(connection):
        connection.execute(text("SELECT :secret FROM nowhere"), {"secret": "hunter2"})

    with pytest.raises(ProgrammingError, match="does not exist") as bug:
        await database.read(job)
    assert "hunter2" not in str(bug.value)


async def test_a_broken_constraint_and_text_that_cannot_be_stored_stay_bugs(database):
    with pytest.raises(IntegrityError):
        await database.write(change("INSERT INTO entry VALUES ('none', 1, now(), 'k', '{}')"))
    with pytest.raises(DataError):
        await database.read(lambda connection: connection.execute(text("SELECT :t"), {"t": "a\0b"}).all())


# Connections that are lost.


@pytest.fixture
async def relay(postgres):
    async with relaying(postgres.port) as relay:
        yield relay


@pytest.fixture
async def beyond(relay, url, postgres):
    """The database behind a relay, with one connection of each kind that was used already."""
    database = open_database(url.replace(f":{postgres.port}/", f":{relay.port}/"), readers=1, writers=1, seconds=1)
    await database.read(run("SELECT 1"))
    await database.write(run("SELECT 1"))
    yield database
    await database.close()


@pytest.mark.parametrize(
    ("act", "trips"),
    [
        pytest.param("read", 1, id="a read is one"),
        pytest.param("write", 3, id="a write is three, with its transaction"),
    ],
)
async def test_how_many_round_trips_a_statement_takes(beyond, relay, act, trips):
    before = relay.asked
    for _ in range(10):
        await getattr(beyond, act)(run("SELECT 1"))
    assert relay.asked - before == 10 * trips


@pytest.mark.parametrize("act", ["read", "write"])
async def test_a_connection_that_died_in_the_pool_is_replaced_unseen(beyond, relay, act):
    for _ in range(3):
        relay.cut()
        assert await getattr(beyond, act)(run("SELECT 1")) == [(1,)]


async def test_a_write_whose_connection_dies_under_way_is_not_done_twice(beyond, relay, database):
    runs = []

    def job(connection):
        runs.append(connection.execute(text(KEY.format(f"k{len(runs)}"))).rowcount)
        connection.connection.driver_connection.pgconn.finish()
        connection.execute(text("SELECT 1"))

    said = await failure(beyond.write(job))
    assert (runs, "The database postgresql://127.0.0.1" in said) == ([1], True)
    assert await beyond.write(run("SELECT * FROM signing_key")) == []


async def test_a_read_that_loses_its_connection_twice_is_unavailable(beyond, relay):
    runs = []

    def job(connection):
        runs.append(1)
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    assert "is shutting down" in await failure(beyond.read(job))
    assert runs == [1, 1]


@pytest.mark.parametrize("act", ["read", "write"])
async def test_a_database_that_never_answers_holds_no_thread_for_ever(beyond, relay, act):
    """The relay takes the bytes, and new connections too, and nothing comes back."""
    relay.freeze()
    start = time.monotonic()
    said = [await failure(getattr(beyond, act)(run("SELECT 1"))) for _ in range(2)]
    assert time.monotonic() - start < 6
    assert all("in time" in words or "does not answer" in words for words in said)
    lanes = {"read": beyond._reading, "write": beyond._writing}
    async with asyncio.timeout(10):
        while lanes[act].engine.pool.checkedout():
            await asyncio.sleep(0.02)
    relay.thaw()
    async with asyncio.timeout(10):
        while True:
            try:
                assert await getattr(beyond, act)(run("SELECT 1")) == [(1,)]
                break
            except StoreUnavailable:  # the thread may still be making a connection
                await asyncio.sleep(0.05)


async def test_a_job_that_was_ended_fails_with_one_sentence_however_soon_its_thread_notices(beyond, relay):
    relay.freeze()
    said = [await failure(beyond.write(run("SELECT 1")))]
    relay.thaw()
    relay.cut()
    held, go_on = threading.Event(), threading.Event()

    def job(connection):
        held.set()
        assert go_on.wait(30)
        connection.execute(text("SELECT 1"))

    call = asyncio.create_task(beyond.read(job))
    await asyncio.to_thread(held.wait, 30)
    asyncio.get_running_loop().call_later(1.0, go_on.set)  # about when it is ended
    said.append(await failure(call))
    assert said == [f"The database {beyond.name} did not answer in time."] * 2


async def test_a_caller_that_goes_away_leaves_no_thread_behind_either(beyond, relay):
    relay.freeze()
    caller = asyncio.create_task(beyond.read(run("SELECT 1")))
    async with asyncio.timeout(5):
        while not beyond._reading.engine.pool.checkedout():
            await asyncio.sleep(0.01)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    start = time.monotonic()
    await beyond.close()
    assert time.monotonic() - start < 5


async def test_a_write_that_met_another_is_done_once_more(url):
    """Two transactions that lock the same two rows in opposite orders: PostgreSQL undoes one of them."""
    database = open_database(url, writers=2)
    for id in ("a", "b"):
        await database.write(change(KEY.format(id)))
    together, runs = threading.Barrier(2), []

    def crossing(first, second):
        lock = "UPDATE signing_key SET purpose = purpose || 'x' WHERE id = '{}'"

        def job(connection):
            runs.append(first)
            connection.execute(text(lock.format(first)))
            if len(runs) <= 2:
                together.wait(30)
            connection.execute(text(lock.format(second)))

        return job

    await asyncio.gather(database.write(crossing("a", "b")), database.write(crossing("b", "a")))
    assert len(runs) == 3
    assert await database.read(run("SELECT purpose FROM signing_key")) == [("pxx",), ("pxx",)]
    await database.close()
