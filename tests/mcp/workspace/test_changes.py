"""Changes in threads: a cancelled one writes nothing any more, a busy one waits without taking a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mcp.faults import Fault
from mcp.workspace.changes import Gate, change
from mcp.workspace.locks import Busy


async def test_the_outcome_of_the_attempt_is_the_outcome() -> None:
    assert await change(lambda gate: "done", seconds=1) == "done"


async def test_a_busy_attempt_is_made_again_until_it_succeeds() -> None:
    answers = iter([Busy(), Busy(), "done"])
    assert await change(lambda gate: next(answers), seconds=60) == "done"


async def test_a_busy_attempt_gives_up_in_words_when_its_time_is_over() -> None:
    outcome = await change(lambda gate: Busy(), seconds=0)
    assert isinstance(outcome, Fault)
    assert "Nothing was changed" in outcome.message


async def test_after_cancellation_the_thread_that_works_on_writes_nothing() -> None:
    working, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    written: list[str] = []

    def attempt(gate: Gate) -> str:
        working.set()
        go_on.wait()
        with gate.passing() as is_open:
            if is_open:
                written.append("late")
        ended.set()
        return "done"

    task = asyncio.create_task(change(attempt, seconds=60))
    await asyncio.to_thread(working.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.to_thread(ended.wait)
    assert written == []


async def test_shutting_a_gate_waits_for_the_write_that_is_on_its_way() -> None:
    gate = Gate()
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with gate.passing() as is_open:
            assert is_open
            inside.set()
            go_on.wait()
            order.append("written")

    def shut() -> None:
        gate.shut()
        order.append("shut")

    writer = threading.Thread(target=write)
    writer.start()
    inside.wait()
    shutter = threading.Thread(target=shut)
    shutter.start()
    go_on.set()
    writer.join()
    shutter.join()
    assert order == ["written", "shut"]
    assert gate.is_shut
