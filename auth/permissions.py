"""The permission decision: modes, caps, tool sets and rules in, `Allow`, `Ask` or `Deny` out. Pure.

A call's mode is the minimum of every cap on it (harness, remote, ...); no layer can raise it. The harness's
tool set is a second, independent limit. Rules come on top: any deny wins, a rule that asks makes a call wait for a
person's yes, and once a rule allows something of a tool, the rest of what that tool could do is denied. A yes covers
one subject and beats no denial. It knows no file system: paths come in resolved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from auth import commands, globs
from auth.policy import (
    ANY_TOOL,
    WHOLE,
    Allow,
    Ask,
    Cap,
    Decision,
    Deny,
    Effect,
    Layer,
    Mode,
    Need,
    Policy,
    Refusal,
    Rule,
    granted_policy,
)
from auth.ruling import (
    ALL_ASKED,
    EVERYTHING,
    Call,
    asking_rules,
    bound_tools,
    by_rules,
    denial,
    is_general,
    may_ask_blindly,
    rules_on,
)

__all__ = [
    "ANY_TOOL",
    "WHOLE",
    "Allow",
    "Ask",
    "Cap",
    "Decision",
    "Deny",
    "Effect",
    "Layer",
    "Mode",
    "Need",
    "Policy",
    "Refusal",
    "Rule",
    "bound_tools",
    "decide_command",
    "decide_exposing",
    "decide_found",
    "decide_path",
    "decide_tool",
    "decide_whole",
    "denied_globs",
    "granted_policy",
    "is_general",
]

#: What no pattern can be held against: a substitution, `eval`, `bash -c`, text that does not parse.
_OPAQUE: Final = "a part of the command that only the shell can tell (a substitution, eval, bash -c or the like)"
#: No program is named by it, and it changes files.
_REDIRECTION: Final = "a redirection to a file"
_BLIND: Final = "the command is too long or too deeply nested to be held against the rules"
_ANYTHING_READ: Final = "all that a command can read"
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


def decide_tool(policy: Policy, tool: str, need: Need) -> Allow | Deny:
    """Whether the connection may use the tool at all, whatever the path or the command. Those are asked about."""
    if tool not in policy.tools:
        has = ", ".join(sorted(policy.tools)) or "no tools"
        return denial(policy, f"the harness {policy.harness} does not have this tool; it has {has}", Layer.TOOL_SET)
    if need is Need.WRITE and policy.mode is Mode.READ_ONLY:
        return denial(policy, "it changes files, and the mode read_only only reads", _lowest(policy).layer)
    for rule in rules_on(policy, tool, Effect.DENY):
        if rule.match in EVERYTHING:
            return denial(policy, "a rule denies this tool", rule.layer)
    return Allow()


def decide_whole(policy: Policy, tool: str, need: Need) -> Decision:
    """Whether the tool may be used where there is neither a path nor a command to decide by.

    A rule that asks about everything asks here too, and the subject is `WHOLE`.
    """
    if isinstance(refused := decide_tool(policy, tool, need), Deny):
        return refused
    general = [rule for rule in rules_on(policy, tool, Effect.ASK) if is_general(rule)]
    if not general or (tool, WHOLE) in policy.granted:
        return Allow()
    return Ask(ALL_ASKED, general[0].layer, policy.mode, WHOLE, tuple(general))


def decide_path(policy: Policy, tool: str, need: Need, path: str) -> Decision:
    """Whether the tool may touch that path.

    `path` is the real path of what will be opened: POSIX and relative to the workspace (`.` is the root), or
    absolute for an extra root.
    """
    if isinstance(refused := decide_tool(policy, tool, need), Deny):
        return refused
    if need is Need.WRITE and path.startswith("/") and policy.mode is not Mode.FULL:
        reason = f"the mode {policy.mode.label} changes files only in the workspace"
        return denial(policy, reason, _lowest(policy).layer)
    for built_in in _BUILT_IN.values():
        if tool in built_in.tools and globs.covers_any(built_in.globs, path):
            return denial(policy, built_in.reason, Layer.BUILT_IN)
    return by_rules(_path_call(policy, tool, path))


def decide_found(policy: Policy, tool: str, need: Need, path: str, folder: str) -> Decision:
    """Whether a call on `folder`, which may go on, may show `path` that it found below.

    A yes to the folder covers what is asked about below it by the same rules, and nothing that another rule asks about.
    """
    decision = decide_path(policy, tool, need, path)
    if not isinstance(decision, Ask) or (tool, folder) not in policy.granted or not _is_below(path, folder):
        return decision
    answered = asking_rules(_path_call(policy, tool, folder))
    return Allow() if set(answered).issuperset(asking_rules(_path_call(policy, tool, path))) else decision


def decide_command(policy: Policy, tool: str, command: str) -> Decision:
    """Whether the shell may run the command: every command in it is held against the rules.

    Guidance, not a boundary (the sandbox is): a program that was allowed can start any other.
    """
    if isinstance(refused := decide_tool(policy, tool, Need.EXECUTE), Deny):
        return refused
    if not any(rules_on(policy, tool, effect) for effect in Effect):
        return Allow()
    found = commands.survey(command)
    if found.blind and not may_ask_blindly(policy, tool):
        return denial(policy, _BLIND, Layer.RULE)

    def unnamed(by: str, asking: tuple[Rule, ...]) -> str | None:
        if by != tool:
            return _ANYTHING_READ
        if found.opaque or found.blind:
            return _OPAQUE
        allowing = [rule.match for rule in rules_on(policy, by, Effect.ALLOW)]
        return commands.unnamed(allowing, found, [rule.match for rule in asking]) or (
            _REDIRECTION if found.writes else None
        )

    unclear = _OPAQUE if found.opaque or found.blind else None
    return by_rules(Call(policy, tool, command, lambda rule: commands.denies(rule.match, found), unnamed, unclear))


def decide_exposing(policy: Policy, tool: str, command: str, paths: Iterable[str] | None) -> Allow | Ask:
    """Whether a command may run that these paths are not hidden from, None for no matter which: it could read them.

    What may be read only with a yes is asked about here. Denials are no matter of it: `denied_globs` has them.
    """
    rules = [rule for rule in policy.rules if rule.effect is Effect.ASK and _is_masked_for(rule, Need.READ)]
    exposed = None if paths is None else tuple(paths)
    met = [rule for rule in rules if exposed is None or any(globs.covers(rule.match, path) for path in exposed)]
    if not met or (tool, command) in policy.granted:
        return Allow()
    first = min(met, key=lambda rule: (rule.match, rule.layer))
    reason = f"a rule asks about {first.match}, which nothing hides from commands here"
    return Ask(reason, first.layer, policy.mode, command, tuple(met))


def denied_globs(policy: Policy, need: Need) -> tuple[str, ...]:
    """What may not be read or written as globs, built-in rules included, for a sandbox to mask.

    What a rule names and asks about is among them; a rule that asks about everything is not, and `decide_command`
    asks for it. The globs are relative to the workspace root (absolute for extra roots), without braces or negation;
    `**/` stands for any depth. A folder that matches is denied with all that is in it, and case does not matter.
    """
    built_in = _BUILT_IN[need].globs if need in _BUILT_IN else ()
    rules = [rule for rule in policy.rules if _is_masked_for(rule, need)]
    named = [glob for rule in rules for glob in globs.rooted(rule.match) or ("**",)]
    return tuple(dict.fromkeys([*built_in, *sorted(named)]))


def _path_call(policy: Policy, tool: str, path: str) -> Call:
    def unnamed(by: str, asking: tuple[Rule, ...]) -> str | None:
        named = any(globs.names(rule.match, path) for rule in rules_on(policy, by, Effect.ALLOW))
        return None if named or any(globs.covers(rule.match, path) for rule in asking) else "this path"

    return Call(policy, tool, path, lambda rule: globs.covers(rule.match, path), unnamed)


def _is_masked_for(rule: Rule, need: Need) -> bool:
    if rule.tool not in _NAMES_OF_NEED[need]:
        return False
    return rule.effect is Effect.DENY or (rule.effect is Effect.ASK and not is_general(rule))


def _is_below(path: str, folder: str) -> bool:
    return not path.startswith("/") if folder == "." else path.startswith(f"{folder.rstrip('/')}/")


def _lowest(policy: Policy) -> Cap:
    """The cap that sets the mode; of equal ones the first layer in the order of `Layer`."""
    return min(policy.caps, key=lambda cap: (cap.mode, list(Layer).index(cap.layer)))
