"""What tests of the permission decision share: policies to write down, policies to draw, and how wide a decision is."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from auth.permissions import (
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
    Rule,
    decide_command,
    decide_path,
)

NEEDS: Final = {
    "read": Need.READ,
    "grep": Need.READ,
    "find": Need.READ,
    "ls": Need.READ,
    "write": Need.WRITE,
    "edit": Need.WRITE,
    "bash": Need.EXECUTE,
    "harness_task": Need.EXECUTE,
}
FILE_TOOLS: Final = ("read", "grep", "find", "ls", "write", "edit")


def policy(mode: Mode = Mode.FULL, *rules: Rule, tools: frozenset[str] = frozenset(NEEDS)) -> Policy:
    """A policy with one cap."""
    return Policy("tested", tools, (Cap(Layer.HARNESS, mode),), rules)


def allow(tool: str, match: str) -> Rule:
    """A rule that allows."""
    return Rule(tool, match, Effect.ALLOW)


def ask(tool: str, match: str) -> Rule:
    """A rule that asks."""
    return Rule(tool, match, Effect.ASK)


def deny(tool: str, match: str) -> Rule:
    """A rule that denies."""
    return Rule(tool, match, Effect.DENY)


def decide(policy: Policy, tool: str, subject: str) -> Decision:
    """The decision on a command or a path, by the tool."""
    if tool == "bash":
        return decide_command(policy, tool, subject)
    return decide_path(policy, tool, NEEDS[tool], subject)


def width(decision: Decision) -> int:
    """How much a decision lets through: 0 nothing, 1 what a person says yes to, 2 the call."""
    return (Deny, Ask, Allow).index(type(decision))


# -- to draw ------------------------------------------------------------------------------------------------

NAMES: Final = st.sampled_from(
    ["a", "b", "docs", "Docs", ".env", ".env.example", ".git", ".superpi", "secrets", "k.py"]
)
PATHS: Final = st.lists(NAMES, max_size=3).map(lambda names: "/".join(names) or ".") | NAMES.map(
    lambda name: f"/extra/{name}"
)
MATCHES: Final = st.sampled_from(
    [
        "*",
        "**",
        "a",
        "docs/**",
        "**/k.py",
        "*.py",
        "secrets/",
        "{a,b}/*",
        "/docs",
        ".env*",
        "git *",
        "rm *",
        "git status",
        "git push*",
        "**/*",
    ]
)
COMMANDS: Final = st.lists(
    st.sampled_from(
        ["git status", "git push", "rm -rf x", "&&", "|", "\n", "nohup", "$(rm x)", "sudo -u a", "'", "(", ")", "eval"]
    ),
    max_size=6,
).map(" ".join)
RULES: Final = st.builds(Rule, st.sampled_from([*NEEDS, "*"]), MATCHES, st.sampled_from(Effect))
CAPS: Final = st.builds(Cap, st.sampled_from([Layer.HARNESS, Layer.REMOTE]), st.sampled_from(Mode))
POLICIES: Final = st.builds(
    Policy,
    st.just("any"),
    st.frozensets(st.sampled_from(sorted(NEEDS)), min_size=4),
    st.lists(CAPS, min_size=1, max_size=3).map(tuple),
    st.lists(RULES, max_size=4).map(tuple),
)
CALLS: Final = st.tuples(st.sampled_from(FILE_TOOLS), PATHS) | st.tuples(st.just("bash"), COMMANDS)
