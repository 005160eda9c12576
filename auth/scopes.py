"""Scopes: what a token may be used for. Pure; knows no tool and no route.

`mcp:read`, `mcp:write` and `mcp:full` are the three modes as a cap, and the broadest one counts. `admin` stands
beside them: it opens the administrative interface and no tool.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from auth.permissions import Cap, Layer, Mode


class Scope(enum.StrEnum):
    """One scope, in the words that users write."""

    READ = "mcp:read"
    WRITE = "mcp:write"
    FULL = "mcp:full"
    ADMIN = "admin"


Scopes = frozenset[Scope]

#: The mode that each scope allows; `admin` has none.
MODES: Final = MappingProxyType({Scope.READ: Mode.READ_ONLY, Scope.WRITE: Mode.WORKSPACE_WRITE, Scope.FULL: Mode.FULL})
_BY_NAME: Final = {scope.value: scope for scope in Scope}


@dataclass(frozen=True, slots=True)
class NotScopes:
    """Scopes that cannot be read; `why` is a sentence for whoever wrote them."""

    why: str


def parse(names: Iterable[str]) -> Scopes | NotScopes:
    """The scopes of these names; each may hold several, separated by blanks. At least one is needed."""
    words = [word for name in names for word in name.split()]
    known = ", ".join(_BY_NAME)
    if unknown := sorted({word for word in words if word not in _BY_NAME}):
        return NotScopes(f"There is no scope {', '.join(map(repr, unknown))}; there are {known}.")
    if not words:
        return NotScopes(f"At least one scope is needed; there are {known}.")
    return frozenset(_BY_NAME[word] for word in words)


def text(scopes: Scopes) -> str:
    """The scopes as they are stored and shown: sorted, separated by blanks."""
    return " ".join(sorted(scopes))


def stored(names: str) -> Scopes:
    """What `text` wrote. A name that only a newer version knows is left out, so it allows nothing here."""
    return frozenset(_BY_NAME[word] for word in names.split() if word in _BY_NAME)


@lru_cache(maxsize=64)
def mode(scopes: Scopes) -> Mode | None:
    """The highest mode that the scopes allow; None when they allow no tool."""
    return max((MODES[scope] for scope in scopes if scope in MODES), default=None)


@lru_cache(maxsize=64)
def cap(scopes: Scopes) -> Cap | None:
    """The same as a cap of a policy; None when no call may be made at all."""
    highest = mode(scopes)
    return None if highest is None else Cap(Layer.SCOPE, highest)
