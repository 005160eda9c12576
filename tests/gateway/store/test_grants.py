"""What every `GrantStore` promises, asked of the twin and of each database alike."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from auth.ports import Page
from gateway.store.grants import SqlGrants
from gateway.store.sessions import SqlSessions
from mcp.grants import MOST_SUBJECT, OfHarness, OfSession
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support.grants import ALICE, BOB, CODE, MINUTE, NOON, covering, grant, ids, of_harness
from tests.support.statements import statements_of


async def test_a_grant_comes_back_exactly_as_it_was_added(grants, session, token):
    added = [
        grant("h", "https://issuer.example#søren", tool="edit", subject="src/ü 🦀.py"),
        grant("s", reach=OfSession(session), subject="x" * MOST_SUBJECT, rule="f" * 64, token=token),
    ]
    assert [await grants.add(one) for one in added] == added
    for one in added:
        assert await grants.list(one.principal) == Page((one,))
        assert await grants.covering(one.principal, session, CODE, NOON) == (one,)


async def test_times_come_back_in_utc_whatever_zone_they_were_given_in(grants):
    tokyo = timezone(timedelta(hours=9))
    given = grant(reach=OfHarness(CODE, (NOON + MINUTE).astimezone(tokyo)))
    kept = await grants.add(replace(given, created=NOON.astimezone(tokyo)))
    assert (await grants.list(ALICE)).items == (kept,) == (grant(reach=of_harness(minutes=1)),)
    assert (kept.created.tzinfo, kept.reach.expires.tzinfo) == (UTC, UTC)


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [
        pytest.param(60, 90, 90, id="a later end wins"),
        pytest.param(60, 30, 60, id="an earlier end does not"),
        pytest.param(60, 60, 60, id="the same end changes nothing"),
        pytest.param(-5, 30, 30, id="one that has expired lives again"),
    ],
)
async def test_the_same_grant_twice_is_one_that_ends_at_the_later_time(grants, first, second, ends):
    await grants.add(grant("one", reach=of_harness(minutes=first)))
    kept = await grants.add(grant("two", reach=of_harness(minutes=second), minute=9))
    assert kept == grant("one", reach=of_harness(minutes=ends))
    assert await grants.list(ALICE) == Page((kept,))


async def test_the_same_grant_of_a_session_twice_is_one(grants, session):
    first = await grants.add(grant("one", reach=OfSession(session)))
    assert await grants.add(grant("two", reach=OfSession(session), minute=9)) == first
    assert await grants.list(ALICE) == Page((first,))


async def test_what_differs_in_anything_is_a_grant_of_its_own(grants, session, token):
    """Also where the parts of one run together would be those of the other."""
    others = [
        grant("a"),
        grant("b", reach=of_harness("super-pi-planner")),
        grant("c", reach=OfSession(session)),
        grant("d", reach=OfHarness(session, NOON + MINUTE)),
        grant("e", tool="bas", subject="hmake test"),
        grant("f", subject="make  test"),
        grant("g", subject="MAKE TEST"),
        grant("h", BOB),
        grant("i", rule="s"),
        grant("j", subject="make testr", rule=""),
        grant("k", token=token),
    ]
    assert [await grants.add(one) for one in others] == others
    assert (await ids(grants), await ids(grants, BOB)) == ("k j i g f e d c b a", "h")


async def test_a_grant_of_no_session_of_the_principals_is_not_made(grants, session):
    for reach, principal in ((OfSession("never"), ALICE), (OfSession(session), BOB), (OfSession("S"), ALICE)):
        assert await grants.add(grant(principal=principal, reach=reach)) is None
    assert (await ids(grants), await ids(grants, BOB)) == ("", "")


async def test_a_taken_id_is_refused_whoever_asks_and_the_first_grant_stays(grants):
    await grants.add(grant())
    for other in (grant(subject="rm -rf ."), grant(principal=BOB)):
        with pytest.raises(ValueError, match="taken"):
            await grants.add(other)
    assert await grants.list(ALICE) == Page((grant(),))
    assert await ids(grants, BOB) == ""


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(grant(subject="a\0b"), id="U+0000 in the subject"),
        pytest.param(grant(subject="\ud800"), id="a lone surrogate in the subject"),
        pytest.param(grant(subject="x" * (MOST_SUBJECT + 1)), id="a subject that is too long"),
        pytest.param(grant(tool="a\0"), id="U+0000 in the tool"),
        pytest.param(grant(principal="\ud800"), id="a lone surrogate in the principal"),
        pytest.param(grant(reach=OfSession("\0")), id="U+0000 in the session"),
        pytest.param(grant(rule="\0"), id="U+0000 in the rule"),
        pytest.param(grant(token="\ud800"), id="a lone surrogate in the token"),
        pytest.param(replace(grant(), created=datetime(2026, 1, 1)), id="a naive time"),  # noqa: DTZ001
        pytest.param(grant(reach=OfHarness(CODE, datetime(2026, 1, 1))), id="a naive end"),  # noqa: DTZ001
    ],
)
async def test_what_cannot_be_kept_everywhere_is_refused_and_ends_nothing(grants, bad):
    await grants.add(grant("old", principal=bad.principal.replace("\ud800", "")))
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await grants.add(bad, most=1)
    assert await ids(grants, bad.principal.replace("\ud800", "")) == "old"


async def test_a_call_is_covered_by_its_sessions_grants_and_by_its_harnesses_until_they_expire(
    grants, session, sessions
):
    await sessions.open(Session("other", State(principal=ALICE), NOON, NOON), most=10)
    await grants.add(grant("of_session", reach=OfSession(session), minute=1))
    await grants.add(grant("of_other_session", reach=OfSession("other")))
    await grants.add(grant("of_harness", reach=of_harness(minutes=10)))
    await grants.add(grant("of_other_harness", reach=of_harness("super-pi-planner")))
    assert await covering(grants, session) == "of_harness of_session"
    assert await covering(grants, "other") == "of_harness of_other_session"
    assert await covering(grants) == "of_harness"
    assert await covering(grants, session, "super-pi-planner") == "of_other_harness of_session"
    assert await covering(grants, session, minute=10) == "of_session"


@pytest.mark.parametrize(
    ("principal", "asked", "harness"),
    [
        pytest.param(BOB, "s", CODE, id="another's session and harness"),
        pytest.param(ALICE, "S", CODE.upper(), id="ids that differ in case"),
        pytest.param(ALICE, CODE, "s", id="the one for the other"),
        pytest.param(ALICE, "", "", id="nothing"),
        pytest.param("%", "%", "%", id="wildcards"),
        pytest.param("\0", "s", CODE, id="a principal that no database takes"),
        pytest.param(ALICE, "\ud800", CODE, id="a session that no database takes"),
    ],
)
async def test_foreign_and_unknown_calls_are_covered_by_nothing(grants, session, principal, asked, harness):
    await grants.add(grant("of_session", reach=OfSession(session)))
    await grants.add(grant("of_harness"))
    assert await grants.covering(principal, asked, harness, NOON) == ()


# Ends.


async def test_beyond_the_cap_the_oldest_grants_of_that_principal_end(grants, session):
    await grants.add(grant("bob", BOB, minute=-100))
    for id, minute in [("a", 3), ("b", 1), ("c", 2), ("d", 0)]:
        await grants.add(grant(id, reach=OfSession(session), subject=id, minute=minute))
    await grants.add(grant("new", minute=4), most=3)
    assert (await ids(grants), await ids(grants, BOB)) == ("new a c", "bob")


async def test_the_new_grant_stays_even_when_it_is_the_oldest(grants):
    for id, minute in [("a", 3), ("b", 1)]:
        await grants.add(grant(id, subject=id, minute=minute))
    await grants.add(grant("new", minute=-60), most=2)
    assert await ids(grants) == "a new"


async def test_a_grant_that_is_there_already_crowds_out_nothing(grants):
    for id in "abc":
        await grants.add(grant(id, subject=id))
    await grants.add(grant("again", subject="a"), most=1)
    assert await ids(grants) == "c b a"


async def test_the_cap_and_the_oneness_hold_when_many_are_added_at_once(grants):
    await asyncio.gather(*(grants.add(grant(f"g{n}", subject=str(n // 2), minute=n), most=5) for n in range(40)))
    items = (await grants.list(ALICE)).items
    assert len(items) == 5
    assert len({item.subject for item in items}) == 5


async def test_a_grant_is_removed_once_and_by_its_principal_alone(grants):
    await grants.add(grant())
    for principal, id in ((BOB, "g"), (ALICE, "G"), (ALICE, "\0"), ("\ud800", "g"), ("", "g")):
        assert await grants.remove(principal, id) is None
    assert await ids(grants) == "g"
    assert [await grants.remove(ALICE, "g"), await grants.remove(ALICE, "g")] == [grant(), None]
    assert await ids(grants) == ""


async def test_whosever_a_grant_is_it_is_removed_for_nobody_in_particular(grants):
    for id, principal in (("a", ALICE), ("b", BOB)):
        await grants.add(grant(id, principal))
    assert [await grants.remove(None, "b"), await grants.remove(None, "b")] == [grant("b", BOB), None]
    assert (await ids(grants), await ids(grants, BOB)) == ("a", "")


async def test_what_is_done_with_a_removal_is_told_the_grant_and_undone_with_it(grants):
    kept = []

    def fails(_):
        raise ValueError("not today")

    await grants.add(grant())
    with pytest.raises(ValueError, match="not today"):
        await grants.remove(None, "g", also=lambda _: fails)
    assert await ids(grants) == "g"
    for _ in range(2):
        await grants.remove(None, "g", also=lambda ended: lambda _: kept.append(ended))
    assert (kept, await ids(grants)) == ([grant()], "")


async def test_sweep_ends_what_has_expired_and_nothing_of_a_session(grants, session):
    await grants.add(grant("of_session", reach=OfSession(session)))
    for n in range(4):
        await grants.add(grant(f"g{n}", f"p{n % 2}", of_harness(minutes=n), subject=str(n)))
    assert [await grants.sweep(NOON + 2 * MINUTE), await grants.sweep(NOON + 2 * MINUTE)] == [3, 0]
    assert [await ids(grants, who) for who in ("p0", "p1", ALICE)] == ["", "g3", "of_session"]
    with pytest.raises(ValueError, match="time zone"):
        await grants.sweep(datetime(2026, 1, 1))  # noqa: DTZ001 - the naive time is the point


# Lists.


async def every_page(grants, principal, limit):
    """The ids of all pages, one word a page."""
    pages, after = [], None
    while True:
        page = await grants.list(principal, after=after, limit=limit)
        pages.append(" ".join(item.id for item in page.items))
        if (after := page.after) is None:
            return pages


@pytest.mark.parametrize(
    ("limit", "pages"), [(1, ["d", "b", "Z", "c", "a"]), (2, ["d b", "Z c", "a"]), (5, ["d b Z c a"])]
)
async def test_pages_together_are_the_list_newest_first_whatever_their_size(grants, limit, pages):
    for id, minute in [("a", 0), ("b", 2), ("c", 1), ("d", 2), ("Z", 2)]:
        await grants.add(grant(id, subject=id, minute=minute))
        await grants.add(grant(f"bob-{id}", BOB, subject=id, minute=minute))
    assert await every_page(grants, ALICE, limit) == pages


async def test_everybodys_grants_are_listed_for_nobody_in_particular(grants, session):
    for n, (principal, minute) in enumerate([(ALICE, 0), (BOB, 2), (ALICE, 1)]):
        await grants.add(grant(f"g{n}", principal, subject=str(n), minute=minute))
    assert await every_page(grants, None, 2) == ["g1 g2", "g0"]


async def test_a_list_for_a_time_has_only_what_counts_then(grants, session):
    await grants.add(grant("of_session", reach=OfSession(session)))
    await grants.add(grant("of_harness", reach=of_harness(minutes=10)))
    listed = [(await grants.list(ALICE, now=NOON + minute * MINUTE)).items for minute in (9, 10)]
    assert [[item.id for item in items] for items in listed] == [["of_session", "of_harness"], ["of_session"]]
    with pytest.raises(ValueError, match="time zone"):
        await grants.list(ALICE, now=datetime(2026, 1, 1))  # noqa: DTZ001 - the naive time is the point


async def test_another_principals_position_shows_only_ones_own(grants):
    for minute in range(3):
        await grants.add(grant(f"a{minute}", subject=str(minute), minute=minute))
        await grants.add(grant(f"b{minute}", BOB, subject=str(minute), minute=minute))
    theirs = await grants.list(ALICE, limit=1)
    assert [item.id for item in (await grants.list(BOB, after=theirs.after)).items] == ["b1", "b0"]


@pytest.mark.parametrize("after", ["", ".", "x", "1.", "1.\0", "nan.c"])
async def test_a_position_that_no_page_gave_is_refused(grants, after):
    with pytest.raises(ValueError, match="not a position"):
        await grants.list(ALICE, after=after)


async def test_nobody_has_no_grants(grants):
    await grants.add(grant())
    for nobody in ("local:eve", "", "\0", "\ud800", "%"):
        assert await grants.list(nobody) == Page(())


# Databases alone.


@pytest.mark.parametrize(
    ("session", "harness", "expires"),
    [
        pytest.param("'s'", "'h'", "'2026-01-01'", id="both a session and a harness"),
        pytest.param("NULL", "NULL", "NULL", id="neither"),
        pytest.param("NULL", "'h'", "NULL", id="a harness without an end"),
        pytest.param("'s'", "NULL", "'2026-01-01'", id="a session with an end of its own"),
    ],
)
async def test_the_database_refuses_a_reach_that_is_none(database, session, harness, expires):
    await SqlSessions(database).open(Session("s", State(principal=ALICE), NOON, NOON), most=10)
    row = f"'g', '{ALICE}', {session}, {harness}, 'bash', 'x', '1', '2026-01-01', {expires}"
    columns = "id, principal, session, harness, tool, subject, digest, created_at, expires_at"
    insert = text(f'INSERT INTO "grant" ({columns}) VALUES ({row})')
    with pytest.raises(IntegrityError):
        await database.write(lambda connection: connection.execute(insert))


async def test_what_covers_a_call_is_asked_in_one_statement_along_indexes(database):
    with statements_of(database) as seen:
        await SqlGrants(database).covering(ALICE, "s", CODE, NOON)
    [asked] = seen

    def explain(connection):
        if connection.dialect.name == "sqlite":
            return connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked.text}", asked.parameters).all()
        connection.exec_driver_sql("SET enable_seqscan = off")
        return connection.exec_driver_sql(f"EXPLAIN {asked.text}", asked.parameters).all()

    plan = str(await database.read(explain))
    indexes = ("ix_grant_principal_harness_expires_at", "ix_grant_session")
    assert all(index in plan for index in indexes)
    assert "SCAN" not in plan
    assert "Seq Scan" not in plan
