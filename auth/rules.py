"""Rules as people write them: what is wrong with one, and one in words. Pure."""

from __future__ import annotations

from typing import Final

from auth.globs import MOST_ALTERNATIVES, rooted
from auth.permissions import ANY_TOOL, Effect, Rule, bound_tools, is_general

_VERBS: Final = {Effect.ALLOW: "Only", Effect.ASK: "Only with a yes from a person", Effect.DENY: "Never"}


def rule_problem(rule: Rule) -> str | None:
    """Why the rule could never mean what it says, as the end of a sentence; None when it can.

    A file name may hold almost any character, so only what no real path has is refused.
    """
    match = rule.match
    if not match.strip():
        return "the match is empty; write * for everything"
    if not match.isprintable():
        return "the match holds a control character"
    if rooted(match) is None:
        return f"the braces stand for more than {MOST_ALTERNATIVES} patterns"
    return None if rule.tool == "bash" else _path_problem(match)


def rule_text(rule: Rule) -> str:
    """The rule as a sentence: `Never read, grep or edit: secrets/**`."""
    tools = ["use any tool on"] if rule.tool == ANY_TOOL else list(bound_tools(rule))
    listed = " or ".join([", ".join(tools[:-1]), tools[-1]] if len(tools) > 1 else tools)
    # Only such a rule gives way to what others allow.
    match = "all that no rule allows" if rule.effect is Effect.ASK and is_general(rule) else rule.match
    return f"{_VERBS[rule.effect]} {listed}: {match}"


def _path_problem(match: str) -> str | None:
    if "\\" in match:
        return "folders are separated by /, and a backslash has no meaning"
    if match.startswith("~"):
        return "~ is not expanded; paths are relative to the workspace"
    if ".." in match.split("/"):
        return "paths are relative to the workspace, and .. leads out of it"
    return None
