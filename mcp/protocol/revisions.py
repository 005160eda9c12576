"""Protocol revisions: which exist, which are spoken, and how one is agreed on.

Two disjoint tables: the handshake revisions are negotiated by `initialize`; a stateless revision is claimed by each
request and never negotiated (requirements LIFE-4, ERA-16). Revisions compare as enum members, in order of publication.
"""

from __future__ import annotations

import enum
from functools import total_ordering
from typing import Final


@total_ordering
class Revision(enum.Enum):
    """A published revision of the protocol; `value` is its name on the wire."""

    R2024_11_05 = "2024-11-05"
    R2025_03_26 = "2025-03-26"
    R2025_06_18 = "2025-06-18"
    R2025_11_25 = "2025-11-25"
    R2026_07_28 = "2026-07-28"

    def __lt__(self, other: object) -> bool:
        """Order by publication; the names on the wire are dates."""
        if not isinstance(other, Revision):
            return NotImplemented
        return bool(self.value < other.value)


#: Revisions that `initialize` can agree on, oldest first.
HANDSHAKE: Final = (
    Revision.R2024_11_05,
    Revision.R2025_03_26,
    Revision.R2025_06_18,
    Revision.R2025_11_25,
)
NEWEST_HANDSHAKE: Final = HANDSHAKE[-1]
#: Revisions that a request claims for itself, oldest first.
STATELESS: Final = (Revision.R2026_07_28,)
EVERY: Final = HANDSHAKE + STATELESS

_BY_NAME: Final = {revision.value: revision for revision in Revision}


def by_name(name: str) -> Revision | None:
    """The revision with that exact name on the wire, or None."""
    return _BY_NAME.get(name)


def supported_versions() -> tuple[str, ...]:
    """Every revision the server speaks, newest first: also those that only `initialize` agrees on (ERA-17)."""
    return tuple(revision.value for revision in reversed(EVERY))


def negotiate(requested: str) -> Revision:
    """The revision to answer `initialize` with: the requested one if spoken, else the newest (LIFE-2, LIFE-3)."""
    revision = _BY_NAME.get(requested)
    return revision if revision in HANDSHAKE else NEWEST_HANDSHAKE
