"""Sessions in use, over the in-memory store: who finds them, when they end, and what they cost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from auth.ports import StoreAway
from gateway.store.memory import MemorySessions
from mcp.live import Sessions
from mcp.protocol.revisions import Revision
from mcp.protocol.state import State

ALICE = State("local:alice", revision=Revision.R2025_06_18)
BOB = replace(ALICE, principal="local:bob")
IDLE = timedelta(hours=1)


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def pass_by(self, **time):
        self.now += timedelta(**time)


class CountingStore(MemorySessions):
    """The twin, counting how often it is asked."""

    def __init__(self):
        super().__init__()
        self.finds = 0

    async def find(self, id):
        self.finds += 1
        return await super().find(id)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    return CountingStore()


@pytest.fixture
def sessions(store, clock):
    return Sessions(store, clock, idle=IDLE, most=50)


def another_process(store, clock, **options):
    return Sessions(store, clock, **({"idle": IDLE, "most": 50} | options))


@pytest.mark.requirement("SES-2")
async def test_an_id_has_256_random_bits_in_visible_ascii(sessions):
    """SES-2."""
    ids = {(await sessions.open(ALICE)).id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(id) == 43 and all(0x21 <= ord(char) <= 0x7E for char in id) for id in ids)


@pytest.mark.requirement("SES-7", "AU-19")
async def test_only_the_principal_that_opened_a_session_finds_it(sessions, store, clock):
    """SES-7, warm and cold; a foreign id is as unknown as one that never was."""
    session = await sessions.open(ALICE)
    for finder in (sessions, another_process(store, clock)):
        assert await finder.find(session.id, "local:bob") is None
        assert await finder.find(session.id, "local:alice") == session
        assert await finder.find("x" * 43, "local:alice") is None
        assert await finder.find("x" * 10_000, "local:alice") is None


async def test_a_warm_session_is_found_without_the_store(sessions, store):
    """No round trip in the steady state."""
    session = await sessions.open(ALICE)
    for _ in range(100):
        assert await sessions.find(session.id, "local:alice") == session
    assert store.finds == 0


async def test_a_session_goes_on_in_another_process(sessions, store, clock):
    """With the state it had."""
    session = await sessions.open(ALICE)
    initialized = replace(ALICE, initialized=True)
    await sessions.save(session, initialized)
    found = await another_process(store, clock).find(session.id, "local:alice")
    assert found.state == initialized


async def test_the_last_call_to_change_the_state_wins(sessions):
    """And a call that changed nothing overwrites nothing."""
    session = await sessions.open(ALICE)
    long = await sessions.find(session.id, "local:alice")
    quick = await sessions.find(session.id, "local:alice")
    await sessions.save(quick, replace(quick.state, initialized=True))
    await sessions.save(long, long.state)
    assert (await sessions.find(session.id, "local:alice")).state.initialized


async def test_a_session_ends_when_it_was_idle_too_long(sessions, store, clock):
    """Case C04: also one that is still warm; and its row is swept."""
    session = await sessions.open(ALICE)
    clock.pass_by(minutes=59)
    assert await sessions.find(session.id, "local:alice")
    clock.pass_by(minutes=59)
    assert await sessions.find(session.id, "local:alice")
    clock.pass_by(minutes=61)
    assert await sessions.find(session.id, "local:alice") is None
    await sessions.open(BOB)
    clock.pass_by(minutes=64)
    await sessions.tidy()
    assert await store.count() == 0


async def test_a_running_call_counts_as_use(store, clock):
    """Case C04: for longer than sessions may be idle, also where nobody tidied meanwhile."""
    running = set()
    sessions = another_process(store, clock, busy=running.__contains__)
    session = await sessions.open(ALICE)
    running.add(session.id)
    clock.pass_by(hours=5)
    assert await sessions.find(session.id, "local:alice")
    for _ in range(5):
        clock.pass_by(minutes=30)
        await sessions.tidy()
    running.clear()
    assert await another_process(store, clock).find(session.id, "local:alice")
    clock.pass_by(minutes=61)
    assert await sessions.find(session.id, "local:alice") is None


async def test_a_session_was_in_use_until_its_last_call_ended(store, clock):
    """Case C04: a call of two hours, which nobody tidied after, and then half an hour of quiet."""
    running = set()
    sessions = another_process(store, clock, busy=running.__contains__)
    session = await sessions.open(ALICE)
    running.add(session.id)
    clock.pass_by(hours=2)
    running.clear()
    sessions.landed(session.id)
    sessions.landed("nobody's")
    clock.pass_by(minutes=30)
    assert await sessions.find(session.id, "local:alice")


@pytest.mark.parametrize("idle", [timedelta(seconds=2), timedelta(minutes=1), IDLE], ids=str)
async def test_a_call_that_runs_in_one_process_keeps_its_session_in_another(store, clock, idle):
    """Case C04: the one tells the store as often as it is to be tidied; the other has the store's word alone."""
    running = set()
    here = another_process(store, clock, idle=idle, busy=running.__contains__)
    session = await here.open(ALICE)
    running.add(session.id)
    for step in range(12):
        there = another_process(store, clock, idle=idle)
        await there.tidy()
        clock.pass_by(seconds=here.tidy_every.total_seconds())
        assert await there.find(session.id, "local:alice"), step
        await here.tidy()
    assert await here.find(session.id, "local:alice")


async def test_use_is_written_about_once_a_minute_and_on_the_way_out(sessions, store, clock):
    """So that another process judges idleness rightly."""
    session = await sessions.open(ALICE)
    clock.pass_by(seconds=30)
    await sessions.find(session.id, "local:alice")
    await sessions.tidy()
    assert (await store.find(session.id)).last_seen == session.created
    await sessions.flush()
    assert (await store.find(session.id)).last_seen == clock.now


async def test_an_idle_session_leaves_memory_and_lives_on(sessions, store, clock):
    """An abandoned session costs a row."""
    session = await sessions.open(ALICE)
    clock.pass_by(minutes=2)
    await sessions.tidy()
    assert await sessions.find(session.id, "local:alice") == session
    assert store.finds == 1


async def test_use_of_a_session_that_was_pushed_out_of_memory_is_not_lost(store, clock):
    """More sessions in use than fit still count as used."""
    sessions = another_process(store, clock, warm=1)
    first = await sessions.open(ALICE)
    clock.pass_by(minutes=5)
    await sessions.find(first.id, "local:alice")
    await sessions.open(BOB)
    await sessions.tidy()
    assert (await store.find(first.id)).last_seen == clock.now


async def test_an_ended_session_is_gone_for_every_process(sessions, store, clock):
    """SES-4; ending it twice does no harm."""
    session = await sessions.open(ALICE)
    await sessions.end(session)
    await sessions.end(session)
    assert await sessions.find(session.id, "local:alice") is None
    assert await another_process(store, clock).find(session.id, "local:alice") is None


@pytest.mark.requirement("SES-4")
async def test_an_ending_that_failed_has_changed_nothing(sessions, store, monkeypatch):
    """The store was away: the session goes on from memory, without the store, until a later ending succeeds."""
    session = await sessions.open(ALICE)

    async def away(_id):
        raise StoreAway("away")

    with monkeypatch.context() as outage:
        outage.setattr(store, "end", away)
        with pytest.raises(StoreAway):
            await sessions.end(session)
        assert await sessions.find(session.id, "local:alice") == session
    assert store.finds == 0
    await sessions.end(session)
    assert await sessions.find(session.id, "local:alice") is None


async def test_a_session_that_ends_while_it_is_looked_up_does_not_come_back(store, clock):
    """The row was read before it went; the cache must not keep it."""
    sessions = another_process(store, clock)
    session = await another_process(store, clock).open(ALICE)

    class Interrupted(CountingStore):
        async def find(self, id):
            self.finds += 1
            row = await store.find(id)
            if self.finds == 1:
                await sessions._end(id)
            return row

        async def end(self, id):
            return await store.end(id)

    sessions._store = Interrupted()
    assert await sessions.find(session.id, "local:alice") is None


@pytest.mark.parametrize("warm", [1, 100])
async def test_beyond_the_cap_the_idlest_session_of_that_principal_ends(store, clock, warm):
    """Case C04: never a refusal, and nobody else's; also in memory."""
    sessions = another_process(store, clock, most=2, warm=warm)
    theirs = await sessions.open(BOB)
    first, second, third = [await sessions.open(ALICE) for _ in range(3) if clock.pass_by(seconds=1) is None]
    found = [await sessions.find(session.id, session.principal) for session in (theirs, first, second, third)]
    assert [session is not None for session in found] == [True, False, True, True]


async def test_a_session_in_use_is_not_the_idlest(store, clock):
    """Case C04: the store learns of the use before it ends any."""
    sessions = another_process(store, clock, most=2)
    busy, idle = [await sessions.open(ALICE) for _ in range(2) if clock.pass_by(seconds=1) is None]
    clock.pass_by(seconds=1)
    await sessions.find(busy.id, "local:alice")
    await sessions.open(ALICE)
    assert await sessions.find(busy.id, "local:alice")
    assert await sessions.find(idle.id, "local:alice") is None


async def test_a_session_with_a_call_that_runs_is_not_the_idlest(store, clock):
    """Case C04: its last request came before all others."""
    running = set()
    sessions = another_process(store, clock, most=2, busy=running.__contains__)
    busy, idle = [await sessions.open(ALICE) for _ in range(2) if clock.pass_by(seconds=1) is None]
    running.add(busy.id)
    clock.pass_by(seconds=1)
    await sessions.open(ALICE)
    assert await sessions.find(busy.id, "local:alice")
    assert await sessions.find(idle.id, "local:alice") is None


async def test_a_state_that_could_not_be_stored_is_stored_when_it_comes_again(sessions, store, clock, monkeypatch):
    """It must not count as kept because the memory of one process has it."""
    session = await sessions.open(ALICE)
    changed = replace(session.state, initialized=True)

    async def away(_id, _state):
        raise StoreAway("away")

    with monkeypatch.context() as outage:
        outage.setattr(store, "save", away)
        with pytest.raises(StoreAway):
            await sessions.save(session, changed)
    again = await sessions.find(session.id, "local:alice")
    await sessions.save(again, changed)
    assert (await another_process(store, clock).find(session.id, "local:alice")).state == changed


async def test_a_session_in_use_is_not_swept_however_short_its_life(store, clock):
    """Where sessions end within seconds, use is written as often as that needs."""
    sessions = another_process(store, clock, idle=timedelta(seconds=2))
    session = await sessions.open(ALICE)
    for _ in range(10):
        clock.pass_by(seconds=1)
        assert await sessions.find(session.id, "local:alice")
        await sessions.tidy()
    assert await store.count() == 1
    clock.pass_by(seconds=5)
    await sessions.tidy()
    assert await store.count() == 0


async def test_use_that_could_not_be_written_is_still_owed(store, clock):
    """The database was away for a moment."""
    sessions = another_process(store, clock, warm=1)
    first = await sessions.open(ALICE)
    clock.pass_by(minutes=5)
    await sessions.find(first.id, "local:alice")
    await sessions.open(BOB)

    async def away(_seen):
        raise ConnectionError

    touch, store.touch = store.touch, away
    with pytest.raises(ConnectionError):
        await sessions.tidy()
    store.touch = touch
    await sessions.tidy()
    assert (await store.find(first.id)).last_seen == clock.now
