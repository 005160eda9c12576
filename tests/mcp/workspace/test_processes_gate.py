"""How many commands run at once, in which order, and what one is told that finds no place."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.faults import Fault
from mcp.limits import Limits
from mcp.workspace.sandbox import choose
from mcp.workspace.sandbox_world import World
from mcp.workspace.shell import CommandResult, Shell
from mcp.workspace.shell_gate import Gate
from mcp.workspace.shell_runner import CommandRunner
from tests.support.shells import Bench, workspace


async def waiting(gate: Gate, *principals: str) -> list[asyncio.Task[bool]]:
    """Calls that wait, in this order."""
    tasks = []
    for principal in principals:
        tasks.append(asyncio.create_task(gate.enter(principal, 60)))
        await asyncio.sleep(0)
    return tasks


async def admitted(tasks: list[asyncio.Task[bool]]) -> list[bool]:
    """Which calls are in by now."""
    for _ in range(3):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


async def test_places_are_given_in_the_order_of_arrival():
    gate = Gate(total=2, each=2)
    tasks = await waiting(gate, "a", "b", "c", "d")
    assert await admitted(tasks) == [True, True, False, False]
    gate.leave("a")
    assert await admitted(tasks) == [True, True, True, False]
    gate.leave("c")
    assert await admitted(tasks) == [True, True, True, True]


async def test_a_principal_with_its_share_does_not_hold_up_others():
    gate = Gate(total=3, each=1)
    tasks = await waiting(gate, "a", "a", "b", "c")
    assert await admitted(tasks) == [True, False, True, True]
    gate.leave("b")
    assert await admitted(tasks) == [True, False, True, True]
    gate.leave("a")
    assert await admitted(tasks) == [True, True, True, True]


async def test_who_waits_too_long_is_told_so_and_takes_no_place():
    gate = Gate(total=1, each=1)
    assert await gate.enter("a", 60)
    assert not await gate.enter("b", 0)
    gate.leave("a")
    assert await gate.enter("c", 0.001)


async def test_who_is_cancelled_takes_no_place():
    gate = Gate(total=1, each=1)
    [inside, cancelled, last] = await waiting(gate, "a", "b", "c")
    cancelled.cancel()
    gate.leave("a")
    assert await admitted([inside, cancelled, last]) == [True, True, True]
    assert last.result()
    assert cancelled.cancelled()


async def test_who_is_cancelled_in_the_moment_of_admission_gives_the_place_back():
    gate = Gate(total=1, each=1)
    [_, cancelled, last] = await waiting(gate, "a", "b", "c")
    gate.leave("a")
    cancelled.cancel()
    assert await admitted([cancelled, last]) == [True, True]
    assert last.result()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30), st.integers(1, 4), st.integers(1, 3))
def test_no_more_are_inside_than_allowed_and_nobody_is_forgotten(calls: list[tuple[str, bool]], total: int, each: int):
    async def main() -> None:
        gate = Gate(total, each)
        inside: list[str] = []

        async def one(principal: str, cancel: bool) -> None:
            if cancel:
                asyncio.current_task().cancel()
            assert await gate.enter(principal, 5)
            inside.append(principal)
            assert len(inside) <= total
            assert inside.count(principal) <= each
            try:
                await asyncio.sleep(0)
            finally:
                inside.remove(principal)
                gate.leave(principal)

        results = await asyncio.gather(*(one(*call) for call in calls), return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [cancel for _, cancel in calls]
        assert [await gate.enter(name, 0.01) for name in "x" * min(total, each)] == [True] * min(total, each)

    asyncio.run(main())


@pytest.mark.requirement("TL-15")
async def test_a_command_that_finds_no_place_is_refused_in_words_and_later_ones_run():
    choice = choose(World(), allow_unsandboxed=True, local=False)
    assert choice.sandbox is not None
    runner = CommandRunner(choice.sandbox, Limits(shells=2, shells_per_principal=1), queue_seconds=0.05)
    with workspace() as root:
        bench = Bench(Shell(choice.sandbox.step, choice.why, runner.run), root)
        os.mkfifo(root / "started")
        os.mkfifo(root / "go_on")
        bench.put({})
        first = asyncio.create_task(bench.run("echo >started; cat go_on"))
        await asyncio.to_thread((root / "started").read_text)
        assert await bench.attempt("touch never") == Fault(
            "Too many commands are running already, and this one was not run. Wait until one ends and try again."
        )
        other = await replace(bench).run("echo other", principal="somebody else")
        assert other.output == "other\n"
        await asyncio.to_thread((root / "go_on").write_text, "on\n")
        assert (await first).output == "on\n"
        assert isinstance(await bench.attempt("true"), CommandResult)
        assert not (root / "never").exists()


@pytest.mark.parametrize("total", [1, 8])
def test_a_gate_serves_one_event_loop_after_another(total: int):
    gate = Gate(total, 1)

    async def main() -> list[bool]:
        tasks = await waiting(gate, "a", "b")
        for task, name in zip(tasks, "ab", strict=True):
            await task
            gate.leave(name)
        return [task.result() for task in tasks]

    assert [asyncio.run(main()), asyncio.run(main())] == [[True, True], [True, True]]
