"""What every `QuestionStore` promises, asked of the twin and of each database alike; and questions across processes."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from auth.changes import Change, Subject
from gateway.store.changes import StoreChanges
from gateway.store.engine import open_database
from gateway.store.memory_questions import MemoryQuestions
from gateway.store.questions import SqlQuestions
from gateway.store.sessions import SqlSessions
from mcp.faults import Fault
from mcp.pending import MARGIN, PATIENCE, Asked, Pending, Question
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support.statements import statements_of

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALICE, BOB = "local:alice", "local:bob"
YES = {"result": {"action": "accept", "content": {"ok": True, "nul": "\0", "half": "\ud800", "🦀": [None, 2**63]}}}
NO = {"error": {"code": -1, "message": "no"}}


def asked(id="q", session="s", principal=ALICE, minute=0):
    return Asked(id, session, principal, NOON + minute * MINUTE)


@pytest.fixture
async def questions(stores):
    """On the same database as the sessions, or in memory where those are; beside a session of Alice's and of Bob's."""
    await open_sessions(stores.sessions)
    database = getattr(stores.sessions, "_database", None)
    return MemoryQuestions(stores.sessions) if database is None else SqlQuestions(database)


async def open_sessions(sessions):
    for id, principal in [("s", ALICE), ("t", BOB)]:
        await sessions.open(Session(id, State(principal=principal), NOON, NOON), most=10)


async def test_an_answer_is_taken_exactly_as_it_came_and_once(questions):
    assert await questions.ask(asked(), most=9, since=NOON)
    assert await questions.take("q") is None
    assert await questions.answer("s", ALICE, "q", YES)
    assert [await questions.take("q"), await questions.take("q")] == [YES, None]


async def test_a_question_is_answered_once(questions):
    await questions.ask(asked(), most=9, since=NOON)
    assert [await questions.answer("s", ALICE, "q", body) for body in (YES, NO)] == [True, False]
    assert await questions.take("q") == YES
    assert not await questions.answer("s", ALICE, "q", NO)


async def test_of_many_answers_at_once_one_counts(questions):
    await questions.ask(asked(), most=9, since=NOON)
    bodies = [{"result": n} for n in range(10)]
    counted = await asyncio.gather(*(questions.answer("s", ALICE, "q", body) for body in bodies))
    assert [body for body, counts in zip(bodies, counted, strict=True) if counts] == [await questions.take("q")]


@pytest.mark.parametrize(
    ("session", "principal", "id"),
    [
        pytest.param("t", ALICE, "q", id="another session"),
        pytest.param("t", BOB, "q", id="another principal's own session"),
        pytest.param("s", BOB, "q", id="another principal"),
        pytest.param("s", ALICE, "Q", id="an id in other case"),
        pytest.param("s", ALICE, "", id="no id"),
        pytest.param("s", ALICE, "\0", id="an id with U+0000"),
        pytest.param("\ud800", ALICE, "q", id="a session with a lone surrogate"),
    ],
)
async def test_only_its_session_and_principal_answer_a_question(questions, session, principal, id):
    await questions.ask(asked(), most=9, since=NOON)
    assert not await questions.answer(session, principal, id, YES)
    assert await questions.take("q") is None
    assert await questions.answer("s", ALICE, "q", NO)


@pytest.mark.parametrize("id", ["", "unknown", "\0", "\ud800"])
async def test_what_was_never_asked_is_neither_taken_nor_closed(questions, id):
    await questions.ask(asked(), most=9, since=NOON)
    await questions.close(id)
    assert await questions.take(id) is None
    assert await questions.answer("s", ALICE, "q", YES)


async def test_a_closed_question_cannot_be_answered(questions):
    for id, answered in [("open", False), ("answered", True)]:
        await questions.ask(asked(id), most=9, since=NOON)
        assert await questions.answer("s", ALICE, id, YES) or not answered
        await questions.close(id)
        await questions.close(id)
        assert (await questions.answer("s", ALICE, id, YES), await questions.take(id)) == (False, None)


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(asked(session="gone"), id="a session that never was"),
        pytest.param(asked(principal=BOB), id="a session of somebody else"),
    ],
)
async def test_a_question_needs_its_principals_session(questions, refused):
    assert not await questions.ask(refused, most=9, since=NOON)
    assert not await questions.answer(refused.session, refused.principal, "q", YES)


async def test_a_session_has_only_so_many_open_until_one_is_gone(questions):
    assert [await questions.ask(asked(f"q{n}"), most=3, since=NOON) for n in range(4)] == [True, True, True, False]
    assert await questions.ask(asked("bobs", "t", BOB), most=3, since=NOON)
    await questions.answer("s", ALICE, "q0", YES)
    assert not await questions.ask(asked("q4"), most=3, since=NOON)
    await questions.take("q0")
    assert await questions.ask(asked("q4"), most=3, since=NOON)


async def test_a_question_from_before_that_time_does_not_count(questions):
    for minute in range(3):
        assert await questions.ask(asked(f"q{minute}", minute=minute), most=3, since=NOON)
    late = asked("late", minute=3)
    assert not await questions.ask(late, most=3, since=NOON)
    assert await questions.ask(late, most=3, since=NOON + MINUTE)
    assert await questions.answer("s", ALICE, "q0", YES)


async def test_the_cap_holds_when_many_are_asked_at_once(questions):
    kept = await asyncio.gather(*(questions.ask(asked(f"q{n}"), most=5, since=NOON) for n in range(30)))
    assert sum(kept) == 5


@pytest.mark.parametrize("how", ["end", "sweep", "open"])
async def test_questions_end_with_their_session_however_it_ends(sessions, questions, how):
    for one in (asked("open"), asked("answered"), asked("bobs", "t", BOB)):
        await questions.ask(one, most=9, since=NOON)
    await questions.answer("s", ALICE, "answered", YES)
    await sessions.touch({"t": NOON + MINUTE})
    match how:
        case "end":
            await sessions.end("s")
        case "sweep":
            await sessions.sweep(NOON + MINUTE)
        case "open":
            await sessions.open(Session("new", State(principal=ALICE), NOON, NOON), most=1)
    assert (await questions.answer("s", ALICE, "open", YES), await questions.take("answered")) == (False, None)
    assert await questions.answer("t", BOB, "bobs", YES)


async def test_sweep_ends_what_is_from_strictly_before_answered_or_not(questions):
    for minute in range(4):
        await questions.ask(asked(f"q{minute}", minute=minute), most=9, since=NOON)
    await questions.answer("s", ALICE, "q0", YES)
    assert [await questions.sweep(NOON + 2 * MINUTE), await questions.sweep(NOON + 2 * MINUTE)] == [2, 0]
    assert [await questions.answer("s", ALICE, f"q{n}", YES) for n in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(replace(asked(), created=datetime(2026, 1, 1)), id="a naive time"),  # noqa: DTZ001
        pytest.param(asked(id="a\0b"), id="U+0000 in the id"),
        pytest.param(asked(session="\ud800"), id="a lone surrogate in the session"),
        pytest.param(asked(id="taken"), id="a taken id"),
    ],
)
async def test_what_cannot_be_stored_everywhere_is_refused(questions, bad):
    await questions.ask(asked("taken"), most=9, since=NOON)
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await questions.ask(bad, most=9, since=NOON)
    assert await questions.answer("s", ALICE, "taken", YES)


async def test_an_answer_that_is_no_json_is_refused_and_the_question_stays_open(questions):
    await questions.ask(asked(), most=9, since=NOON)
    with pytest.raises(ValueError, match="JSON"):
        await questions.answer("s", ALICE, "q", {"result": float("nan")})
    assert await questions.answer("s", ALICE, "q", YES)


# Two processes over one database.


@asynccontextmanager
async def process(url):
    """Its questions, and its database."""
    database = open_database(url)
    feed = StoreChanges(database, url)
    pending = Pending(lambda: NOON, SqlQuestions(database))
    feed.listen(pending.hear)
    try:
        await feed.start()
        yield pending, database
    finally:
        await pending.flush()
        await feed.stop()
        await database.close()


@pytest.fixture
async def here(url):
    async with process(url) as (pending, database):
        await open_sessions(SqlSessions(database))
        yield pending, database


@pytest.fixture
async def there(url):
    async with process(url) as (pending, _):
        yield pending


async def test_an_answer_that_arrives_at_another_process_reaches_the_one_that_waits(here, there):
    pending, database = here
    question = await pending.open("s", ALICE)
    waiting = asyncio.create_task(question.wait(30))
    assert not await there.answer("s", BOB, question.id, NO)
    assert await there.answer("s", ALICE, question.id, YES)
    async with asyncio.timeout(2):
        assert await waiting == YES
    assert not await there.answer("s", ALICE, question.id, NO)
    await pending.flush()
    assert await SqlQuestions(database).sweep(NOON + MINUTE) == 0


async def test_an_answer_in_the_process_that_waits_costs_no_statement(here):
    pending, database = here
    question = await pending.open("s", ALICE)
    with statements_of(database) as seen:
        assert await pending.answer("s", ALICE, question.id, YES)
    assert seen == []
    assert await question.wait(30) == YES
    await pending.flush()
    assert await SqlQuestions(database).sweep(NOON + MINUTE) == 0


async def test_a_session_that_ends_elsewhere_ends_the_wait(here, url):
    pending, _ = here
    question = await pending.open("s", ALICE)
    other = open_database(url)
    assert await SqlSessions(other).end("s")
    await other.close()
    async with asyncio.timeout(2):
        assert await question.wait(30) is None


async def test_an_answer_whose_change_was_never_heard_is_taken_at_the_end_of_the_wait(url):
    """A process that is deaf, because its feed never started."""
    database = open_database(url)
    await open_sessions(SqlSessions(database))
    deaf = Pending(lambda: NOON, SqlQuestions(database))
    question = await deaf.open("s", ALICE)
    assert await Pending(lambda: NOON, SqlQuestions(database)).answer("s", ALICE, question.id, YES)
    assert await question.wait(0) == YES
    await database.close()


async def test_the_change_is_that_of_the_answered_question(database, url):
    feed, heard = StoreChanges(database, url), []
    feed.listen(heard.append)
    await feed.start()
    await open_sessions(SqlSessions(database))
    questions = SqlQuestions(database)
    await questions.ask(asked(), most=9, since=NOON)
    for body in (YES, NO):
        await questions.answer("s", ALICE, "q", body)
    await questions.take("q")
    await feed.stop()
    assert heard == [None, Change(Subject.QUESTION, "q")]


async def test_what_a_dead_process_left_counts_and_stays_no_longer_than_a_question_waits(database):
    await open_sessions(SqlSessions(database))
    questions = SqlQuestions(database)
    for minute in (0, 1):
        await questions.ask(asked(f"q{minute}", minute=minute), most=9, since=NOON)
    moment = NOON + PATIENCE + MARGIN + MINUTE / 2
    pending = Pending(lambda: moment, questions, most=2)
    own = await pending.open("s", ALICE)
    assert isinstance(own, Question)
    await pending.tidy()
    assert isinstance(await pending.open("s", ALICE), Fault)
    assert [await questions.answer("s", ALICE, id, YES) for id in ("q0", "q1")] == [False, True]
