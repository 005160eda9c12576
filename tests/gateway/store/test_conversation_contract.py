"""What every `ConversationStore` promises, asked of the twin and of the database alike."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp.conversations import Conversation, ConversationPage, Entry

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALICE, BOB = "local:alice", "local:bob"


def conversation(id, principal=ALICE, minute=0, session=None, title="a title"):
    at = NOON + minute * MINUTE
    return Conversation(id, principal, "super-pi-code", title, session, at, at)


async def every_page(conversations, principal, limit, **filters):
    """The ids of all pages, one list a page."""
    pages, after = [], None
    while True:
        page = await conversations.list(principal, after=after, limit=limit, **filters)
        pages.append([item.id for item in page.items])
        if page.after is None:
            return pages
        after = page.after


async def test_a_conversation_comes_back_exactly_as_it_was_started(conversations):
    started = Conversation("c", ALICE, "super-pi-planner", "Plan 🦀 — straße", "session", NOON, NOON + MINUTE)
    await conversations.start(started)
    assert await conversations.find(ALICE, "c") == started
    assert await conversations.list(ALICE) == ConversationPage((started,), None)


async def test_a_new_conversation_has_no_entries_whatever_it_claims(conversations):
    await conversations.start(replace(conversation("c"), entries=7))
    assert (await conversations.find(ALICE, "c")).entries == 0
    assert await conversations.entries(ALICE, "c") == ()


async def test_a_taken_id_is_refused_whoever_asks(conversations):
    await conversations.start(conversation("c"))
    for principal in (ALICE, BOB):
        with pytest.raises(ValueError, match="taken"):
            await conversations.start(conversation("c", principal=principal))
    assert await conversations.find(ALICE, "c") == conversation("c")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(conversation("bad", title="a\0b"), id="U+0000 in the title"),
        pytest.param(conversation("bad", session="\ud800"), id="a lone surrogate in the session"),
        pytest.param(replace(conversation("bad"), updated=datetime(2026, 1, 1)), id="a naive time"),  # noqa: DTZ001
    ],
)
async def test_what_cannot_be_stored_everywhere_is_refused(conversations, bad):
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await conversations.start(bad)
    assert await conversations.find(ALICE, "bad") is None


async def test_entries_come_back_in_order_and_exactly_as_they_were_appended(conversations):
    await conversations.start(conversation("c"))
    bodies = [
        {"text": "4 bytes 🦀, NUL \0, half \ud800, line\u2028"},
        {"z": 1, "a": [None, True, -(2**63), 2**64, 1e-7, {}]},
        {"big": "ß" * 1_000_000},
        {},
    ]
    seqs = [await conversations.append("c", NOON + n * MINUTE, "user", body) for n, body in enumerate(bodies)]
    expected = tuple(Entry(n + 1, NOON + n * MINUTE, "user", body) for n, body in enumerate(bodies))
    assert (seqs, await conversations.entries(ALICE, "c")) == ([1, 2, 3, 4], expected)


async def test_appending_counts_and_moves_updated_forward_never_back(conversations):
    await conversations.start(conversation("c"))
    for minute in (1, 5, 3):
        await conversations.append("c", NOON + minute * MINUTE, "user", {})
    changed = replace(conversation("c"), entries=3, updated=NOON + 5 * MINUTE)
    assert await conversations.find(ALICE, "c") == changed
    assert (await conversations.list(ALICE)).items == (changed,)


@pytest.mark.parametrize("id", ["", "unknown", "C", "\0", "\ud800"])
async def test_nothing_is_appended_to_an_unknown_conversation(conversations, id):
    await conversations.start(conversation("c"))
    with pytest.raises(LookupError):
        await conversations.append(id, NOON, "user", {})
    assert await conversations.entries(ALICE, "c") == ()


@pytest.mark.parametrize(
    ("ts", "kind", "body"),
    [
        pytest.param(datetime(2026, 1, 1), "user", {}, id="a naive time"),  # noqa: DTZ001
        pytest.param(NOON, "us\0er", {}, id="U+0000 in the kind"),
        pytest.param(NOON, "user", {"n": [float("nan")]}, id="NaN in the body"),
    ],
)
async def test_a_refused_entry_leaves_no_gap(conversations, ts, kind, body):
    await conversations.start(conversation("c"))
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await conversations.append("c", ts, kind, body)
    assert await conversations.append("c", NOON, "user", {}) == 1
    assert (await conversations.find(ALICE, "c")).entries == 1


async def test_appends_at_the_same_time_leave_no_gap_and_lose_nothing(conversations):
    for id in ("c", "d"):
        await conversations.start(conversation(id))
    seqs = await asyncio.gather(*(conversations.append("cd"[n % 2], NOON, "user", {"n": n}) for n in range(80)))
    for offset, id in enumerate("cd"):
        entries = await conversations.entries(ALICE, id)
        assert [entry.seq for entry in entries] == list(range(1, 41))
        assert sorted(seqs[offset::2]) == list(range(1, 41))
        assert {entry.body["n"] for entry in entries} == set(range(offset, 80, 2))


@pytest.mark.parametrize(
    ("since", "limit", "seqs"),
    [
        pytest.param(0, 3, [1, 2, 3], id="the first three"),
        pytest.param(3, 1000, [4, 5], id="after the third"),
        pytest.param(2, 2, [3, 4], id="two after the second"),
        pytest.param(5, 1000, [], id="after the last"),
        pytest.param(99, 1000, [], id="far after the last"),
        pytest.param(-1, 2, [1, 2], id="before the first"),
        pytest.param(0, 0, [], id="none at all"),
    ],
)
async def test_entries_above_a_seq(conversations, since, limit, seqs):
    await conversations.start(conversation("c"))
    for _ in range(5):
        await conversations.append("c", NOON, "user", {})
    found = await conversations.entries(ALICE, "c", since=since, limit=limit)
    assert [entry.seq for entry in found] == seqs


@pytest.mark.parametrize(
    ("principal", "id"),
    [
        pytest.param(BOB, "c", id="another's conversation"),
        pytest.param(BOB, "never", id="one that never was"),
        pytest.param(ALICE, "c\0", id="an id with U+0000"),
        pytest.param(ALICE, "\ud800", id="an id with a lone surrogate"),
        pytest.param("local:Alice", "c", id="a principal that differs in case"),
        pytest.param("", "c", id="an empty principal"),
        pytest.param("%", "c", id="a wildcard as principal"),
        pytest.param("\0", "c", id="U+0000 as principal"),
    ],
)
async def test_foreign_and_unknown_cannot_be_told_apart(conversations, principal, id):
    await conversations.start(conversation("c"))
    await conversations.append("c", NOON, "user", {"secret": 1})
    assert await conversations.find(principal, id) is None
    assert await conversations.entries(principal, id) is None
    assert await conversations.entries(principal, id, since=99) is None


async def test_a_list_holds_only_the_principals_own(conversations):
    await conversations.start(conversation("a", session="shared"))
    await conversations.start(conversation("b", principal=BOB, session="shared"))
    assert await every_page(conversations, ALICE, 10) == [["a"]]
    assert await every_page(conversations, BOB, 10, session="shared") == [["b"]]
    for nobody in ("local:eve", "", "\0", "\ud800"):
        assert await conversations.list(nobody) == ConversationPage((), None)


async def test_another_principals_position_shows_only_ones_own(conversations):
    for minute in range(3):
        await conversations.start(conversation(f"a{minute}", minute=minute))
        await conversations.start(conversation(f"b{minute}", principal=BOB, minute=minute))
    theirs = await conversations.list(ALICE, limit=1)
    assert [c.id for c in (await conversations.list(BOB, after=theirs.after)).items] == ["b1", "b0"]


async def test_a_list_can_be_narrowed_to_one_session(conversations):
    for id, session in [("a", "one"), ("b", "two"), ("c", None), ("d", "one")]:
        await conversations.start(conversation(id, session=session, minute=ord(id)))
    assert await every_page(conversations, ALICE, 1, session="one") == [["d"], ["a"]]
    for none in ("three", "", "\0"):
        assert await conversations.list(ALICE, session=none) == ConversationPage((), None)


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 100])
async def test_pages_together_are_the_list_newest_first_whatever_their_size(conversations, limit):
    for id, minute in [("a", 0), ("b", 2), ("c", 1), ("d", 2), ("Z", 2), ("é", 2)]:
        await conversations.start(conversation(id, minute=minute))
    pages = await every_page(conversations, ALICE, limit)
    assert [id for page in pages for id in page] == ["é", "d", "b", "Z", "c", "a"]
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)


async def test_pages_stay_stable_when_new_conversations_arrive_between_them(conversations):
    for minute in range(6):
        await conversations.start(conversation(f"c{minute}", minute=minute))
    first = await conversations.list(ALICE, limit=2)
    for minute in (7, 8):
        await conversations.start(conversation(f"c{minute}", minute=minute))
    await conversations.append("c3", NOON + 60 * MINUTE, "user", {})
    second = await conversations.list(ALICE, after=first.after, limit=2)
    third = await conversations.list(ALICE, after=second.after, limit=2)
    ids = [[item.id for item in page.items] for page in (first, second, third)]
    assert (ids, third.after) == ([["c5", "c4"], ["c3", "c2"], ["c1", "c0"]], None)


async def test_microseconds_part_pages(conversations):
    for n in range(4):
        at = NOON + timedelta(microseconds=n)
        await conversations.start(Conversation(f"c{n}", ALICE, "h", "t", None, at, at))
    assert await every_page(conversations, ALICE, 1) == [["c3"], ["c2"], ["c1"], ["c0"]]


NO_POSITIONS = [
    "", ".", "x", "1", "1.", ".c", "01.c", "+1.c", "1e3.c", " 1.c", "\N{ARABIC-INDIC DIGIT ONE}.c", "-0.c",
    "1.\0", "1.\ud800", "9" * 30 + ".c", "9" * 5000 + ".c", "-" + "9" * 30 + ".c", "nan.c",
]  # fmt: skip


@pytest.mark.parametrize("after", NO_POSITIONS, ids=lambda after: repr(after[:12]))
async def test_a_position_that_no_page_gave_is_refused(conversations, after):
    for principal in (ALICE, "\0"):
        with pytest.raises(ValueError, match="not a position"):
            await conversations.list(principal, after=after)
