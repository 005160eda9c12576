"""What a process knows of subscriptions: no more trips than needed, never an old answer, and streams that follow."""

import asyncio
from datetime import UTC, datetime

import pytest

from auth.caller import Caller
from auth.changes import Change, Subject
from auth.ports import StoreAway
from gateway.store.memory import MemorySessions
from gateway.store.memory_subscriptions import MemorySubscriptions
from mcp.faults import Fault
from mcp.hub import Hub
from mcp.protocol.notes import Filter, PromptsChanged, ResourceUpdated
from mcp.protocol.state import State
from mcp.sessions import Session
from mcp.subscriptions import LONGEST_URI, MOST_SUBSCRIPTIONS, Subscriptions

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE = Caller("local:alice")


class Counting(MemorySubscriptions):
    """A store that counts how often it is asked what there is, may be away, and may be slow."""

    def __init__(self, sessions):
        super().__init__(sessions)
        self.asked = 0
        self.away = False
        self.slow = None

    async def of(self, session):
        self.asked += 1
        if self.away:
            raise StoreAway("away")
        found = await super().of(session)
        if self.slow is not None:
            await self.slow.wait()
        return found


@pytest.fixture
async def store():
    sessions = MemorySessions()
    for id in ("s", "t"):
        await sessions.open(Session(id, State(principal="local:alice"), NOON, NOON), most=10)
    return Counting(sessions)


@pytest.fixture
def hub():
    return Hub(lambda: NOON)


@pytest.fixture
def subscriptions(store, hub):
    return Subscriptions(store, hub)


async def settled(stream, *uris):
    """Wait until a stream follows exactly these."""
    async with asyncio.timeout(10):
        while stream.filter.uris != set(uris):
            await asyncio.sleep(0)


@pytest.mark.requirement("SUB-2")
async def test_a_session_has_what_it_subscribed_to(subscriptions):
    for uri in ("x:1", "x:2", "x:2"):
        assert await subscriptions.subscribe("s", uri) is None
    await subscriptions.unsubscribe("s", "x:1")
    await subscriptions.unsubscribe("s", "x:never")
    assert (await subscriptions.of("s"), await subscriptions.of("t")) == ({"x:2"}, frozenset())


async def test_beyond_the_most_it_is_refused_in_words(subscriptions):
    refused = [await subscriptions.subscribe("s", f"x:{n}") for n in range(MOST_SUBSCRIPTIONS + 1)]
    message = "This session has 100 subscriptions already: end one with resources/unsubscribe first."
    assert (set(refused[:-1]), refused[-1]) == ({None}, Fault(message))
    assert await subscriptions.subscribe("s", "x:0") is None


@pytest.mark.parametrize("uri", ["x:" + "y" * LONGEST_URI, "x:\0", "x:\ud800"])
async def test_a_uri_that_cannot_be_kept_is_refused_in_words(subscriptions, uri):
    assert isinstance(await subscriptions.subscribe("s", uri), Fault)
    await subscriptions.unsubscribe("s", uri)
    assert await subscriptions.of("s") == frozenset()


async def test_what_is_known_costs_no_trip_also_when_there_is_nothing(subscriptions, store):
    for _ in range(3):
        await subscriptions.of("s")
        with await subscriptions.listen(ALICE, "s", Filter()):
            pass
    assert store.asked == 1


@pytest.mark.parametrize(
    ("change", "trips"),
    [
        pytest.param(Change(Subject.SUBSCRIPTION, "s"), 2, id="its subscriptions"),
        pytest.param(Change(Subject.SESSION, "s"), 2, id="its session"),
        pytest.param(None, 2, id="anything"),
        pytest.param(Change(Subject.SUBSCRIPTION, "t"), 1, id="those of another session"),
        pytest.param(Change(Subject.TOKEN, "s"), 1, id="a token"),
    ],
)
async def test_what_may_have_changed_elsewhere_is_asked_for_again(subscriptions, store, change, trips):
    await subscriptions.of("s")
    await store.add("s", "x:1", most=9)
    subscriptions.hear(change)
    found = await subscriptions.of("s")
    assert (store.asked, found) == (trips, {"x:1"} if trips == 2 else frozenset())


async def test_what_was_read_before_a_change_was_heard_is_read_again(subscriptions, store):
    store.slow = asyncio.Event()
    reading = asyncio.create_task(subscriptions.of("s"))
    await asyncio.sleep(0)
    await store.add("s", "x:1", most=9)
    subscriptions.hear(Change(Subject.SUBSCRIPTION, "s"))
    store.slow.set()
    assert (await reading, await subscriptions.of("s"), store.asked) == ({"x:1"}, {"x:1"}, 2)


async def test_only_so_many_sessions_are_in_memory(store, hub):
    subscriptions = Subscriptions(store, hub, warm=3)
    for n in range(10):
        await subscriptions.of(f"s{n}")
    await subscriptions.of("s7")
    await subscriptions.of("s10")
    assert len(subscriptions) == 3
    before = store.asked
    await subscriptions.of("s7")
    assert store.asked == before


@pytest.mark.requirement("SUB-2")
async def test_a_stream_hears_what_its_session_subscribes_to_before_and_while_it_is_open(subscriptions, hub):
    await subscriptions.subscribe("s", "x:1")
    with await subscriptions.listen(ALICE, "s", Filter(prompts=True)) as stream:
        await subscriptions.subscribe("s", "x:2")
        await subscriptions.subscribe("t", "x:3")
        await subscriptions.unsubscribe("s", "x:1")
        for changed in (PromptsChanged(), *map(ResourceUpdated, ("x:1", "x:2", "x:3"))):
            hub.tell(changed)
        heard = [await stream.next(0) for _ in range(3)]
    assert heard == [PromptsChanged(), ResourceUpdated("x:2"), None]


@pytest.mark.parametrize("change", [Change(Subject.SUBSCRIPTION, "s"), None])
async def test_an_open_stream_follows_what_changes_elsewhere(subscriptions, store, change):
    with await subscriptions.listen(ALICE, "s", Filter()) as stream:
        await store.add("s", "x:1", most=9)
        subscriptions.hear(change)
        await settled(stream, "x:1")


async def test_while_the_store_is_away_a_stream_opens_all_the_same_and_follows_once_it_is_back(subscriptions, store):
    await store.add("s", "x:1", most=9)
    store.away = True
    with await subscriptions.listen(ALICE, "s", Filter(prompts=True)) as stream:
        assert stream.filter == Filter(prompts=True)
        store.away = False
        subscriptions.hear(None)
        await settled(stream, "x:1")


async def test_a_stream_whose_opening_is_cancelled_does_not_stay(subscriptions, store, hub):
    store.slow = asyncio.Event()
    opening = asyncio.create_task(subscriptions.listen(ALICE, "s", Filter()))
    await asyncio.sleep(0)
    assert len(hub) == 1
    opening.cancel()
    await asyncio.wait([opening])
    assert len(hub) == 0
