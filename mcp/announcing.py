"""Telling a handshake session of changes on whatever stream it has open: its GET is refused, so there is no other.

A change is told on one stream (HL-12); on which one is the hub's to choose. A session without an open stream hears of a
change when it asks again: nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from auth.caller import Caller
from auth.ports import StoreAway
from mcp.protocol import telling
from mcp.protocol.notes import Filter
from mcp.subscriptions import Subscriptions

_log: Final = logging.getLogger("superpi.announcing")

Say = Callable[[bytes], None]
#: What a session hears of without asking, as its capabilities said.
_UNASKED: Final = Filter(tools=True, prompts=True, resources=True)


@dataclass(frozen=True, slots=True)
class Announcer:
    """Hands on what the hub hears."""

    subscriptions: Subscriptions

    @contextmanager
    def during(self, caller: Caller, session: str, say: Say) -> Iterator[None]:
        """Tell a stream of that session for as long as this is entered."""
        task = asyncio.get_running_loop().create_task(self.announce(caller, session, say))
        try:
            yield
        finally:
            task.cancel()

    async def announce(self, caller: Caller, session: str, say: Say) -> None:
        """Tell of changes until the session or the process ends, or this is cancelled."""
        try:
            with await self.subscriptions.listen(caller, session, _UNASKED, until=caller.until) as listening:
                async for changed in listening:
                    say(telling.announcement(changed))
        except StoreAway as error:
            _log.info("a stream tells of no changes: %s", error)
