"""The keys of an issuer as they are kept: fetched seldom, and never by whoever shows a token.

Keys are fetched ahead of need, and once more where a token names one that is not there: at most one fetch in half a
minute, which all who wait share, so that nobody makes this server call another by inventing keys (case C09). While the
issuer is away the last keys go on to count, for a day. Knows no network: what fetches comes in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from auth.jwks import KeySet

_log: Final = logging.getLogger("superpi.issuer")

#: Seconds after which keys are fetched anew though nothing was missing.
REFRESH: Final = 600.0
#: Seconds between the begin of two fetches.
BETWEEN: Final = 30.0
#: Seconds for which keys count that could not be fetched anew.
STALE: Final = 24 * 3600.0

#: Gives the keys that the issuer has now. Raises KeysAway.
Fetch = Callable[[], Awaitable[KeySet]]


class KeysAway(Exception):  # noqa: N818 - a state of the world
    """The issuer's keys cannot be fetched now; the message says why, for the log."""


class Keyring:
    """The keys of one issuer; for use on one event loop. `clock` gives seconds that never go back."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys = KeySet()
        self._fetched: float | None = None
        self._begun: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    @property
    def keys(self) -> KeySet:
        """The keys that count now; none at all where none were ever fetched, or not for a day."""
        if self._fetched is None or self._clock() - self._fetched >= STALE:
            return KeySet()
        return self._keys

    async def newer(self) -> KeySet:
        """The keys after one more fetch, if one is due; as they are, if not. Never raises KeysAway."""
        task = self._due(BETWEEN)
        if task is not None:
            # Shielded: a client that leaves must not end the fetch of all others.
            await asyncio.shield(task)
        return self.keys

    async def keep(self) -> None:
        """Fetch the keys now and then, for as long as the process lives."""
        while True:
            if (task := self._due(REFRESH if self._is_fresh() else BETWEEN)) is not None:
                await asyncio.shield(task)
            await asyncio.sleep(BETWEEN)

    async def close(self) -> None:
        """End a fetch under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _is_fresh(self) -> bool:
        return self._fetched is not None and self._fetched == self._begun

    def _due(self, seconds: float) -> asyncio.Task[None] | None:
        """The fetch under way, or a new one where the last began that many seconds ago."""
        if self._fetching is not None:
            return self._fetching
        if self._begun is not None and self._clock() - self._begun < seconds:
            return None
        self._begun = self._clock()
        self._fetching = asyncio.get_running_loop().create_task(self._take(self._begun))
        return self._fetching

    async def _take(self, begun: float) -> None:
        try:
            self._keys = await self._fetch()
            self._fetched = begun
        except KeysAway as error:
            _log.warning("the issuer's keys could not be fetched: %s", error)
        finally:
            self._fetching = None
