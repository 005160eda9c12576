"""Rules in words, and rules that could never mean what they say."""

from __future__ import annotations

import pytest

from auth.permissions import Effect, Rule
from auth.rules import rule_problem, rule_text


@pytest.mark.parametrize(
    ("tool", "match", "problem"),
    [
        pytest.param("read", "secrets/**", None, id="a glob is fine"),
        pytest.param("bash", r"grep \d *", None, id="a command may hold a backslash"),
        pytest.param("read", "a..b", None, id="dots in a name are fine"),
        pytest.param("read", " ", "the match is empty; write * for everything", id="empty"),
        pytest.param("read", "a\nb", "the match holds a control character", id="control character"),
        pytest.param("bash", "{a,b}" * 9, "the braces stand for more than 256 patterns", id="too many braces"),
        pytest.param("read", "a\\b", "folders are separated by /, and a backslash has no meaning", id="backslash"),
        pytest.param("read", "~/x", "~ is not expanded; paths are relative to the workspace", id="tilde"),
        pytest.param("*", "../x", "paths are relative to the workspace, and .. leads out of it", id="parent"),
    ],
)
def test_rule_problem(tool, match, problem):
    assert rule_problem(Rule(tool, match, Effect.DENY)) == problem


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("read", "secrets/**", Effect.DENY), "Never read, grep or edit: secrets/**"),
        (Rule("write", "docs/", Effect.DENY), "Never write or edit: docs/"),
        (Rule("write", "docs/", Effect.ALLOW), "Only write or edit: docs/"),
        (Rule("bash", "git *", Effect.ALLOW), "Only bash: git *"),
        (Rule("*", "secrets", Effect.DENY), "Never use any tool on: secrets"),
        (Rule("bash", "git push*", Effect.ASK), "Only with a yes from a person bash: git push*"),
        (Rule("write", "docs/", Effect.ASK), "Only with a yes from a person write or edit: docs/"),
        (Rule("write", "**", Effect.ASK), "Only with a yes from a person write or edit: all that no rule allows"),
        (
            Rule("read", "*", Effect.ASK),
            "Only with a yes from a person read, grep, edit or bash: all that no rule allows",
        ),
        (Rule("*", "*", Effect.ASK), "Only with a yes from a person use any tool on: all that no rule allows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rule_text(rule, text):
    assert rule_text(rule) == text
