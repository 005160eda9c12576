"""What every audit store promises, asked of the twin and of each database alike."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from gateway.store import audit as sql_audit
from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from gateway.store.memory_audit import MemoryAudit
from telemetry.audit import AuditRecord, tidy

FULL = AuditRecord(
    request_id="r1",
    principal="https://issuer.example#søren 🦀",
    action="tools/call",
    object="bash",
    decision="refused",
    reason="bash was refused by the rule: no",
    trace_id="0" * 32,
    token="t1",
    address="203.0.113.9",
    duration_ms=2**31 - 1,
    arguments_sha256="f" * 64,
    arguments_bytes=0,
    result_bytes=12,
)
BARE = AuditRecord("r2", "anonymous", "tools/call", "read", "allowed")


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def audit(request):
    if request.param == "memory":
        yield MemoryAudit()
        return
    database = open_database(request.getfixturevalue(f"{request.param}_url"))
    yield SqlAudit(database)
    await database.close()


def record(n, **fields):
    return replace(BARE, request_id=f"r{n}", **fields)


async def ids(audit, **query):
    """The request ids of a page, as one word."""
    return " ".join([row.record.request_id for row in await audit.page(**query)])


async def test_records_come_back_as_they_were_written_with_a_number_and_a_time(audit):
    before = datetime.now(UTC) - timedelta(seconds=1)
    await audit.write([FULL, BARE])
    rows = await audit.page()
    assert [row.record for row in rows] == [FULL, BARE]
    assert rows[0].seq < rows[1].seq
    assert all(before < row.at <= datetime.now(UTC) and row.at.utcoffset() == timedelta(0) for row in rows)


async def test_the_time_is_that_of_the_event_not_of_the_write(audit):
    await audit.write([replace(BARE, age=90.25), BARE])
    old, new = await audit.page()
    assert abs((new.at - old.at).total_seconds() - 90.25) < 1
    assert old.record == BARE


async def test_writing_nothing_does_nothing(audit):
    await audit.write([])
    assert await audit.page() == ()


async def test_a_batch_with_text_that_no_database_takes_is_refused_as_a_whole(audit):
    for text in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match="U\\+0000"):
            await audit.write([BARE, replace(BARE, object=text)])
    assert await audit.page() == ()


async def test_any_record_is_taken_once_it_is_tidy(audit):
    odd = AuditRecord("\0", "\ud800" * 9999, "\n", "x" * 9999, "\r", duration_ms=2**40, result_bytes=-1)
    await audit.write([tidy(odd)])
    assert [row.record for row in await audit.page()] == [tidy(odd)]


async def test_pages_follow_each_other_without_a_gap_in_both_directions(audit):
    await audit.write([record(n) for n in range(7)])
    for newest_first, expected in ((False, "r0 r1 r2 r3 r4 r5 r6"), (True, "r6 r5 r4 r3 r2 r1 r0")):
        seen, after = [], None
        while rows := await audit.page(after=after, newest_first=newest_first, limit=3):
            seen += rows
            after = rows[-1].seq
        assert " ".join(row.record.request_id for row in seen) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, "r1 r2 r3", id="everything"),
        pytest.param({"principal": "local:alice"}, "r1 r3", id="of a principal"),
        pytest.param({"action": "token.create"}, "r3", id="of an action"),
        pytest.param({"principal": "local:alice", "action": "tools/call"}, "r1", id="of both"),
        pytest.param({"principal": "local:ALICE"}, "", id="names are exact"),
        pytest.param({"principal": "local:%"}, "", id="no wildcards"),
        pytest.param({"principal": "a\0"}, "", id="a name that no database takes"),
        pytest.param({"limit": 2}, "r1 r2", id="a limit"),
        pytest.param({"limit": 2, "newest_first": True}, "r3 r2", id="the newest"),
        pytest.param({"limit": 0}, "", id="nothing asked for"),
    ],
)
async def test_a_page_holds_what_was_asked_for(audit, query, expected):
    await audit.write(
        [
            record(1, principal="local:alice"),
            record(2, principal="local:bob"),
            record(3, principal="local:alice", action="token.create"),
        ]
    )
    assert await ids(audit, **query) == expected


async def test_since_keeps_what_happened_at_that_time_or_later(audit):
    await audit.write([record(1, age=7200), record(2, age=60)])
    hour_ago = datetime.now(timezone(timedelta(hours=5))) - timedelta(hours=1)
    assert await ids(audit, since=hour_ago) == "r2"
    exact = (await audit.page(limit=1))[0].at
    assert await ids(audit, since=exact) == "r1 r2"
    with pytest.raises(ValueError, match="time zone"):
        await audit.page(since=datetime(2026, 1, 1))  # noqa: DTZ001 - the naive time is the point


async def test_writers_at_the_same_time_lose_nothing_and_keep_each_ones_order(audit):
    await asyncio.gather(*(audit.write([record(n, principal=who) for n in range(20)]) for who in "abc"))
    for who in "abc":
        assert await ids(audit, principal=who) == " ".join(f"r{n}" for n in range(20))
    assert len(await audit.page()) == 60


async def test_a_row_commits_with_the_change_it_is_about_and_goes_with_it(database):
    audit = SqlAudit(database)
    await database.write(lambda connection: sql_audit.insert(connection, FULL))

    def fails(connection):
        sql_audit.insert(connection, BARE)
        raise RuntimeError("the change failed")

    with pytest.raises(RuntimeError, match="the change failed"):
        await database.write(fails)
    assert [row.record for row in await audit.page()] == [FULL]


async def test_a_change_never_fails_for_what_is_odd_about_its_row(database):
    odd = replace(BARE, object="a\0\ud800", reason="Bearer abc", duration_ms=2**40)
    await database.write(lambda connection: sql_audit.insert(connection, odd))
    [row] = await SqlAudit(database).page()
    assert row.record == replace(BARE, object="a\\x00\\ud800", reason="Bearer ***", duration_ms=2**31 - 1)
