"""Calls in flight: cancelled by id only when that can mean one call."""

import asyncio

import pytest

from mcp.flight import Flight


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
