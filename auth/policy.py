"""The values of the permission decision: what a policy is, and what comes of asking it. Pure, and decides nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Final

#: The tool name of a rule on every tool.
ANY_TOOL: Final = "*"
#: The subject of a tool used on nothing in particular; neither a path nor a command is empty.
WHOLE: Final = ""


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
    SCOPE = "scope"
    TOOL_SET = "harness tool set"
    RULE = "rule"
    BUILT_IN = "built-in rule"


class Effect(enum.StrEnum):
    """What a rule says about what it matches."""

    ALLOW = "allow"
    ASK = "ask"
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
    """Everything that decides about the calls of one connection. `caps` is never empty.

    `granted` is what a person said yes to: a tool and the subject of the `Ask`.
    """

    harness: str
    tools: frozenset[str]
    caps: tuple[Cap, ...]
    rules: tuple[Rule, ...] = ()
    granted: frozenset[tuple[str, str]] = frozenset()

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


@dataclass(frozen=True, slots=True)
class Ask:
    """The call may go on when a person says yes: why it is asked, by which layer, and the mode it would run in.

    `subject` is all that a yes covers: the path that was judged, the whole text of the command, or `WHOLE`. `rules`
    are all that ask; a yes answers them and no others. They are no part of what a person is asked.
    """

    reason: str
    layer: Layer
    mode: Mode
    subject: str
    rules: tuple[Rule, ...] = field(default=(), compare=False)


Decision = Allow | Ask | Deny
#: What keeps a call from going on as it is.
Refusal = Ask | Deny


def granted_policy(policy: Policy, tool: str, subject: str) -> Policy:
    """The policy after a yes to exactly this subject of the tool."""
    return replace(policy, granted=policy.granted | {(tool, subject)})
