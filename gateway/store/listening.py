"""PostgreSQL's LISTEN: says when it is time to read the changes. Knows nothing of what they are.

A connection of its own, made anew for ever when it is lost. It must be a direct one: poolers that share connections
between transactions do not pass notifications on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gateway.store import postgresql
from gateway.store.engine import name_of, parse, product_of

_log: Final = logging.getLogger("superpi.store")

CHANNEL: Final = "superpi_change"
#: What the connections that listen call themselves: as many as there are processes.
NAME: Final = "superpi-listen"

#: Seconds until a lost connection is made again: the first time, and at most.
_SOON: Final = 0.25
_LATE: Final = 5.0


class Listener:
    """Calls `heard` for every notification, and once whenever it has begun to listen."""

    def __init__(self, dsn: str, name: str, heard: Callable[[], None]) -> None:
        self._dsn = dsn
        self._name = name
        self._heard = heard
        self._pause = _SOON

    @classmethod
    def of(cls, url: str, heard: Callable[[], None], *, seconds: float) -> Listener | None:
        """The listener of the database at that URL; None for a product that notifies nobody."""
        parsed = parse(url)
        if product_of(parsed) is not postgresql:
            return None
        return cls(postgresql.dsn(parsed, seconds), name_of(parsed), heard)

    async def run(self) -> None:
        """Listen until cancelled."""
        import psycopg

        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                _log.info("the listener at %s is lost: %s", self._name, type(error).__name__)
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, _LATE)

    async def _listen(self) -> None:
        import psycopg

        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True, application_name=NAME)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._pause = _SOON
            self._heard()
            async for _ in connection.notifies():
                self._heard()
