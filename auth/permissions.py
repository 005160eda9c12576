"""The permission decision: modes, caps, tool sets and rules in, `Allow` or `Deny` out. Pure.

A call's mode is the minimum of every cap on it (harness, remote, ...); no layer can raise it. The harness's
tool set is a second, independent limit. Rules come on top: any deny wins, and once a rule allows something of
a tool, the rest of what that tool could do is denied. It knows no file system: paths come in resolved.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from auth import commands, globs


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

#: A rule on the key's tool also denies in the named tools: grep and edit show what is in a file, so what may
#: not be read may not be searched or edited either.
_DENIES_ALSO: Final = {"read": ("grep", "edit"), "write": ("edit",)}
#: A rule on the key's tool also allows in the named tools.
_ALLOWS_ALSO: Final = {"read": ("grep",), "write": ("edit",)}
#: The tool name of a rule on every tool.
ANY_TOOL: Final = "*"
#: What no pattern can be held against: a substitution, `eval`, `bash -c`, text that does not parse.
_OPAQUE: Final = "a part of the command that only the shell can tell (a substitution, eval, bash -c or the like)"
#: No program is named by it, and it changes files.
_REDIRECTION: Final = "a redirection to a file"
_EVERYTHING: Final = frozenset({"*", "**"})
_NAMES_OF_NEED: Final = {
    Need.READ: frozenset({"read", "grep", ANY_TOOL}),
    Need.WRITE: frozenset({"write", "edit", ANY_TOOL}),
    Need.EXECUTE: frozenset[str](),
}


def _all_but(stem: str, ending: str) -> tuple[str, ...]:
    """Globs for every name that begins with `stem` but the one that goes on with just `ending`."""
    cuts = range(len(ending))
    shorter = [stem + ending[:cut] for cut in cuts]
    astray = [f"{stem}{ending[:cut]}[!{ending[cut]}]*" for cut in cuts]
    return tuple(f"**/{name}" for name in [*shorter, *astray, f"{stem}{ending}?*"])


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    tools: frozenset[str]
    globs: tuple[str, ...]
    reason: str


#: What no rule can allow. `git~1` is how Windows file systems also spell `.git` (git's core.protectNTFS).
_BUILT_IN: Final = {
    Need.READ: _BuiltIn(
        frozenset({"read", "grep", "edit"}),
        _all_but(".env", ".example"),
        ".env files hold secrets and their content is never shown; .env.example may be read",
    ),
    Need.WRITE: _BuiltIn(
        frozenset({"write", "edit"}),
        ("**/.git/**", "**/git~1/**", ".superpi/**"),
        "nothing below .git/ and .superpi/ is ever written by a file tool",
    ),
}


def bound_tools(rule: Rule) -> tuple[str, ...]:
    """The tools that the rule is about, the one it names first; `ANY_TOOL` alone for every tool."""
    also = _DENIES_ALSO if rule.effect is Effect.DENY else _ALLOWS_ALSO
    return (rule.tool, *also.get(rule.tool, ()))


def decide_tool(policy: Policy, tool: str, need: Need) -> Decision:
    """Whether the connection may use the tool at all, whatever the path or the command."""
    if tool not in policy.tools:
        has = ", ".join(sorted(policy.tools)) or "no tools"
        return _deny(policy, f"the harness {policy.harness} does not have this tool; it has {has}", Layer.TOOL_SET)
    if need is Need.WRITE and policy.mode is Mode.READ_ONLY:
        return _deny(policy, "it changes files, and the mode read_only only reads", _lowest(policy).layer)
    for rule in _rules_on(policy, tool, Effect.DENY):
        if rule.match in _EVERYTHING:
            return _deny(policy, "a rule denies this tool", rule.layer)
    return Allow()


def decide_path(policy: Policy, tool: str, need: Need, path: str) -> Decision:
    """Whether the tool may touch that path.

    `path` is the real path of what will be opened: POSIX and relative to the workspace (`.` is the root), or
    absolute for an extra root.
    """
    if isinstance(refused := decide_tool(policy, tool, need), Deny):
        return refused
    if need is Need.WRITE and path.startswith("/") and policy.mode is not Mode.FULL:
        reason = f"the mode {policy.mode.label} changes files only in the workspace"
        return _deny(policy, reason, _lowest(policy).layer)
    for built_in in _BUILT_IN.values():
        if tool in built_in.tools and globs.covers_any(built_in.globs, path):
            return _deny(policy, built_in.reason, Layer.BUILT_IN)
    named = any(globs.names(rule.match, path) for rule in _rules_on(policy, tool, Effect.ALLOW))
    return _by_rules(policy, tool, lambda rule: globs.covers(rule.match, path), None if named else "this path")


def decide_command(policy: Policy, tool: str, command: str) -> Decision:
    """Whether the shell may run the command: every command in it is held against the rules.

    Guidance, not a boundary (the sandbox is): a program that was allowed can start any other.
    """
    if isinstance(refused := decide_tool(policy, tool, Need.EXECUTE), Deny):
        return refused
    if not (_rules_on(policy, tool, Effect.DENY) or _rules_on(policy, tool, Effect.ALLOW)):
        return Allow()
    found = commands.survey(command)
    allowing = [rule.match for rule in _rules_on(policy, tool, Effect.ALLOW)]
    if found.blind:
        return _deny(policy, "the command is too long or too deeply nested to be held against the rules", Layer.RULE)
    unnamed = _OPAQUE if found.opaque else commands.unnamed(allowing, found)
    if unnamed is None and found.writes:
        unnamed = _REDIRECTION
    return _by_rules(policy, tool, lambda rule: commands.denies(rule.match, found), unnamed)


def denied_globs(policy: Policy, need: Need) -> tuple[str, ...]:
    """What may not be read or written as globs, built-in rules included, for a sandbox to mask.

    The globs are relative to the workspace root (absolute for extra roots), without braces or negation; `**/`
    stands for any depth. A folder that matches is denied with all that is in it, and case does not matter.
    """
    built_in = _BUILT_IN[need].globs if need in _BUILT_IN else ()
    rules = [rule for rule in policy.rules if rule.effect is Effect.DENY and rule.tool in _NAMES_OF_NEED[need]]
    named = [glob for rule in rules for glob in globs.rooted(rule.match) or ("**",)]
    return tuple(dict.fromkeys([*built_in, *sorted(named)]))


def _by_rules(policy: Policy, tool: str, denies: Callable[[Rule], bool], unnamed: str | None) -> Decision:
    """Decide by the rules on the tool; `unnamed` is what no allowing rule names, None when all is named."""
    for rule in _rules_on(policy, tool, Effect.DENY):
        if denies(rule):
            return _deny(policy, f"a rule denies {rule.match}", rule.layer)
    allowing = _rules_on(policy, tool, Effect.ALLOW)
    if not allowing or unnamed is None:
        return Allow()
    listed = ", ".join(dict.fromkeys(rule.match for rule in allowing))
    return _deny(policy, f"no rule allows {unnamed}; allowed is {listed}", allowing[0].layer)


def _rules_on(policy: Policy, tool: str, effect: Effect) -> tuple[Rule, ...]:
    """The rules with that effect that bind the tool, in an order that does not depend on theirs."""
    if not policy.rules:
        return ()
    found = [
        rule for rule in policy.rules if rule.effect is effect and {tool, ANY_TOOL}.intersection(bound_tools(rule))
    ]
    return tuple(sorted(found, key=lambda rule: (rule.match, rule.tool, rule.layer)))


def _lowest(policy: Policy) -> Cap:
    """The cap that sets the mode; of equal ones the first layer in the order of `Layer`."""
    return min(policy.caps, key=lambda cap: (cap.mode, list(Layer).index(cap.layer)))


def _deny(policy: Policy, reason: str, layer: Layer) -> Deny:
    return Deny(reason=reason, layer=layer, mode=policy.mode)
