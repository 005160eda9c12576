"""How much one may ask for in a while: what each request counts as, and the answer where that was too much. Pure.

Whoever is over a budget waits, and nobody else does. Cheap requests have a budget of their own, so that a fleet of
agents that connects and lists is not taken for one that runs wild.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp.http import Headers, Refused
from mcp.protocol.errors import HttpRefusal
from mcp.protocol.wire import Batch, Message, Payload, Request, RequestId

#: Methods that make the server work for one caller; all else is answered from what it has, or by one look.
WORK: Final = frozenset(
    {
        "initialize",
        "tools/call",
        "resources/read",
        "resources/subscribe",
        "prompts/get",
        "completion/complete",
        "subscriptions/listen",
    }
)


class Budget(enum.StrEnum):
    """What is counted, each for itself."""

    #: Requests of a principal that work.
    CALLS = "calls"
    #: All others of a principal, and of an address where nobody need say who they are.
    CHEAP = "cheap"
    #: Commands of a principal.
    RUNS = "runs"
    #: Wrong credentials of an address.
    CREDENTIALS = "credentials"


_SETTINGS: Final[Mapping[Budget, str]] = {
    Budget.CALLS: "SUPERPI_RATES__CALLS",
    Budget.CHEAP: "SUPERPI_RATES__CALLS",
    Budget.RUNS: "SUPERPI_RATES__RUNS",
    Budget.CREDENTIALS: "SUPERPI_RATES__CREDENTIALS",
}


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A budget that is used up: `most` in `seconds`, and room again after `wait` whole seconds.

    `is_news` is whether it is the first time in a while, and so worth a record.
    """

    budget: Budget
    most: int
    seconds: int
    wait: int
    is_news: bool

    def refused(self, id: RequestId | None = None) -> Refused:
        """The answer, which says when to come again (RFC 9110, 10.2.3; draft-ietf-httpapi-ratelimit-headers-10)."""
        policy = f'"{self.budget}";q={self.most};w={self.seconds}'
        headers: Headers = (
            (b"retry-after", b"%d" % self.wait),
            (b"ratelimit-policy", policy.encode()),
            (b"ratelimit", f'"{self.budget}";r=0;t={self.wait}'.encode()),
        )
        more = f"Up to {self.most} in {self.seconds} s ({_SETTINGS[self.budget]}). Wait {self.wait} s."
        return Refused(HttpRefusal.TOO_MANY_REQUESTS, id, headers, more)


#: What a cheap request counts as.
CHEAP: Final[Mapping[Budget, int]] = {Budget.CHEAP: 1}
#: What a request counts as that makes the server work.
WORKS: Final[Mapping[Budget, int]] = {Budget.CALLS: 1}
_RUNS: Final[Mapping[Budget, int]] = {Budget.CALLS: 1, Budget.RUNS: 1}


def costs(payload: Payload, runs: frozenset[str]) -> Mapping[Budget, int]:
    """What a payload counts as; `runs` are the tools that start commands."""
    if not isinstance(payload, Batch):
        return _cost(payload.message, runs)
    found: dict[Budget, int] = {}
    for message in payload.messages:
        for budget, cost in _cost(message, runs).items():
            found[budget] = found.get(budget, 0) + cost
    return found


def _cost(message: Message, runs: frozenset[str]) -> Mapping[Budget, int]:
    if not isinstance(message, Request) or message.method not in WORK:
        return CHEAP
    name = message.params.get("name")
    return _RUNS if message.method == "tools/call" and isinstance(name, str) and name in runs else WORKS
