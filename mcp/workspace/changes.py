"""Running a change in a thread so that cancelling its task means: nothing is written any more.

Knows threads and locks; not what is changed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from mcp.faults import Fault
from mcp.workspace.locks import Busy

Outcome = TypeVar("Outcome")

_FIRST_PAUSE: Final = 0.002
_LONGEST_PAUSE: Final = 0.05
#: What an attempt answers when its gate was shut. Nobody sees it but the thread: its task is cancelled.
CANCELLED: Final = Fault("The call was cancelled. Nothing was changed.")


class Gate:
    """What every write passes through last. Once `shut` returned, no write starts."""

    __slots__ = ("_lock", "_shut")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shut = False

    @property
    def is_shut(self) -> bool:
        """Whether there is still a point in working on."""
        return self._shut

    def shut(self) -> None:
        """Let nothing through from now on; waits for the one rename that may be on its way."""
        with self._lock:
            self._shut = True

    @contextmanager
    def passing(self) -> Iterator[bool]:
        """Hold the gate open for one write; False when it is shut."""
        with self._lock:
            yield not self._shut


async def change(attempt: Callable[[Gate], Outcome | Busy], *, seconds: float) -> Outcome | Fault:
    """Run `attempt` in a thread, again as long as it answers Busy and `seconds` have not passed.

    Waiting for a lock takes no thread. An attempt gives its lock back itself, so that it is held as long as the
    thread works, also when the task is long gone.
    """
    gate = Gate()
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            outcome = await asyncio.to_thread(attempt, gate)
        except asyncio.CancelledError:
            gate.shut()
            raise
        if not isinstance(outcome, Busy):
            return outcome
        if loop.time() >= until:
            return Fault("Another call is changing this file and does not finish. Nothing was changed; try again.")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
