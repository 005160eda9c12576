"""What every `SessionStore` promises, asked of the twin and of the database alike."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from types import MappingProxyType

import pytest

from mcp.protocol.revisions import Revision
from mcp.protocol.state import LogLevel, State
from mcp.sessions import Session

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def session(id, principal="local:alice", minute=0, **state):
    seen = NOON + minute * MINUTE
    return Session(id=id, state=State(principal=principal, **state), created=seen, last_seen=seen)


async def alive(sessions, *ids):
    """Those of the ids that the store still has."""
    return [id for id in ids if await sessions.find(id) is not None]


async def test_a_session_comes_back_exactly_as_it_was_opened(sessions):
    opened = Session(
        id="s" * 43,
        state=State(
            principal="https://issuer.example#søren",
            harness="super-pi-code",
            revision=Revision.R2025_06_18,
            client={"name": "zed 🦀", "version": "1", "icons": [{"z": None, "a": 2**63 - 1}], "ratio": 0.1},
            capabilities={"roots": {"listChanged": True}, "experimental": {"long": "ü" * 100_000}},
            initialized=True,
            log_level=LogLevel.WARNING,
        ),
        created=NOON,
        last_seen=NOON + MINUTE,
    )
    assert await sessions.open(opened, most=10) == ()
    assert await sessions.find(opened.id) == opened


async def test_a_state_before_the_handshake_comes_back_too(sessions):
    opened = session("early", revision=None, log_level=None)
    await sessions.open(opened, most=10)
    assert await sessions.find("early") == opened


async def test_the_order_of_json_keys_is_kept(sessions):
    await sessions.open(session("s", client={"z": 1, "a": {"y": 2, "b": 3}}), most=10)
    found = (await sessions.find("s")).state.client
    assert (list(found), list(found["a"])) == (["z", "a"], ["y", "b"])


async def test_every_revision_and_log_level_is_storable(sessions):
    pairs = list(product([None, *Revision], [None, *LogLevel]))
    opened = [session(f"s{n}", revision=revision, log_level=level) for n, (revision, level) in enumerate(pairs)]
    for one in opened:
        await sessions.open(one, most=100)
    assert [await sessions.find(one.id) for one in opened] == opened


async def test_times_come_back_in_utc_whatever_zone_they_were_given_in(sessions):
    tokyo = timezone(timedelta(hours=9))
    await sessions.open(replace(session("s"), created=NOON.astimezone(tokyo)), most=10)
    found = await sessions.find("s")
    assert (found.created, found.created.tzinfo, found.last_seen.tzinfo) == (NOON, UTC, UTC)


async def test_what_a_caller_does_to_a_found_session_stays_with_the_caller(sessions):
    capabilities = {"roots": {}}
    await sessions.open(session("s", capabilities=capabilities), most=10)
    capabilities["added"] = True
    (await sessions.find("s")).state.capabilities["roots"]["added"] = True
    assert (await sessions.find("s")).state.capabilities == {"roots": {}}


async def test_a_read_only_mapping_is_json_too(sessions):
    await sessions.open(session("s", client=MappingProxyType({"name": "x", "icons": (1, 2)})), most=10)
    assert (await sessions.find("s")).state.client == {"name": "x", "icons": [1, 2]}


@pytest.mark.parametrize("id", ["", "unknown", "S", "s ", "s\0", "\ud800", "' OR 1=1 --", "x" * 10_000])
async def test_an_id_that_was_never_given_is_nobodys(sessions, id):
    await sessions.open(session("s"), most=10)
    await sessions.save(id, State(initialized=True))
    await sessions.touch({id: NOON + MINUTE})
    assert (await sessions.find(id), await sessions.end(id)) == (None, False)
    assert await sessions.find("s") == session("s")


async def test_a_taken_id_is_refused_and_the_first_session_stays(sessions):
    await sessions.open(session("s", principal="local:alice"), most=10)
    with pytest.raises(ValueError, match="taken"):
        await sessions.open(session("s", principal="local:bob"), most=10)
    assert await sessions.find("s") == session("s", principal="local:alice")


REFUSED = [
    pytest.param(replace(session("bad"), created=datetime(2026, 1, 1)), id="a naive time of creation"),  # noqa: DTZ001
    pytest.param(replace(session("bad"), last_seen=datetime(2026, 1, 1)), id="a naive time of last use"),  # noqa: DTZ001
    pytest.param(session("bad", principal="a\0b"), id="U+0000 in the principal"),
    pytest.param(session("bad", harness="\udfff"), id="a lone surrogate in the harness"),
    pytest.param(session("bad", client={"n": float("nan")}), id="NaN in the client's JSON"),
    pytest.param(session("bad", capabilities={"n": [float("inf")]}), id="infinity in the capabilities"),
]


@pytest.mark.parametrize("bad", REFUSED)
async def test_what_cannot_be_stored_everywhere_is_refused_and_ends_nothing(sessions, bad):
    await sessions.open(session("old", principal=bad.principal.replace("\0", "")), most=10)
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await sessions.open(bad, most=1)
    assert await sessions.count() == 1


async def test_nul_and_lone_surrogates_inside_json_come_back_equal(sessions):
    client = {"nul\0": "a\0b", "half": "\ud800", "pair": "\U0001f980", "backslash": "\\ud800 \\u0000"}
    await sessions.open(session("s", client=client), most=10)
    assert (await sessions.find("s")).state.client == client


async def test_save_stores_only_what_changes_after_the_handshake(sessions):
    opened = session("s", harness="super-pi-code", client={"name": "x"})
    await sessions.open(opened, most=10)
    other = State("local:mallory", "other", Revision.R2024_11_05, {"y": 1}, {"z": 1}, True, LogLevel.DEBUG)
    await sessions.save("s", other)
    changed = replace(opened.state, initialized=True, log_level=LogLevel.DEBUG)
    assert await sessions.find("s") == replace(opened, state=changed)


async def test_the_last_of_two_saves_wins_whole(sessions):
    opened = session("s")
    await sessions.open(opened, most=10)
    await sessions.save("s", replace(opened.state, initialized=True, log_level=LogLevel.ERROR))
    await sessions.save("s", replace(opened.state, initialized=False, log_level=None))
    assert await sessions.find("s") == opened


async def test_saving_an_ended_session_does_not_bring_it_back(sessions):
    await sessions.open(session("s"), most=10)
    await sessions.end("s")
    await sessions.save("s", State(initialized=True))
    assert (await sessions.find("s"), await sessions.count()) == (None, 0)


async def test_touch_moves_each_session_forward_and_never_back(sessions):
    for id, minute in [("early", 0), ("late", 10), ("untouched", 5)]:
        await sessions.open(session(id, minute=minute), most=10)
    await sessions.touch({"early": NOON + 7 * MINUTE, "late": NOON + 7 * MINUTE, "gone": NOON})
    seen = [(await sessions.find(id)).last_seen - NOON for id in ("early", "late", "untouched")]
    assert seen == [7 * MINUTE, 10 * MINUTE, 5 * MINUTE]


async def test_touching_nothing_is_fine(sessions):
    await sessions.touch({})
    assert await sessions.count() == 0


async def test_a_naive_time_refuses_the_whole_touch(sessions):
    for id in ("a", "b"):
        await sessions.open(session(id), most=10)
    with pytest.raises(ValueError, match="time zone"):
        await sessions.touch({"a": NOON + MINUTE, "b": datetime(2027, 1, 1)})  # noqa: DTZ001
    assert (await sessions.find("a")).last_seen == NOON


async def test_beyond_the_cap_the_idlest_sessions_of_that_principal_end(sessions):
    await sessions.open(session("bob", principal="local:bob", minute=-100), most=10)
    for id, minute in [("a", 3), ("b", 1), ("c", 2), ("d", 0)]:
        await sessions.open(session(id, minute=minute), most=10)
    assert await sessions.open(session("new", minute=4), most=3) == ("b", "d")
    assert await alive(sessions, "a", "b", "c", "d", "new", "bob") == ["a", "c", "new", "bob"]


async def test_the_new_session_stays_even_when_it_is_the_idlest(sessions):
    for id, minute in [("a", 3), ("b", 1)]:
        await sessions.open(session(id, minute=minute), most=10)
    await sessions.open(session("new", minute=-60), most=2)
    assert await alive(sessions, "a", "b", "new") == ["a", "new"]


async def test_a_touched_session_is_not_the_idlest_any_more(sessions):
    for id, minute in [("a", 0), ("b", 1)]:
        await sessions.open(session(id, minute=minute), most=2)
    await sessions.touch({"a": NOON + 2 * MINUTE})
    await sessions.open(session("c", minute=3), most=2)
    assert await alive(sessions, "a", "b", "c") == ["a", "c"]


async def test_the_cap_holds_when_many_open_at_once(sessions):
    await asyncio.gather(*(sessions.open(session(f"s{n}", minute=n), most=5) for n in range(40)))
    assert await sessions.count() == 5


async def test_sessions_opened_and_touched_at_once_are_all_there(sessions):
    async def one(n):
        await sessions.open(session(f"s{n}", principal=f"p{n}"), most=1)
        await sessions.touch({f"s{n}": NOON + n * MINUTE})
        return (await sessions.find(f"s{n}")).last_seen

    seen = await asyncio.gather(*(one(n) for n in range(40)))
    assert seen == [NOON + n * MINUTE for n in range(40)]


async def test_a_session_ends_once(sessions):
    await sessions.open(session("s"), most=10)
    assert [await sessions.end("s"), await sessions.end("s"), await sessions.find("s")] == [True, False, None]


async def test_of_many_that_end_a_session_at_once_one_did(sessions):
    await sessions.open(session("s"), most=10)
    assert sum(await asyncio.gather(*(sessions.end("s") for _ in range(10)))) == 1


async def test_sweep_ends_what_was_seen_strictly_before_and_tells_how_many(sessions):
    for n in range(5):
        await sessions.open(session(f"s{n}", principal=f"p{n}", minute=n), most=10)
    assert [await sessions.sweep(NOON + 2 * MINUTE), await sessions.sweep(NOON + 2 * MINUTE)] == [2, 0]
    assert await alive(sessions, "s0", "s1", "s2", "s3", "s4") == ["s2", "s3", "s4"]


async def test_count_counts_every_principal(sessions):
    for n in range(7):
        await sessions.open(session(f"s{n}", principal=f"p{n % 3}"), most=10)
    assert await sessions.count() == 7


async def test_a_list_holds_every_session_once_the_newest_first(sessions):
    """In pages, of everybody or of one principal."""
    for n in range(7):
        await sessions.open(session(f"s{n}", principal=f"p{n % 2}", minute=n // 2), most=10)

    async def listed(limit, **asked):
        found, after = [], None
        while True:
            items, after = await sessions.list(limit=limit, after=after, **asked)
            found += items
            if after is None:
                return found

    everything = await listed(100)
    assert sorted(one.id for one in everything) == [f"s{n}" for n in range(7)]
    assert everything == sorted(everything, key=lambda one: (one.created, one.label), reverse=True)
    assert await listed(2) == await listed(1) == everything
    assert await listed(2, principal="p1") == [one for one in everything if one.principal == "p1"]
    assert await listed(2, principal="nobody") == []


@pytest.mark.parametrize("after", ["", "x", "1.", "0.\0", "99999999999999999999.a"])
async def test_a_place_that_no_page_named_is_refused(sessions, after):
    with pytest.raises(ValueError, match="position"):
        await sessions.list(after=after)


async def test_a_session_is_found_by_what_may_be_shown_of_it(sessions):
    opened = session("secret-id")
    await sessions.open(opened, most=10)
    assert opened.label not in ("", "secret-id")
    assert await sessions.labelled(opened.label) == opened
    assert [await sessions.labelled(label) for label in ("secret-id", "", "\0")] == [None] * 3
