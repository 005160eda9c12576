"""The permission decision: modes, caps, tool sets and rules in, `Allow`, `Ask` or `Deny` out. Pure.

A call's mode is the minimum of every cap on it (harness, remote, ...); no layer can raise it. The harness's
tool set is a second, independent limit. Rules come on top: any deny wins, a rule that asks makes a call wait for a
person's yes, and once a rule allows something of a tool, the rest of what that tool could do is denied. A yes covers
one subject and beats no denial. It knows no file system: paths come in resolved.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
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

    `subject` is all that a yes covers: the path that was judged, the whole text of the command, or `WHOLE`.
    """

    reason: str
    layer: Layer
    mode: Mode
    subject: str


Decision = Allow | Ask | Deny

#: The subject of a tool used on nothing in particular; neither a path nor a command is empty.
WHOLE: Final = ""
#: A rule on the key's tool also denies and asks in the named tools: grep and edit show what is in a file, so what
#: may not be read may not be searched or edited either.
_DENIES_ALSO: Final = {"read": ("grep", "edit"), "write": ("edit",)}
#: A rule on the key's tool also allows in the named tools.
_ALLOWS_ALSO: Final = {"read": ("grep",), "write": ("edit",)}
#: The tool name of a rule on every tool.
ANY_TOOL: Final = "*"
_READ: Final = "read"
_SHELL: Final = "bash"
#: What no pattern can be held against: a substitution, `eval`, `bash -c`, text that does not parse.
_OPAQUE: Final = "a part of the command that only the shell can tell (a substitution, eval, bash -c or the like)"
#: No program is named by it, and it changes files.
_REDIRECTION: Final = "a redirection to a file"
_BLIND: Final = "the command is too long or too deeply nested to be held against the rules"
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
    """The tools that the rule is about, the one it names first; `ANY_TOOL` alone for every tool.

    A command can read anything, so to ask about all reading is to ask about every command.
    """
    also = _ALLOWS_ALSO if rule.effect is Effect.ALLOW else _DENIES_ALSO
    shell = (_SHELL,) if rule.effect is Effect.ASK and rule.tool == _READ and is_general(rule) else ()
    return (rule.tool, *also.get(rule.tool, ()), *shell)


def is_general(rule: Rule) -> bool:
    """Whether the rule is about everything, and not about something that it names."""
    return rule.match in _EVERYTHING or (rule.tool != _SHELL and globs.is_everything(rule.match))


def granted_policy(policy: Policy, tool: str, subject: str) -> Policy:
    """The policy after a yes to exactly this subject of the tool."""
    return replace(policy, granted=policy.granted | {(tool, subject)})


def decide_tool(policy: Policy, tool: str, need: Need) -> Allow | Deny:
    """Whether the connection may use the tool at all, whatever the path or the command. Those are asked about."""
    if tool not in policy.tools:
        has = ", ".join(sorted(policy.tools)) or "no tools"
        return _deny(policy, f"the harness {policy.harness} does not have this tool; it has {has}", Layer.TOOL_SET)
    if need is Need.WRITE and policy.mode is Mode.READ_ONLY:
        return _deny(policy, "it changes files, and the mode read_only only reads", _lowest(policy).layer)
    for rule in _rules_on(policy, tool, Effect.DENY):
        if rule.match in _EVERYTHING:
            return _deny(policy, "a rule denies this tool", rule.layer)
    return Allow()


def decide_whole(policy: Policy, tool: str, need: Need) -> Decision:
    """Whether the tool may be used where there is neither a path nor a command to decide by.

    A rule that asks about everything asks here too, and the subject is `WHOLE`.
    """
    if isinstance(refused := decide_tool(policy, tool, need), Deny):
        return refused
    general = [rule for rule in _rules_on(policy, tool, Effect.ASK) if is_general(rule)]
    if not general or (tool, WHOLE) in policy.granted:
        return Allow()
    return Ask(_ALL_ASKED, general[0].layer, policy.mode, WHOLE)


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
    return _by_rules(_path_call(policy, tool, path))


def decide_found(policy: Policy, tool: str, need: Need, path: str, folder: str) -> Decision:
    """Whether a call on `folder`, which may go on, may show `path` that it found below.

    A yes to the folder covers what is asked about below it by the same rules, and nothing that another rule asks about.
    """
    decision = decide_path(policy, tool, need, path)
    if not isinstance(decision, Ask) or (tool, folder) not in policy.granted or not _is_below(path, folder):
        return decision
    answered = _asking(_path_call(policy, tool, folder))
    return Allow() if set(answered).issuperset(_asking(_path_call(policy, tool, path))) else decision


def decide_command(policy: Policy, tool: str, command: str) -> Decision:
    """Whether the shell may run the command: every command in it is held against the rules.

    Guidance, not a boundary (the sandbox is): a program that was allowed can start any other.
    """
    if isinstance(refused := decide_tool(policy, tool, Need.EXECUTE), Deny):
        return refused
    if not any(_rules_on(policy, tool, effect) for effect in Effect):
        return Allow()
    found = commands.survey(command)
    if found.blind and not _may_ask_blindly(policy, tool):
        return _deny(policy, _BLIND, Layer.RULE)

    def unnamed(by: str, asking: tuple[Rule, ...]) -> str | None:
        if by != tool:
            return _ANYTHING_READ
        if found.opaque or found.blind:
            return _OPAQUE
        allowing = [rule.match for rule in _rules_on(policy, by, Effect.ALLOW)]
        return commands.unnamed(allowing, found, [rule.match for rule in asking]) or (
            _REDIRECTION if found.writes else None
        )

    unclear = _OPAQUE if found.opaque or found.blind else None
    return _by_rules(_Call(policy, tool, command, lambda rule: commands.denies(rule.match, found), unnamed, unclear))


def denied_globs(policy: Policy, need: Need) -> tuple[str, ...]:
    """What may not be read or written as globs, built-in rules included, for a sandbox to mask.

    What a rule names and asks about is among them; a rule that asks about everything is not, and `decide_command`
    asks for it. The globs are relative to the workspace root (absolute for extra roots), without braces or negation;
    `**/` stands for any depth. A folder that matches is denied with all that is in it, and case does not matter.
    """
    built_in = _BUILT_IN[need].globs if need in _BUILT_IN else ()
    rules = [rule for rule in policy.rules if _is_masked(rule) and rule.tool in _NAMES_OF_NEED[need]]
    named = [glob for rule in rules for glob in globs.rooted(rule.match) or ("**",)]
    return tuple(dict.fromkeys([*built_in, *sorted(named)]))


#: What a rule that asks about everything says.
_ALL_ASKED: Final = "a rule asks about everything that no rule allows"
_ANYTHING_READ: Final = "all that a command can read"


@dataclass(frozen=True, slots=True)
class _Call:
    """What the rules on `tool` are held against.

    `matches` is for denials and questions, and generous. `unnamed` is what neither an allow on a tool names exactly
    nor one of the given rules matches, None when that is nothing. `unclear` is what no rule can be held against.
    """

    policy: Policy
    tool: str
    subject: str
    matches: Callable[[Rule], bool]
    unnamed: Callable[[str, tuple[Rule, ...]], str | None]
    unclear: str | None = None


def _path_call(policy: Policy, tool: str, path: str) -> _Call:
    def unnamed(by: str, asking: tuple[Rule, ...]) -> str | None:
        named = any(globs.names(rule.match, path) for rule in _rules_on(policy, by, Effect.ALLOW))
        return None if named or any(globs.covers(rule.match, path) for rule in asking) else "this path"

    return _Call(policy, tool, path, lambda rule: globs.covers(rule.match, path), unnamed)


def _by_rules(call: _Call) -> Decision:
    """Decide by the rules on the tool."""
    policy = call.policy
    for rule in _rules_on(policy, call.tool, Effect.DENY):
        if call.matches(rule):
            return _deny(policy, f"a rule denies {rule.match}", rule.layer)
    asking = _asking(call)
    if (unlisted := _unlisted(call, asking)) is not None:
        return unlisted
    if not asking or (call.tool, call.subject) in policy.granted:
        return Allow()
    return Ask(_why(call, asking[0]), asking[0].layer, policy.mode, call.subject)


def _asking(call: _Call) -> tuple[Rule, ...]:
    """The rules that ask about the call, those about something first. A yes to it is not looked for."""
    rules = _rules_on(call.policy, call.tool, Effect.ASK)
    named = [rule for rule in rules if not is_general(rule) and (call.unclear or call.matches(rule))]
    general = [rule for rule in rules if is_general(rule) and _is_left(call, rule)]
    return (*named, *general)


def _is_left(call: _Call, rule: Rule) -> bool:
    """Whether a rule that asks about everything asks about this: whether no allow names it.

    Where the rule is on reading, only an allow of reading counts: to allow the edit of a file is not to allow that
    it is shown.
    """
    if rule.tool == _READ:
        naming: tuple[str, ...] = (_READ,)
    elif rule.tool == ANY_TOOL and call.tool in _DENIES_ALSO[_READ]:
        naming = (_READ, call.tool)
    else:
        naming = (call.tool,)
    return any(call.unnamed(tool, ()) is not None for tool in naming)


def _unlisted(call: _Call, asking: tuple[Rule, ...]) -> Deny | None:
    """The denial of what no allow names although there are some, and no rule asks about instead."""
    allowing = _rules_on(call.policy, call.tool, Effect.ALLOW)
    instead = tuple(rule for rule in asking if _opens(rule, call.tool))
    if not allowing or any(is_general(rule) for rule in instead):
        return None
    if (unnamed := call.unnamed(call.tool, instead)) is None:
        return None
    listed = ", ".join(dict.fromkeys(rule.match for rule in allowing))
    return _deny(call.policy, f"no rule allows {unnamed}; allowed is {listed}", allowing[0].layer)


def _opens(rule: Rule, tool: str) -> bool:
    """Whether an allow in the rule's place would be about the tool: to ask about reading opens no edit."""
    return bool({tool, ANY_TOOL}.intersection((rule.tool, *_ALLOWS_ALSO.get(rule.tool, ()))))


def _why(call: _Call, rule: Rule) -> str:
    """The reason for a question, as the end of a sentence."""
    if not is_general(rule):
        unclear = "" if call.unclear is None or call.matches(rule) else f", and there is {call.unclear}"
        return f"a rule asks about {rule.match}{unclear}"
    if rule.tool == _READ and call.tool == _SHELL:
        return "a rule asks about all reading, and a command can read anything"
    return _ALL_ASKED


def _may_ask_blindly(policy: Policy, tool: str) -> bool:
    """Whether a command that cannot be held against the rules is one to ask about: when no rule would deny it."""
    asking = _rules_on(policy, tool, Effect.ASK)
    if not asking or _rules_on(policy, tool, Effect.DENY):
        return False
    opened = any(is_general(rule) and _opens(rule, tool) for rule in asking)
    return opened or not _rules_on(policy, tool, Effect.ALLOW)


def _is_masked(rule: Rule) -> bool:
    return rule.effect is Effect.DENY or (rule.effect is Effect.ASK and not is_general(rule))


def _is_below(path: str, folder: str) -> bool:
    return not path.startswith("/") if folder == "." else path.startswith(f"{folder.rstrip('/')}/")


def _rules_on(policy: Policy, tool: str, effect: Effect) -> tuple[Rule, ...]:
    """The rules with that effect that bind the tool, in an order that does not depend on theirs."""
    found = [
        rule for rule in policy.rules if rule.effect is effect and {tool, ANY_TOOL}.intersection(bound_tools(rule))
    ]
    return tuple(sorted(found, key=lambda rule: (rule.match, rule.tool, rule.layer)))


def _lowest(policy: Policy) -> Cap:
    """The cap that sets the mode; of equal ones the first layer in the order of `Layer`."""
    return min(policy.caps, key=lambda cap: (cap.mode, list(Layer).index(cap.layer)))


def _deny(policy: Policy, reason: str, layer: Layer) -> Deny:
    return Deny(reason=reason, layer=layer, mode=policy.mode)
