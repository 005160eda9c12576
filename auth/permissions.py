"""The permission decision: modes, caps, tool sets and rules in, `Allow` or `Deny` out. Pure.

A call's mode is the minimum of every cap on it (harness, remote, ...); no layer can raise it. The harness's
tool set is a second, independent limit. Rules come on top, and any deny wins.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Mode(enum.IntEnum):
    """How much of the world a call may touch, in rising order."""

    READ_ONLY = 0
    WORKSPACE_WRITE = 1
    FULL = 2

    @property
    def label(self) -> str:
        """The name users write: `read_only`, `workspace_write`, `full`."""
        return self.name.lower()


class Need(enum.StrEnum):
    """What a tool does to the world; the permission table has one row for each."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Layer(enum.StrEnum):
    """Which part of the policy decided."""

    HARNESS = "harness"
    REMOTE = "remote cap"
    TOOL_SET = "harness tool set"
    RULE = "rule"
    BUILT_IN = "built-in rule"


class Effect(enum.StrEnum):
    """What a rule says about what it matches."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Cap:
    """An upper bound on the mode, and the layer that sets it."""

    layer: Layer
    mode: Mode


@dataclass(frozen=True, slots=True)
class Rule:
    """`{tool, match, effect}` of a harness or of the installation."""

    tool: str
    match: str
    effect: Effect
    layer: Layer = Layer.RULE


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides about the calls of one connection. `caps` is never empty."""

    harness: str
    tools: frozenset[str]
    caps: tuple[Cap, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def mode(self) -> Mode:
        """The effective mode: the lowest cap."""
        return min(cap.mode for cap in self.caps)


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may go on."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not go on: why, which layer decided, and the mode it would have run in."""

    reason: str
    layer: Layer
    mode: Mode


Decision = Allow | Deny
