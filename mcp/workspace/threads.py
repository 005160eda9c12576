"""Work that blocks, in threads. Knows nothing of the work.

Like `asyncio.to_thread` at a third of its price, which is most of what a small read costs: nothing is wrapped twice,
and no context is copied. The threads are apart from the loop's own, so that no long work elsewhere holds up a read.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

_Job = tuple[Callable[[], Any], asyncio.Future[Any]]


class Threads:
    """At most `most` threads, started when the others are busy, that end with the process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What `work` returns or raises. Cancelling the future keeps work from starting, and does not end it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._unfinished += 1
            if is_short := self._started < min(self._unfinished, self._most):
                self._started += 1
        if is_short:
            threading.Thread(target=self._work, name="superpi-files", daemon=True).start()
        self._jobs.put((work, future))
        return future

    def _work(self) -> None:
        while True:
            work, future = self._jobs.get()
            outcome = None if future.cancelled() else _done(work)
            # Before it is told: whoever hears of it may come with the next job at once, and no thread is short for it.
            with self._lock:
                self._unfinished -= 1
            if outcome is not None:
                # The loop may be closed by now.
                with suppress(RuntimeError):
                    future.get_loop().call_soon_threadsafe(_settle, future, *outcome)
            # What is held would live until the next job.
            del work, future, outcome


def _done(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
        return None, error


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


_FILES: Final = Threads(min(32, (os.cpu_count() or 1) + 4))


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Have a thread for file work do it; see `Threads.run`."""
    return _FILES.run(work)
