"""Questions that wait: who may answer, when the wait ends, and how many there may be."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from auth.changes import Change, Subject
from auth.ports import StoreAway
from gateway.store.memory import MemorySessions
from gateway.store.memory_questions import MemoryQuestions
from mcp.faults import Fault
from mcp.pending import MOST_OPEN, Pending
from mcp.protocol.state import State
from mcp.sessions import Session

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE, BOB = "local:alice", "local:bob"
YES, NO = {"result": {"action": "accept"}}, {"error": {"code": -1, "message": "no"}}


class Elsewhere(MemoryQuestions):
    """A store that counts what is asked of it, and may be away."""

    def __init__(self, sessions):
        super().__init__(sessions)
        self.asked_of = []
        self.away = False
        self.silent = None

    def note(self, method):
        self.asked_of.append(method)
        if self.away:
            raise StoreAway("away")

    async def ask(self, asked, **bounds):
        self.note("ask")
        if self.silent is not None:
            await self.silent.wait()
        return await super().ask(asked, **bounds)

    async def answer(self, session, principal, id, body):
        self.note("answer")
        return await super().answer(session, principal, id, body)

    async def take(self, id):
        self.note("take")
        return await super().take(id)

    async def close(self, id):
        self.note("close")
        await super().close(id)


@pytest.fixture
async def store():
    sessions = MemorySessions()
    for id, principal in [("s", ALICE), ("s2", ALICE), ("t", BOB)]:
        await sessions.open(Session(id, State(principal=principal), NOON, NOON), most=10)
    return Elsewhere(sessions)


@pytest.fixture(params=["alone", "with a store"])
def pending(request):
    """As over stdio, and as one of several processes."""
    return Pending(lambda: NOON, None if request.param == "alone" else request.getfixturevalue("store"))


@pytest.fixture
def two(store):
    """Two processes over one store, deaf to each other until a test lets them hear of a change."""
    return Pending(lambda: NOON, store), Pending(lambda: NOON, store)


async def test_an_answer_reaches_who_waits(pending):
    question = await pending.open("s", ALICE)
    waiting = asyncio.create_task(question.wait(30))
    await asyncio.sleep(0)
    assert await pending.answer("s", ALICE, question.id, YES)
    assert (await waiting, len(pending)) == (YES, 0)


async def test_an_answer_that_is_faster_than_the_wait_is_not_lost(pending):
    question = await pending.open("s", ALICE)
    await pending.answer("s", ALICE, question.id, NO)
    assert await question.wait(0) == NO


async def test_only_the_first_answer_counts(pending):
    question = await pending.open("s", ALICE)
    assert [await pending.answer("s", ALICE, question.id, body) for body in (YES, NO)] == [True, False]
    assert await question.wait(30) == YES
    assert not await pending.answer("s", ALICE, question.id, NO)


@pytest.mark.requirement("SES-8")
@pytest.mark.parametrize(("session", "principal"), [("s", BOB), ("t", BOB), ("s2", ALICE)])
async def test_only_its_session_and_principal_answer_a_question(pending, session, principal):
    question = await pending.open("s", ALICE)
    assert not await pending.answer(session, principal, question.id, YES)
    assert await question.wait(0) is None


@pytest.mark.parametrize("id", [1, 0, "", "1", "x" * 22, "x" * 10_000, "\0" * 22, "ü" * 22])
async def test_an_answer_to_what_nobody_asked_is_nobodys(pending, id):
    await pending.open("s", ALICE)
    assert not await pending.answer("s", ALICE, id, YES)


async def test_what_cannot_be_an_id_of_ours_costs_no_question_to_the_store(two, store):
    for id in (1, "", "q", "x" * 23, "\0" * 22):
        assert not await two[0].answer("s", ALICE, id, YES)
    assert store.asked_of == []


@pytest.mark.requirement("LIFE-10")
async def test_without_an_answer_the_wait_ends_and_later_ones_are_nobodys(pending):
    question = await pending.open("s", ALICE)
    assert await question.wait(0.01) is None
    assert (await pending.answer("s", ALICE, question.id, YES), len(pending)) == (False, 0)


@pytest.mark.requirement("RPC-3")
async def test_ids_are_long_and_never_used_again(pending):
    """RPC-3: 22 characters of URL-safe Base64 are 128 bits."""
    ids = set()
    for _ in range(100):
        question = await pending.open("s", ALICE)
        ids.add(question.id)
        question.close()
        await pending.flush()
    assert len(ids) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", id) for id in ids)


async def test_a_session_has_only_so_many_open(pending):
    opened = [await pending.open("s", ALICE) for _ in range(MOST_OPEN + 1)]
    message = "This session has 16 questions open already: answer or dismiss those first."
    assert opened[MOST_OPEN] == Fault(message)
    assert not isinstance(await pending.open("t", BOB), Fault)
    opened[0].close()
    await pending.flush()
    assert not isinstance(await pending.open("s", ALICE), Fault)


async def test_the_questions_of_other_processes_count_too(two, store):
    for n in range(MOST_OPEN):
        await two[n % 2].open("s", ALICE)
    for process in two:
        assert isinstance(await process.open("s", ALICE), Fault)
        assert len(process) == MOST_OPEN // 2


@pytest.mark.parametrize("how", [lambda p: p.end("s"), lambda p: p.hear(Change(Subject.SESSION, "s"))])
async def test_the_end_of_a_session_ends_its_questions(pending, how):
    own, other = await pending.open("s", ALICE), await pending.open("s2", ALICE)
    waiting = asyncio.create_task(own.wait(30))
    await asyncio.sleep(0)
    how(pending)
    assert await waiting is None
    assert await pending.answer("s2", ALICE, other.id, YES)


async def test_a_wait_that_is_cancelled_closes_the_question(pending):
    question = await pending.open("s", ALICE)
    waiting = asyncio.create_task(question.wait(30))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await pending.flush()
    assert (await pending.answer("s", ALICE, question.id, YES), len(pending)) == (False, 0)


async def test_an_answer_elsewhere_is_taken_when_its_change_is_heard(two, store):
    here, there = two
    question = await here.open("s", ALICE)
    waiting = asyncio.create_task(question.wait(30))
    assert await there.answer("s", ALICE, question.id, YES)
    for process in two:
        process.hear(Change(Subject.QUESTION, question.id))
    assert await waiting == YES
    await here.flush()
    assert store.asked_of == ["ask", "answer", "take"]


async def test_when_changes_may_have_been_missed_every_question_looks_at_its_row(two):
    here, there = two
    answered, open = await here.open("s", ALICE), await here.open("s", ALICE)
    waiting = asyncio.create_task(answered.wait(30))
    await there.answer("s", ALICE, answered.id, YES)
    here.hear(None)
    assert await waiting == YES
    await here.flush()
    assert len(here) == 1
    assert await there.answer("s", ALICE, open.id, NO)


async def test_an_answer_whose_change_comes_too_late_is_taken_at_the_end_of_the_wait(two):
    here, there = two
    question = await here.open("s", ALICE)
    await there.answer("s", ALICE, question.id, YES)
    assert await question.wait(0) == YES


async def test_a_look_under_way_at_the_end_of_the_wait_is_waited_for(store):
    """Its answer has left the store, and would be nobody's."""
    taken, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Elsewhere):
        async def take(self, id):
            body = await super().take(id)
            taken.set()
            await go_on.wait()
            return body

    slow = Slow(store._sessions)
    here, there = Pending(lambda: NOON, slow), Pending(lambda: NOON, slow)
    question = await here.open("s", ALICE)
    await there.answer("s", ALICE, question.id, YES)
    here.hear(Change(Subject.QUESTION, question.id))
    await taken.wait()
    waiting = asyncio.create_task(question.wait(0))
    await asyncio.sleep(0.01)
    go_on.set()
    assert await waiting == YES


async def test_while_the_store_is_away_a_question_is_asked_and_answered_where_it_waits(two, store):
    here, there = two
    store.away = True
    question = await here.open("s", ALICE)
    with pytest.raises(StoreAway):
        await there.answer("s", ALICE, question.id, YES)
    assert await here.answer("s", ALICE, question.id, NO)
    assert (await question.wait(30), len(here)) == (NO, 0)


async def test_once_the_store_is_back_what_was_asked_meanwhile_is_answered_elsewhere_too(two, store):
    """Nothing is kept for what does not wait any more."""
    here, there = two
    store.away = True
    question, closed = await here.open("s", ALICE), await here.open("s", ALICE)
    closed.close()
    store.away = False
    here.hear(None)
    await here.flush()
    assert [await there.answer("s", ALICE, id, YES) for id in (question.id, closed.id)] == [True, False]
    assert await question.wait(0) == YES


async def test_a_person_does_not_wait_for_a_store_that_says_nothing(two, store):
    """The question is asked meanwhile, and anybody may take its answer once its row is there."""
    first, second = two
    store.silent = asyncio.Event()
    question = await first.open("s", ALICE)
    store.silent.set()
    await first.flush()
    assert await second.answer("s", ALICE, question.id, YES)
    assert await question.wait(0.0) == YES


async def test_while_the_store_is_away_the_bound_is_that_of_the_process(two, store):
    store.away = True
    opened = [await two[0].open("s", ALICE) for _ in range(MOST_OPEN + 1)]
    assert [isinstance(one, Fault) for one in opened] == [False] * MOST_OPEN + [True]


async def test_a_store_that_goes_away_loses_no_answer(two, store):
    here, there = two
    question = await here.open("s", ALICE)
    store.away = True
    with pytest.raises(StoreAway):
        await there.answer("s", ALICE, question.id, YES)
    here.hear(Change(Subject.QUESTION, question.id))
    assert await here.answer("s", ALICE, question.id, NO)
    assert (await question.wait(30), len(here)) == (NO, 0)
    await here.flush()
    store.away = False
    assert await store.sweep(NOON + timedelta(seconds=1)) == 1


async def test_rows_go_when_questions_are_answered_or_closed(two, store):
    here, there = two
    for how in ("here", "there", "closed", "late"):
        question = await here.open("s", ALICE)
        if how in {"here", "there"}:
            await {"here": here, "there": there}[how].answer("s", ALICE, question.id, YES)
        if how != "closed":
            await question.wait(0)
        question.close()
    await here.flush()
    assert (len(here), await store.sweep(NOON + timedelta(days=1))) == (0, 0)
