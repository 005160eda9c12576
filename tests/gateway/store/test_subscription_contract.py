"""What every `SubscriptionStore` promises, asked of the twin and of each database alike; and across processes."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from auth.caller import Caller
from auth.changes import Change, Subject
from gateway.store.changes import StoreChanges
from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.memory_subscriptions import MemorySubscriptions
from gateway.store.sessions import SqlSessions
from gateway.store.subscriptions import SqlSubscriptions
from mcp.conversations import Conversation
from mcp.hub import Hub
from mcp.protocol.notes import Filter, ResourcesChanged, ResourceUpdated
from mcp.protocol.state import State
from mcp.resources import transcript_uri
from mcp.sessions import Session
from mcp.subscriptions import LONGEST_URI, Subscriptions
from tests.support.statements import statements_of

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALICE = "local:alice"


@pytest.fixture
def subscriptions(stores):
    """On the same database as the sessions, or in memory where those are."""
    database = getattr(stores.sessions, "_database", None)
    return MemorySubscriptions(stores.sessions) if database is None else SqlSubscriptions(database)


@pytest.fixture
async def two(sessions):
    """Two sessions."""
    await open_two(sessions)


async def open_two(sessions):
    for id in ("s", "t"):
        await sessions.open(Session(id, State(principal=ALICE), NOON, NOON), most=10)


@pytest.mark.usefixtures("two")
async def test_a_session_has_what_was_added_and_not_removed(subscriptions):
    assert await subscriptions.of("s") == frozenset()
    added = [await subscriptions.add("s", uri, most=9) for uri in ("x:1", "x:2", "x:ü🦀", "x:2")]
    assert (added, await subscriptions.of("s")) == ([True] * 4, {"x:1", "x:2", "x:ü🦀"})
    assert [await subscriptions.remove("s", "x:2"), await subscriptions.remove("s", "x:2")] == [True, False]
    assert (await subscriptions.of("s"), await subscriptions.of("t")) == ({"x:1", "x:ü🦀"}, frozenset())


@pytest.mark.usefixtures("two")
async def test_a_session_has_only_so_many_until_one_is_removed(subscriptions):
    assert [await subscriptions.add("s", f"x:{n}", most=3) for n in range(4)] == [True, True, True, False]
    assert await subscriptions.add("s", "x:0", most=3)
    assert await subscriptions.add("t", "x:3", most=3)
    await subscriptions.remove("s", "x:0")
    assert await subscriptions.add("s", "x:3", most=3)
    assert await subscriptions.of("s") == {"x:1", "x:2", "x:3"}


@pytest.mark.usefixtures("two")
async def test_the_cap_holds_when_many_are_added_at_once(subscriptions):
    kept = await asyncio.gather(*(subscriptions.add("s", f"x:{n}", most=5) for n in range(30)))
    assert (sum(kept), len(await subscriptions.of("s"))) == (5, 5)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("session", ["", "gone", "S", "\0", "\ud800"])
async def test_a_session_that_never_was_has_none(subscriptions, session):
    assert not await subscriptions.add(session, "x:1", most=9)
    assert (await subscriptions.of(session), await subscriptions.remove(session, "x:1")) == (frozenset(), False)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("how", ["end", "sweep", "open"])
async def test_subscriptions_end_with_their_session_however_it_ends(sessions, subscriptions, how):
    for session in ("s", "t"):
        await subscriptions.add(session, "x:1", most=9)
    await sessions.touch({"t": NOON + MINUTE})
    match how:
        case "end":
            await sessions.end("s")
        case "sweep":
            await sessions.sweep(NOON + MINUTE)
        case "open":
            await sessions.open(Session("new", State(principal=ALICE), NOON, NOON), most=2)
    assert (await subscriptions.of("s"), await subscriptions.of("t")) == (frozenset(), {"x:1"})
    assert not await subscriptions.add("s", "x:1", most=9)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("uri", ["x:\0", "x:\ud800", "x:" + "y" * LONGEST_URI, "x:" + "ü" * (LONGEST_URI // 2)])
async def test_a_uri_that_no_database_takes_as_a_key_is_refused(subscriptions, uri):
    with pytest.raises(ValueError, match="cannot be a key"):
        await subscriptions.add("s", uri, most=9)
    assert not await subscriptions.remove("s", uri)


@pytest.mark.usefixtures("two")
async def test_a_uri_as_long_as_may_be_comes_back(subscriptions):
    """Of random characters, which no database can press together."""
    uri = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(LONGEST_URI // 3))
    assert await subscriptions.add("s", uri, most=9)
    assert await subscriptions.of("s") == {uri}


# A stream here, changes elsewhere.


@pytest.fixture
async def here(url):
    """The hub, the subscriptions and the database of one process."""
    database = open_database(url)
    feed, hub = StoreChanges(database, url), Hub(lambda: NOON)
    subscriptions = Subscriptions(SqlSubscriptions(database), hub)
    for hear in (subscriptions.hear, hub.hear):
        feed.listen(hear)
    await open_two(SqlSessions(database))
    await feed.start()
    yield hub, subscriptions, database
    await feed.stop()
    await database.close()


async def test_an_open_stream_follows_what_its_session_subscribes_to_elsewhere(here, database):
    """`database` is as far from here as another process is."""
    _, subscriptions, _ = here
    conversations, elsewhere = SqlConversations(database), SqlSubscriptions(database)
    await conversations.start(Conversation("c", ALICE, "h", "t", None, NOON, NOON))
    with await subscriptions.listen(Caller(ALICE), "s", Filter()) as stream:
        async with asyncio.timeout(10):
            await elsewhere.add("s", transcript_uri("c"), most=9)
            while stream.filter.uris != {transcript_uri("c")}:
                await asyncio.sleep(0.01)
            await conversations.append("c", NOON, "user", {})
            assert await stream.next() == ResourceUpdated(transcript_uri("c"))
            await elsewhere.remove("s", transcript_uri("c"))
            while stream.filter.uris:
                await asyncio.sleep(0.01)


async def test_a_new_conversation_elsewhere_is_told_to_its_principal(here, database):
    hub, _, _ = here
    with hub.listen(Caller("local:bob"), Filter(resources=True)) as bob:
        await SqlConversations(database).start(Conversation("a", ALICE, "h", "t", None, NOON, NOON))
        await SqlConversations(database).start(Conversation("b", "local:bob", "h", "t", None, NOON, NOON))
        assert await bob.next(2) == ResourcesChanged()
        assert await bob.next(0) is None


async def test_a_stream_that_opens_costs_no_statement_once_the_session_is_known(here):
    _, subscriptions, database = here
    assert await subscriptions.of("s") == frozenset()
    with statements_of(database) as seen, await subscriptions.listen(Caller(ALICE), "s", Filter()):
        pass
    assert seen == []


async def test_each_change_of_subscriptions_is_recorded_and_nothing_else(database, url):
    feed, heard = StoreChanges(database, url), []
    feed.listen(heard.append)
    await feed.start()
    await open_two(SqlSessions(database))
    subscriptions = SqlSubscriptions(database)
    for uri in ("x:1", "x:1", "x:2"):
        await subscriptions.add("s", uri, most=1)
    await subscriptions.remove("s", "x:2")
    await subscriptions.remove("s", "x:1")
    await feed.stop()
    assert heard == [None] + 2 * [Change(Subject.SUBSCRIPTION, "s")]
