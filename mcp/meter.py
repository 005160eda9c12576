"""Counting what callers ask for: sliding windows of the library `limits`, in the memory of one process."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Final

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from mcp.limits import Rates
from mcp.rates import Budget, Exceeded

#: How many cheap requests are as many as one that works.
CHEAPER: Final = 10
#: Seconds between two looks at a credential from an address that is over its budget.
_TRICKLE: Final = 1


class Meter:
    """The budgets of one process. A bound of 0 is none."""

    def __init__(self, rates: Rates) -> None:
        self._windows = MovingWindowRateLimiter(MemoryStorage())
        self._rates = rates
        self._seconds = rates.seconds
        self._once = RateLimitItemPerSecond(1, rates.seconds, "told")
        self._trickle = RateLimitItemPerSecond(1, _TRICKLE, "trickle")
        self._replicas = 0
        self._bounds: dict[Budget, RateLimitItemPerSecond] = {}
        self.share(1)

    def share(self, replicas: int) -> None:
        """Take the part of each bound that is this process's, of so many that a balancer sends requests to."""
        if replicas == self._replicas:
            return
        self._replicas, rates = replicas, self._rates
        most = {
            Budget.CALLS: rates.calls,
            Budget.CHEAP: rates.calls * CHEAPER,
            Budget.RUNS: rates.runs,
            Budget.CREDENTIALS: rates.credentials,
        }
        self._bounds = {
            budget: RateLimitItemPerSecond(math.ceil(bound / replicas), self._seconds, budget)
            for budget, bound in most.items()
            if bound
        }

    def take(self, who: str, costs: Mapping[Budget, int]) -> Exceeded | None:
        """Count requests of somebody; the budget that has no room for them, if so, and then they do not count."""
        for budget, cost in costs.items():
            bound = self._bounds.get(budget)
            # A batch that is larger than the whole budget takes all of it: it could never be sent otherwise.
            if bound is not None and not self._windows.hit(bound, who, cost=min(cost, bound.amount)):
                return self._exceeded(budget, bound, who)
        return None

    def guessed(self, address: str) -> None:
        """Count a wrong credential."""
        self.take(address, {Budget.CREDENTIALS: 1})

    def guesses_on(self, address: str) -> Exceeded | None:
        """Whether an address has guessed so often that its next credential is not looked at.

        One a second still is: behind the same address there may be somebody whose token is good.
        """
        bound = self._bounds.get(Budget.CREDENTIALS)
        if bound is None or self._windows.test(bound, address) or self._windows.hit(self._trickle, address):
            return None
        return self._exceeded(Budget.CREDENTIALS, bound, address)

    def _exceeded(self, budget: Budget, bound: RateLimitItemPerSecond, who: str) -> Exceeded:
        room = self._windows.get_window_stats(bound, who).reset_time - time.time()
        wait = min(self._seconds, max(0, int(room)) + 1)
        return Exceeded(budget, bound.amount, self._seconds, wait, self._windows.hit(self._once, budget, who))
