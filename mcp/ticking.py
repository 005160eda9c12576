"""Progress of a call that tells none itself: how long it has been running.

Hosts give a call up after a minute or two unless they hear of it; those that want to hear say so with a token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mcp.exchange import Exchange

#: Seconds between two notes; a call that is through sooner says nothing.
TICK_SECONDS: Final = 2.0


@asynccontextmanager
async def ticking(exchange: Exchange, seconds: float = TICK_SECONDS) -> AsyncIterator[None]:
    """Tell every so many seconds that the call runs, while this is entered."""
    if not exchange.wants_progress():
        yield
        return
    task = asyncio.get_running_loop().create_task(_tick(exchange, seconds))
    try:
        yield
    finally:
        task.cancel()


async def _tick(exchange: Exchange, seconds: float) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(seconds)
        elapsed = time.monotonic() - began
        await exchange.progress(round(elapsed, 1), message=f"running for {elapsed:.0f} s")
