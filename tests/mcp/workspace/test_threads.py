"""Work in threads: what comes back, what a cancellation does, and how many threads there are."""

import asyncio
import threading

import pytest

from mcp.workspace.threads import Threads


async def test_what_the_work_returns_comes_back():
    caller = threading.current_thread()
    assert await Threads(1).run(lambda: threading.current_thread() is not caller) is True


@pytest.mark.parametrize(
    "error", [OSError(5, "x"), KeyError("k"), SystemExit(3)], ids=lambda error: type(error).__name__
)
async def test_what_the_work_raises_comes_back_and_the_thread_lives_on(error):
    threads = Threads(1)

    def work():
        raise error

    with pytest.raises(type(error)) as caught:
        await threads.run(work)
    assert caught.value is error
    assert await threads.run(lambda: 7) == 7


async def test_jobs_run_at_once_up_to_the_bound_and_all_are_done():
    threads, meeting = Threads(3), threading.Barrier(3, timeout=20)
    ran_in = await asyncio.gather(*(threads.run(lambda: (meeting.wait(), threading.get_ident())[1]) for _ in range(9)))
    assert (len(ran_in), len(set(ran_in))) == (9, 3)


async def test_one_job_after_the_other_takes_one_thread():
    """Whoever hears that a job is done may come with the next one at once; no second thread is started for that."""
    threads = Threads(8)
    ran_in = {await threads.run(threading.get_ident) for _ in range(500)}
    assert len(ran_in) == 1


async def test_cancelled_work_that_has_not_begun_never_does():
    threads, gate, ran = Threads(1), threading.Event(), []
    first = threads.run(lambda: gate.wait(20))
    second = threads.run(lambda: ran.append("second"))
    second.cancel()
    gate.set()
    assert await first is True
    await threads.run(lambda: ran.append("third"))
    assert ran == ["third"]


async def test_cancelled_work_that_has_begun_goes_on_and_nobody_hears_of_it():
    threads, begun, gate, ran = Threads(1), threading.Event(), threading.Event(), []

    def work():
        begun.set()
        gate.wait(20)
        ran.append("work")

    future = threads.run(work)
    assert begun.wait(20)
    future.cancel()
    gate.set()
    await threads.run(lambda: None)
    assert (ran, future.cancelled()) == (["work"], True)


def test_a_loop_that_ended_meanwhile_harms_no_thread():
    threads, begun, gate = Threads(1), threading.Event(), threading.Event()

    async def leave():
        threads.run(lambda: (begun.set(), gate.wait(20)))
        assert begun.wait(20)

    asyncio.run(leave())
    gate.set()

    async def again():
        return await threads.run(lambda: 7)

    assert asyncio.run(again()) == 7
