"""The life of one process: whether it drains, what runs in the background, and the order of the way out."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from auth.authenticator import Authenticator
from gateway.store.changes import StoreChanges
from gateway.store.faults import StoreUnavailable
from mcp.flight import Flight
from mcp.live import Sessions
from telemetry.audit import AuditTrail
from telemetry.tracing import Tracing

_log: Final = logging.getLogger("superpi.lifecycle")

_TIDY_SECONDS: Final = 60.0
_KILL_SECONDS: Final = 3.0


@dataclass(slots=True)
class Lifecycle:
    """What a process does besides answering: hearing of changes, writing behind, and ending without losing calls."""

    sessions: Sessions
    flight: Flight
    authenticator: Authenticator
    changes: StoreChanges
    trail: AuditTrail
    tracing: Tracing
    draining: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Begin to hear, to write behind and to tidy."""
        self.changes.listen(self.sessions.hear)
        await self.changes.start()
        loop = asyncio.get_running_loop()
        self._tasks += [loop.create_task(self.trail.run()), loop.create_task(self._keep_tidy())]

    def is_draining(self) -> bool:
        """Whether new calls are refused, so that clients go elsewhere."""
        return self.draining

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            try:
                await self.sessions.tidy()
                await self.authenticator.tidy()
            except StoreUnavailable as error:
                _log.warning("sessions could not be tidied: %s", error)

    async def drain(self, *, delay: float, deadline: float) -> None:
        """Refuse new calls, wait for the running ones, cancel what is left; times in seconds."""
        self.draining = True
        await asyncio.sleep(delay)
        if not await self.flight.landed(deadline):
            _log.warning("cancelling %d calls that still run", len(self.flight))
            self.flight.cancel_all()
            await self.flight.landed(_KILL_SECONDS)

    async def close(self) -> None:
        """End what runs, then write what is owed to the store."""
        self.flight.cancel_all()
        await self.flight.landed(_KILL_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self.sessions.flush()
        except StoreUnavailable as error:
            _log.warning("the last use of sessions could not be written: %s", error)
        await self.authenticator.tidy(everything=True)
        await self.trail.close()
        await self.changes.stop()
        await self.tracing.close()
