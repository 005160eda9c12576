"""What the rules of a policy say to one call: any deny, then what is asked about, then what no allow names. Pure.

Knows nothing of modes and of what is built in (`auth.permissions`), and of a call only how a rule is held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from auth import globs
from auth.policy import ANY_TOOL, Allow, Ask, Decision, Deny, Effect, Layer, Policy, Rule

#: A rule on the key's tool also denies and asks in the named tools: grep and edit show what is in a file, so what
#: may not be read may not be searched or edited either.
_DENIES_ALSO: Final = {"read": ("grep", "edit"), "write": ("edit",)}
#: A rule on the key's tool also allows in the named tools.
_ALLOWS_ALSO: Final = {"read": ("grep",), "write": ("edit",)}
_READ: Final = "read"
SHELL: Final = "bash"
EVERYTHING: Final = frozenset({"*", "**"})
#: What a rule that asks about everything says.
ALL_ASKED: Final = "a rule asks about everything that no rule allows"


@dataclass(frozen=True, slots=True)
class Call:
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


def bound_tools(rule: Rule) -> tuple[str, ...]:
    """The tools that the rule is about, the one it names first; `ANY_TOOL` alone for every tool.

    A command can read anything, so to ask about all reading is to ask about every command.
    """
    also = _ALLOWS_ALSO if rule.effect is Effect.ALLOW else _DENIES_ALSO
    shell = (SHELL,) if rule.effect is Effect.ASK and rule.tool == _READ and is_general(rule) else ()
    return (rule.tool, *also.get(rule.tool, ()), *shell)


def is_general(rule: Rule) -> bool:
    """Whether the rule is about everything, and not about something that it names."""
    return rule.match in EVERYTHING or (rule.tool != SHELL and globs.is_everything(rule.match))


def by_rules(call: Call) -> Decision:
    """Decide by the rules on the tool."""
    policy = call.policy
    for rule in rules_on(policy, call.tool, Effect.DENY):
        if call.matches(rule):
            return denial(policy, f"a rule denies {rule.match}", rule.layer)
    asking = asking_rules(call)
    if (unlisted := _unlisted(call, asking)) is not None:
        return unlisted
    if not asking or (call.tool, call.subject) in policy.granted:
        return Allow()
    return Ask(_why(call, asking[0]), asking[0].layer, policy.mode, call.subject, asking)


def asking_rules(call: Call) -> tuple[Rule, ...]:
    """The rules that ask about the call, those about something first. A yes to it is not looked for."""
    rules = rules_on(call.policy, call.tool, Effect.ASK)
    named = [rule for rule in rules if not is_general(rule) and (call.unclear or call.matches(rule))]
    general = [rule for rule in rules if is_general(rule) and _is_left(call, rule)]
    return (*named, *general)


def _is_left(call: Call, rule: Rule) -> bool:
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


def _unlisted(call: Call, asking: tuple[Rule, ...]) -> Deny | None:
    """The denial of what no allow names although there are some, and no rule asks about instead."""
    allowing = rules_on(call.policy, call.tool, Effect.ALLOW)
    instead = tuple(rule for rule in asking if _opens(rule, call.tool))
    if not allowing or any(is_general(rule) for rule in instead):
        return None
    if (unnamed := call.unnamed(call.tool, instead)) is None:
        return None
    listed = ", ".join(dict.fromkeys(rule.match for rule in allowing))
    return denial(call.policy, f"no rule allows {unnamed}; allowed is {listed}", allowing[0].layer)


def _opens(rule: Rule, tool: str) -> bool:
    """Whether an allow in the rule's place would be about the tool: to ask about reading opens no edit."""
    return bool({tool, ANY_TOOL}.intersection((rule.tool, *_ALLOWS_ALSO.get(rule.tool, ()))))


def _why(call: Call, rule: Rule) -> str:
    """The reason for a question, as the end of a sentence."""
    if not is_general(rule):
        unclear = "" if call.unclear is None or call.matches(rule) else f", and there is {call.unclear}"
        return f"a rule asks about {rule.match}{unclear}"
    if rule.tool == _READ and call.tool == SHELL:
        return "a rule asks about all reading, and a command can read anything"
    return ALL_ASKED


def may_ask_blindly(policy: Policy, tool: str) -> bool:
    """Whether a command that cannot be held against the rules is one to ask about: when no rule would deny it."""
    asking = rules_on(policy, tool, Effect.ASK)
    if not asking or rules_on(policy, tool, Effect.DENY):
        return False
    opened = any(is_general(rule) and _opens(rule, tool) for rule in asking)
    return opened or not rules_on(policy, tool, Effect.ALLOW)


def rules_on(policy: Policy, tool: str, effect: Effect) -> tuple[Rule, ...]:
    """The rules with that effect that bind the tool, in an order that does not depend on theirs."""
    if not policy.rules:
        return ()
    found = [
        rule for rule in policy.rules if rule.effect is effect and {tool, ANY_TOOL}.intersection(bound_tools(rule))
    ]
    return tuple(sorted(found, key=lambda rule: (rule.match, rule.tool, rule.layer)))


def denial(policy: Policy, reason: str, layer: Layer) -> Deny:
    """A denial under this policy."""
    return Deny(reason=reason, layer=layer, mode=policy.mode)
