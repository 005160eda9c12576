"""The life of one process: whether it drains, what runs in the background, and the order of the way out."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from gateway.store.faults import StoreUnavailable
from mcp.flight import Flight
from mcp.live import Sessions

_log: Final = logging.getLogger("superpi.lifecycle")

_TIDY_SECONDS: Final = 60.0
_KILL_SECONDS: Final = 3.0


@dataclass(slots=True)
class Lifecycle:
    """What a process does besides answering: keeping sessions tidy, and ending without losing calls."""

    sessions: Sessions
    flight: Flight
    draining: bool = False

    def is_draining(self) -> bool:
        """Whether new calls are refused, so that clients go elsewhere."""
        return self.draining

    async def keep_tidy(self) -> None:
        """Tidy the sessions about once a minute, for as long as the process lives."""
        while True:
            await asyncio.sleep(_TIDY_SECONDS)
            try:
                await self.sessions.tidy()
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
        """Write what is owed to the store."""
        self.flight.cancel_all()
        await self.flight.landed(_KILL_SECONDS)
        try:
            await self.sessions.flush()
        except StoreUnavailable as error:
            _log.warning("the last use of sessions could not be written: %s", error)
