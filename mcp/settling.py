"""Driving one Step to its end: every wanted effect runs as a task of its own, and each outcome goes back in.

What the effects say to their client meanwhile is handed out in order, for whoever sends it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mcp.flight import Flight
from mcp.pending import Credential
from mcp.protocol.effects import Cancelled, Effect, Outcome, Value
from mcp.protocol.engine import Engine, Step

Perform = Callable[[Effect], Coroutine[Any, Any, Value]]

#: Messages that may wait for a client that reads slowly; what comes beyond is lost, as notes may be.
MOST_UNSENT: Final = 1000
_WOKEN, _TOO_LATE = True, False


class Settling:
    """The effects of one step under way. They start with `start` and run on whoever waits, or nobody."""

    def __init__(
        self, engine: Engine, step: Step, flight: Flight, connection: str, credential: Credential | None = None
    ) -> None:
        self._engine = engine
        self._step = step
        self._flight = flight
        self._connection = connection
        self._credential = credential
        self._tasks: dict[asyncio.Task[Value], Effect] = {}
        self._running = 0
        self._unsent: deque[bytes] = deque()
        self._waiter: asyncio.Future[bool] | None = None

    def start(self, perform: Perform) -> None:
        """Begin every effect."""
        for effect in self._step.effects:
            task = self._flight.start(self._connection, effect.request_id, perform(effect), self._credential)
            self._tasks[task] = effect
            self._running += 1
            task.add_done_callback(self._landed)

    def say(self, message: bytes) -> None:
        """Have a message sent before the reply."""
        if len(self._unsent) < MOST_UNSENT:
            self._unsent.append(message)
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        if self._waiter is not None:
            _resolve(self._waiter, _WOKEN)

    def settled(self) -> bool:
        """Whether every effect is through."""
        return self._running == 0

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until all is through, there is something to send, or somebody woke this; False when time was up."""
        if self._running == 0 or self._unsent:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = None if seconds is None else loop.call_later(seconds, _resolve, waiter, _TOO_LATE)
        try:
            return await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def take(self) -> list[bytes]:
        """What is to be sent now."""
        taken = list(self._unsent)
        self._unsent.clear()
        return taken

    def cancel(self) -> None:
        """Stop the effects that still run."""
        for task in self._tasks:
            task.cancel()

    def finish(self, *, owed: bool) -> Step:
        """The step with every outcome in it, once it is settled.

        `owed` is whether a cancelled request still gets an answer: HTTP has to end its exchange, stdio has not.
        """
        step = self._step
        for task, effect in self._tasks.items():
            value = Cancelled(owed) if task.cancelled() else task.result()
            step = self._engine.resume(step, Outcome(effect.slot, value))
        return step

    def _landed(self, _task: asyncio.Task[Value]) -> None:
        self._running -= 1
        if self._running == 0:
            self.wake()


def _resolve(waiter: asyncio.Future[bool], value: bool) -> None:  # noqa: FBT001 - a callback takes it by place
    if not waiter.done():
        waiter.set_result(value)
