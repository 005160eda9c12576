"""The hub of changes: who hears of what, what is told once, and what ends a listening."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.caller import Caller, Transport
from auth.changes import Change, Subject
from mcp.hub import Ended, Hub, Listening
from mcp.protocol.notes import Filter, PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged, wants
from mcp.resources import transcript_uri

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE, BOB = Caller("local:alice", token="a"), Caller("local:bob", token="b")
ANONYMOUS, STDIO = Caller(), Caller("local", Transport.STDIO)
LISTS = Filter(tools=True, prompts=True, resources=True)
EVERYTHING = Filter(True, True, True, frozenset({"x:1", "x:2"}))


@pytest.fixture
def hub():
    return Hub(lambda: NOON)


def about(*uris):
    return Filter(uris=frozenset(uris))


async def told(listening: Listening):
    """Everything that waits to be told."""
    found = []
    while (changed := await listening.next(0)) is not None:
        found.append(changed)
    return found


@pytest.mark.requirement("SUB-3", "SUB-9")
async def test_each_listener_hears_what_its_filter_names(hub):
    prompts, one, both = (hub.listen(ALICE, f) for f in (Filter(prompts=True), about("x:1"), about("x:1", "x:2")))
    for changed in (PromptsChanged(), ToolsChanged(), ResourceUpdated("x:1"), ResourceUpdated("x:2")):
        hub.tell(changed)
    assert [await told(listening) for listening in (prompts, one, both)] == [
        [PromptsChanged()],
        [ResourceUpdated("x:1")],
        [ResourceUpdated("x:1"), ResourceUpdated("x:2")],
    ]


async def test_a_thousand_updates_that_nobody_reads_are_one(hub):
    listening = hub.listen(ALICE, about("x:1"))
    for _ in range(1000):
        hub.tell(ResourceUpdated("x:1"))
    assert await told(listening) == [ResourceUpdated("x:1")]


async def test_an_update_after_the_last_one_was_read_is_told_again(hub):
    listening = hub.listen(ALICE, about("x:1"))
    for _ in range(3):
        hub.tell(ResourceUpdated("x:1"))
        assert await told(listening) == [ResourceUpdated("x:1")]


CHANGES = [ToolsChanged(), PromptsChanged(), ResourcesChanged(), ResourceUpdated("x:1"), ResourceUpdated("x:3")]


@given(steps=st.lists(st.sampled_from([*CHANGES, "read"])))
def test_the_last_change_of_each_kind_is_read_after_it_happened(steps):
    """Whatever the order of changes and reads: no last update is lost, and no more is held than the filter names."""

    async def live():
        hub = Hub(lambda: NOON)
        listening = hub.listen(ALICE, EVERYTHING)
        owed = set()
        for step in steps:
            if step == "read":
                owed.discard(await listening.next(0))
            else:
                hub.tell(step)
                owed |= {step} if wants(EVERYTHING, step) else set()
            assert len(owed) <= 5
        rest = await told(listening)
        assert (set(rest), len(rest)) == (owed, len(owed))

    asyncio.run(live())


async def test_a_waiting_listener_wakes(hub):
    listening = hub.listen(ALICE, LISTS)
    waiting = asyncio.create_task(listening.next(30))
    await asyncio.sleep(0)
    hub.tell(PromptsChanged())
    assert await waiting == PromptsChanged()


async def test_a_wait_that_was_cancelled_loses_nothing(hub):
    listening = hub.listen(ALICE, LISTS)
    waiting = asyncio.create_task(listening.next())
    await asyncio.sleep(0)
    hub.tell(PromptsChanged())
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await told(listening) == [PromptsChanged()]


async def test_iterating_goes_on_until_the_end(hub):
    with hub.listen(ALICE, EVERYTHING) as listening:
        hub.tell(PromptsChanged())
        hub.tell(ResourceUpdated("x:2"))
        hub.close()
        assert [changed async for changed in listening] == [PromptsChanged(), ResourceUpdated("x:2")]
        assert listening.ended is Ended.CLOSED


@pytest.mark.requirement("SUB-2")
async def test_an_entry_of_a_conversation_updates_its_transcript(hub):
    uri = transcript_uri("c1")
    own, other = hub.listen(ALICE, about(uri)), hub.listen(BOB, about(transcript_uri("c2")))
    hub.hear(Change(Subject.CONVERSATION, "c1"))
    assert (await told(own), await told(other)) == ([ResourceUpdated(uri)], [])


@pytest.mark.requirement("SUB-1", "SUB-9", "RS-7")
async def test_a_new_conversation_changes_the_list_of_its_principal_alone(hub):
    own, unwanted, other = hub.listen(ALICE, LISTS), hub.listen(ALICE, Filter(tools=True)), hub.listen(BOB, LISTS)
    hub.hear(Change(Subject.CONVERSATIONS, "local:alice"))
    assert [await told(one) for one in (own, unwanted, other)] == [[ResourcesChanged()], [], []]


ENDS = [
    pytest.param(Change(Subject.TOKEN, "a"), {ALICE, ANONYMOUS}, id="a token: its own, and who has none"),
    pytest.param(Change(Subject.TOKEN, "new"), {ANONYMOUS}, id="another token: who has none, the door may be closed"),
    pytest.param(Change(Subject.PRINCIPAL, "local:bob"), {BOB}, id="a principal"),
    pytest.param(None, {ALICE, BOB, ANONYMOUS}, id="in doubt: whoever came over HTTP"),
    pytest.param(Change(Subject.SESSION, "other"), set(), id="a session of somebody else"),
    pytest.param(Change(Subject.QUESTION, "a"), set(), id="a question"),
    pytest.param(Change(Subject.CONVERSATION, "a"), set(), id="a conversation"),
]


@pytest.mark.requirement("SUB-10")
@pytest.mark.parametrize(("change", "ended"), ENDS)
async def test_a_change_of_credentials_ends_whom_it_may_concern(hub, change, ended):
    listeners = [hub.listen(caller, LISTS) for caller in (ALICE, BOB, ANONYMOUS, STDIO)]
    hub.hear(change)
    assert {one.caller for one in listeners if one.ended is Ended.DOUBTED} == ended
    assert len(hub) == 4 - len(ended)


async def test_a_listener_in_doubt_is_told_nothing_more(hub):
    listening = hub.listen(ALICE, LISTS)
    hub.tell(PromptsChanged())
    hub.hear(Change(Subject.TOKEN, "a"))
    hub.tell(ToolsChanged())
    assert (await listening.next(), listening.ended) == (None, Ended.DOUBTED)


async def test_when_changes_may_have_been_missed_the_own_user_is_told_of_all(hub):
    listening = hub.listen(STDIO, Filter(prompts=True, uris=frozenset({"x:1", "x:2"})))
    hub.hear(None)
    assert await told(listening) == [PromptsChanged(), ResourceUpdated("x:1"), ResourceUpdated("x:2")]


async def test_a_session_takes_its_listeners_along(hub):
    own, other = hub.listen(ALICE, LISTS, connection="s"), hub.listen(ALICE, LISTS, connection="t")
    hub.hear(Change(Subject.SESSION, "s"))
    assert (own.ended, other.ended) == (Ended.SESSION, None)


@pytest.mark.requirement("SUB-10")
async def test_a_listening_ends_with_its_credential(hub):
    listening = hub.listen(ALICE, LISTS, until=NOON + timedelta(milliseconds=20))
    later = hub.listen(ALICE, LISTS, until=NOON + timedelta(days=1))
    assert (await listening.next(30), listening.ended, later.ended) == (None, Ended.EXPIRED, None)
    late = hub.listen(ALICE, LISTS, until=NOON - timedelta(days=1))
    assert (await late.next(30), late.ended) == (None, Ended.EXPIRED)


async def test_a_hub_that_closed_lets_nobody_wait(hub):
    before = hub.listen(ALICE, LISTS)
    hub.close()
    after = hub.listen(ALICE, LISTS)
    assert (await before.next(), before.ended, await after.next(), after.ended) == (None, Ended.CLOSED) * 2
    assert len(hub) == 0


async def test_the_first_reason_stands(hub):
    with hub.listen(ALICE, LISTS) as listening:
        hub.hear(Change(Subject.PRINCIPAL, "local:alice"))
        hub.close()
    assert listening.ended is Ended.DOUBTED


@pytest.mark.requirement("HL-12")
async def test_of_a_sessions_streams_one_is_told(hub):
    """HL-12: no message goes out on two streams of a client."""
    first, second = (hub.listen(ALICE, EVERYTHING, connection="s") for _ in range(2))
    stateless = hub.listen(ALICE, EVERYTHING)
    for changed in (PromptsChanged(), ResourceUpdated("x:1")):
        hub.tell(changed)
    everything = [PromptsChanged(), ResourceUpdated("x:1")]
    assert [await told(one) for one in (first, second, stateless)] == [everything, [], everything]


async def test_what_a_stream_leaves_untold_goes_to_the_sessions_next(hub):
    first, second = (hub.listen(ALICE, EVERYTHING, connection="s") for _ in range(2))
    hub.tell(ResourceUpdated("x:1"))
    first.leave()
    hub.tell(ResourceUpdated("x:2"))
    assert (await told(first), await told(second)) == ([], [ResourceUpdated("x:1"), ResourceUpdated("x:2")])


async def test_what_a_revoked_token_leaves_untold_goes_to_the_sessions_next(hub):
    revoked = hub.listen(ALICE, LISTS, connection="s")
    valid = hub.listen(Caller("local:alice", token="a2"), LISTS, connection="s")
    hub.tell(PromptsChanged())
    hub.hear(Change(Subject.TOKEN, "a"))
    assert (await told(revoked), await told(valid)) == ([], [PromptsChanged()])


async def test_a_connection_may_want_other_resources_from_now_on(hub):
    """And is not told any more what it wanted before."""
    streams = [hub.listen(ALICE, EVERYTHING, connection="s") for _ in range(2)]
    other = hub.listen(ALICE, EVERYTHING, connection="t")
    hub.tell(ResourceUpdated("x:1"))
    hub.refilter("s", frozenset({"x:2", "x:3"}))
    assert await streams[0].next(0) is None
    for uri in ("x:1", "x:2", "x:3"):
        hub.tell(ResourceUpdated(uri))
    assert await told(streams[0]) == [ResourceUpdated("x:2"), ResourceUpdated("x:3")]
    assert await told(other) == [ResourceUpdated("x:1"), ResourceUpdated("x:2")]
    assert streams[1].filter == Filter(True, True, True, frozenset({"x:2", "x:3"}))


@pytest.mark.requirement("SUB-8")
async def test_a_hub_forgets_those_who_left(hub):
    for n in range(100):
        with hub.listen(ALICE, about(f"x:{n}"), connection=f"s{n}", until=NOON + timedelta(days=1)):
            assert hub.connected() == {f"s{n}"}
    assert (len(hub), hub.connected(), hub._by_uri) == (0, frozenset(), {})
