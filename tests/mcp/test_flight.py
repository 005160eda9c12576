"""Calls in flight: cancelled by id only when that can mean one call."""

import asyncio
from dataclasses import replace

import pytest

import mcp.flight
from auth.caller import Caller, Transport
from auth.changes import Change, Subject
from auth.ports import StoreAway
from mcp.flight import Flight, withdrawal
from mcp.pending import Credential


async def forever():
    await asyncio.Event().wait()


@pytest.mark.requirement("CAN-1")
async def test_the_one_call_with_an_id_is_cancelled():
    """And no other: not of another connection, not with an id of another type."""
    flight = Flight()
    wanted = flight.start("a", 1, forever())
    others = [flight.start("a", "1", forever()), flight.start("a", 2, forever()), flight.start("b", 1, forever())]
    assert flight.cancel("a", 1)
    await asyncio.wait([wanted], timeout=1)
    assert (wanted.cancelled(), [task.done() for task in others]) == (True, [False] * 3)
    flight.cancel_all()
    assert await flight.landed(1)


@pytest.mark.requirement("CAN-3")
async def test_an_id_shared_by_two_calls_cancels_neither():
    """claude.ai pools chats in one session and numbers every request 1."""
    flight = Flight()
    tasks = [flight.start("a", 1, forever()), flight.start("a", 1, forever())]
    assert not flight.cancel("a", 1)
    assert not flight.cancel("a", 9)
    assert not flight.cancel("nobody", 1)
    assert [task.done() for task in tasks] == [False, False]
    flight.cancel_all("a")
    assert await flight.landed(1)
    assert (len(flight), flight.busy("a")) == (0, False)


async def test_waiting_for_calls_ends_at_the_deadline():
    """A call that hangs must not hold up the way out."""
    flight = Flight()
    flight.start("a", 1, forever())
    assert not await flight.landed(0.01)
    flight.cancel_all()
    assert await flight.landed(1)


@pytest.mark.requirement("CAN-3")
async def test_a_finished_call_leaves_nothing_behind():
    """Neither its connection nor its id."""
    flight = Flight()
    assert await flight.start("a", 1, asyncio.sleep(0, "done")) == "done"
    await asyncio.sleep(0)
    assert (len(flight), flight.busy("a"), flight.cancel("a", 1)) == (0, False, False)


@pytest.mark.requirement("CAN-1", "CAN-3")
async def test_a_call_that_was_withdrawn_at_another_process_is_cancelled():
    """The word names the session and the id as the client wrote it; 1 is not "1"."""
    flight = Flight()
    wanted = flight.start("a", "1é", forever())
    others = [flight.start("a", 1, forever()), flight.start("a", "1", forever()), flight.start("b", "1é", forever())]
    flight.hear(withdrawal("a", "1é"))
    flight.hear(withdrawal("nobody", 1))
    flight.hear(None)
    await asyncio.wait([wanted], timeout=1)
    assert (wanted.cancelled(), [task.done() for task in others]) == (True, [False] * 3)
    flight.cancel_all()
    assert await flight.landed(1)


@pytest.mark.requirement("SES-4")
async def test_what_runs_for_a_session_that_another_process_ended_is_cancelled():
    """Of that session alone."""
    flight = Flight()
    theirs, other = flight.start("a", 1, forever()), flight.start("b", 1, forever())
    flight.hear(Change(Subject.SESSION, "a"))
    flight.hear(Change(Subject.TOKEN, "b"))
    await asyncio.wait([theirs], timeout=1)
    assert (theirs.cancelled(), other.done()) == (True, False)
    flight.cancel_all()
    assert await flight.landed(1)


def test_other_processes_are_told_of_no_id_that_is_too_long():
    """A client could have a megabyte written to the database with each word."""
    assert withdrawal("a", "x" * 400) is not None
    assert withdrawal("a", "x" * 600) is None


async def test_the_end_of_the_last_call_of_a_connection_is_told():
    """Not that of an earlier one: the session was in use all the while."""
    told = []
    flight = Flight(told.append)
    gate = asyncio.Event()
    long, short = flight.start("a", 1, gate.wait()), flight.start("a", 2, asyncio.sleep(0))
    await short
    await asyncio.sleep(0)
    assert told == []
    gate.set()
    await long
    await asyncio.sleep(0)
    assert told == ["a"]


TOKEN = Caller("local:alice", Transport.HTTP, "t")


class Judge:
    """Whether a token still lets its caller in; it may not be able to tell."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def __call__(self):
        answer = self.answers.pop(0)
        if answer is StoreAway:
            raise StoreAway("away")
        return answer


@pytest.mark.parametrize(
    ("caller", "change", "answers", "ends"),
    [
        pytest.param(TOKEN, Change(Subject.TOKEN, "t"), [None], True, id="its token was revoked"),
        pytest.param(TOKEN, Change(Subject.PRINCIPAL, "local:alice"), [None], True, id="its principal was disabled"),
        pytest.param(TOKEN, None, [None], True, id="anything may have happened"),
        pytest.param(TOKEN, Change(Subject.TOKEN, "t"), [StoreAway, None], True, id="as soon as that can be told"),
        pytest.param(TOKEN, Change(Subject.TOKEN, "t"), [TOKEN], False, id="it still counts, as after a rotation"),
        pytest.param(TOKEN, Change(Subject.TOKEN, "u"), [], False, id="another token"),
        pytest.param(replace(TOKEN, token=None), Change(Subject.TOKEN, "t"), [], False, id="no token"),
    ],
)
async def test_a_call_ends_with_the_token_that_let_it_in(monkeypatch, caller, change, answers, ends):
    """Case C10: and not while it cannot be told whether it has ended."""
    monkeypatch.setattr(mcp.flight, "_AGAIN", 0.01)
    monkeypatch.setattr(mcp.flight, "_GRACE", 0.01)
    flight, judge = Flight(), Judge(*answers)
    call = flight.start("a", 1, forever(), Credential(caller, judge))
    flight.hear(change)
    await asyncio.wait([call], timeout=0.5 if ends else 0.1)
    assert (call.cancelled(), judge.answers) == (ends, [])
    flight.cancel_all()
    assert await flight.landed(1)
