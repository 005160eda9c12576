"""How far a reader of numbered rows has come, when numbers are taken before they are committed. Pure but for a clock.

PostgreSQL gives out numbers in order, but transactions commit in any: whoever remembered only the highest number would
miss the rows that come late. So the numbers left out below it are asked for again, until they can no longer come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

#: Seconds for which a missing number is asked for: longer than any transaction of ours may last.
_LATE: Final = 60.0


class Position:
    """What was read, of rows that are numbered from 1."""

    #: How many numbers below the highest may still be under way at the begin; also the most that are asked for.
    WINDOW: ClassVar[int] = 1000

    def __init__(self, present: Iterable[int], now: Callable[[], float] = time.monotonic) -> None:
        """Begin at the highest of the newest numbers, some of which may be missing."""
        self._now = now
        found = set(present)
        self._last = max(found, default=0)
        self._missing = {
            number: now() + _LATE
            for number in range(max(self._last - self.WINDOW, 0) + 1, self._last)
            if number not in found
        }

    def query(self) -> dict[str, Any]:
        """What to ask for: everything above `last`, and the `missing`."""
        now = self._now()
        self._missing = {number: until for number, until in self._missing.items() if until > now}
        return {"last": self._last, "missing": list(self._missing)}

    def take(self, number: int) -> bool:
        """Count a row as read; False when it was read before."""
        if number > self._last:
            late = self._now() + _LATE
            self._missing.update(dict.fromkeys(range(max(self._last + 1, number - self.WINDOW), number), late))
            for oldest in list(self._missing)[: -self.WINDOW]:
                del self._missing[oldest]
            self._last = number
            return True
        return self._missing.pop(number, None) is not None
