"""How many commands run at once: so many for the process, so many for one principal. It knows only names."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Waiter:
    principal: str
    admitted: asyncio.Future[None]


class Gate:
    """Admits in the order of arrival; a principal that has its share does not hold up those behind it.

    It belongs to no event loop, but while calls wait they must be on the same one.
    """

    def __init__(self, total: int, each: int) -> None:
        self._total, self._each = total, each
        self._inside: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []

    async def enter(self, principal: str, seconds: float) -> bool:
        """Wait at most so long for a place; `leave` gives it back. False: there was none."""
        waiter = _Waiter(principal, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            async with asyncio.timeout(seconds):
                await waiter.admitted
        except TimeoutError:
            return self._gave_up(waiter)
        except asyncio.CancelledError:
            if self._gave_up(waiter):
                self.leave(principal)
            raise
        return True

    def leave(self, principal: str) -> None:
        """Give a place back."""
        self._inside[principal] -= 1
        self._inside += Counter()
        self._admit()

    def _gave_up(self, waiter: _Waiter) -> bool:
        """Stop waiting; True when the waiter had been admitted in the same moment."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
            return False
        return True

    def _admit(self) -> None:
        for waiter in tuple(self._waiting):
            if self._inside.total() >= self._total:
                return
            if self._inside[waiter.principal] < self._each:
                self._waiting.remove(waiter)
                self._inside[waiter.principal] += 1
                if not waiter.admitted.done():
                    waiter.admitted.set_result(None)
