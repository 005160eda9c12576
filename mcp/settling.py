"""Driving one Step to its end: every wanted effect runs as a task of its own, and each outcome goes back in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mcp.flight import Flight
from mcp.protocol.effects import Cancelled, Effect, Outcome, Value
from mcp.protocol.engine import Engine, Step

Perform = Callable[[Effect], Coroutine[Any, Any, Value]]


class Settling:
    """The effects of one step under way. They start at once and run on whoever waits, or nobody."""

    def __init__(self, engine: Engine, step: Step, flight: Flight, connection: str, perform: Perform) -> None:
        self._engine = engine
        self._step = step
        self._tasks = {flight.start(connection, effect.request_id, perform(effect)): effect for effect in step.effects}

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until every effect is done, at most that long; whether they are."""
        _, running = await asyncio.wait(self._tasks, timeout=seconds)
        return not running

    def finish(self, *, owed: bool) -> Step:
        """The step with every outcome in it, once `wait` answered True.

        `owed` is whether a cancelled request still gets an answer: HTTP has to end its exchange, stdio has not.
        """
        step = self._step
        for task, effect in self._tasks.items():
            value = Cancelled(owed) if task.cancelled() else task.result()
            step = self._engine.resume(step, Outcome(effect.slot, value))
        return step
