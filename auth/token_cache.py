"""What an authenticator remembers: tokens that were valid, tokens that were not, and when tokens were used.

Bounded in every direction, so that whoever guesses tokens cannot fill the memory or push out those that work. Knows
no clock: the time comes in.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from auth.caller import Caller

#: Tokens whose validity is remembered; an entry takes about 0.5 KB.
MOST_VALID: Final = 10_000
#: Digests that are remembered as refused.
MOST_REFUSED: Final = 1_000
#: How often the last use of one token is written at most.
USE_INTERVAL: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Known:
    """A token that was valid when the store was asked: its caller, and when it ends by itself."""

    caller: Caller
    until: datetime | None


class ValidTokens:
    """Valid tokens by digest; of too many the one that was not used for the longest time is forgotten."""

    def __init__(self, most: int = MOST_VALID) -> None:
        self._most = most
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        self._digests: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, sha256: bytes, now: datetime) -> Caller | None:
        """The caller, unless the token is unknown or has ended meanwhile."""
        known = self._known.get(sha256)
        if known is None:
            return None
        if known.until is not None and known.until <= now:
            self._drop(sha256)
            return None
        self._known.move_to_end(sha256)
        return known.caller

    def put(self, sha256: bytes, token: str, known: Known) -> None:
        """Remember a token, by its digest and its id."""
        self._known[sha256] = known
        self._digests[token] = sha256
        if len(self._known) > self._most:
            self._drop(next(iter(self._known)))

    def drop_token(self, id: str) -> None:
        """Forget the token with that id."""
        if (sha256 := self._digests.get(id)) is not None:
            self._drop(sha256)

    def drop_principal(self, id: str) -> None:
        """Forget every token of that principal."""
        for sha256 in [sha256 for sha256, known in self._known.items() if known.caller.principal == id]:
            self._drop(sha256)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._digests.clear()

    def _drop(self, sha256: bytes) -> None:
        known = self._known.pop(sha256)
        if known.caller.token is not None:
            self._digests.pop(known.caller.token, None)


class RefusedTokens:
    """Digests that were refused a moment ago, so that repeating one costs no query."""

    def __init__(self, ttl: timedelta, most: int = MOST_REFUSED) -> None:
        self._ttl = ttl
        self._most = most
        self._refused: OrderedDict[bytes, tuple[datetime, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._refused)

    def get(self, sha256: bytes, now: datetime) -> str | None:
        """Why the digest was refused, as long as that counts. A clock that was set back ends it too."""
        found = self._refused.get(sha256)
        if found is None or not timedelta(0) <= now - found[0] < self._ttl:
            return None
        return found[1]

    def put(self, sha256: bytes, now: datetime, reason: str) -> None:
        """Remember a refusal; of too many the oldest is forgotten."""
        self._refused.pop(sha256, None)
        self._refused[sha256] = (now, reason)
        if len(self._refused) > self._most:
            self._refused.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._refused.clear()


class Uses:
    """When tokens were used, until it is written down."""

    def __init__(self) -> None:
        self._used: dict[str, datetime] = {}
        self._written: dict[str, datetime] = {}

    def note(self, token: str, now: datetime) -> None:
        """The token was used."""
        self._used[token] = now

    def due(self, now: datetime, *, everything: bool = False) -> dict[str, datetime]:
        """What is to be written: of each token at most once an interval, unless `everything` is asked for."""
        recent = {token for token, written in self._written.items() if now - written < USE_INTERVAL}
        self._written = {token: self._written[token] for token in recent}
        return {token: used for token, used in self._used.items() if everything or token not in recent}

    def written(self, uses: dict[str, datetime], now: datetime) -> None:
        """These were written; what was noted since stays to be written."""
        for token, used in uses.items():
            self._written[token] = now
            if self._used.get(token) == used:
                del self._used[token]
