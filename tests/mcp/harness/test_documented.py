"""The pages on harnesses and permissions say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from auth.permissions import (
    Allow,
    Ask,
    Cap,
    Deny,
    Effect,
    Layer,
    Mode,
    Need,
    Policy,
    Rule,
    decide_command,
    decide_path,
    decide_tool,
)
from mcp.harness.definition import parse_harness
from mcp.harness.frontmatter import HarnessError
from mcp.harness.registry import load
from mcp.tools.refusal import refusal_result

DOCS = Path(__file__).parents[3] / "docs"
HARNESSES = (DOCS / "harnesses.md").read_text()
PERMISSIONS = (DOCS / "permissions.md").read_text()


def block(page: str, language: str) -> str:
    """The first code block in that language."""
    return re.search(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]


EXAMPLE = block(HARNESSES, "markdown")


def test_the_example_is_a_harness_that_does_what_it_is_for():
    harness = parse_harness(EXAMPLE.encode(), "docs-writer.md")
    policy = harness.policy()
    refused = [
        isinstance(decide_path(policy, tool, need, path), Deny)
        for tool, need, path in [
            ("write", Need.WRITE, "docs/a/b.txt"),
            ("edit", Need.WRITE, "README.md"),
            ("write", Need.WRITE, "src/a.py"),
            ("read", Need.READ, "src/a.py"),
            ("read", Need.READ, "x/customers/a"),
        ]
    ]
    assert refused == [False, False, True, False, True]
    assert harness.render({"topic": "x", "reader": "user"}).startswith(
        "You write documentation for a user. Document x."
    )


def test_the_example_of_a_complaint_is_what_is_said():
    broken = EXAMPLE.replace("description: Writes", "description: D\ntags: []\nx: Writes").replace("tags", "tool")
    with pytest.raises(HarnessError) as raised:
        parse_harness(broken.encode(), "docs-writer.md")
    said = block(HARNESSES, "text").strip()
    assert re.sub(r":\d+:", ":", str(raised.value)) == re.sub(r":\d+:", ":", said)


@pytest.mark.parametrize("harness", load(None).harnesses, ids=lambda harness: harness.id)
def test_every_shipped_harness_is_listed_with_its_mode(harness):
    row = next(line for line in HARNESSES.splitlines() if line.startswith(f"| `{harness.id}` |"))
    assert row.endswith(f"| `{harness.mode.label}` |")


@pytest.mark.parametrize(
    "word", [*(mode.label for mode in Mode), *(layer.value for layer in Layer if layer is not Layer.BUILT_IN)]
)
def test_every_mode_and_layer_is_documented(word):
    assert f"`{word}`" in PERMISSIONS


def test_the_example_of_a_refusal_is_what_is_sent():
    policy = Policy("h", frozenset({"edit"}), (Cap(Layer.REMOTE, Mode.READ_ONLY),))
    result = refusal_result("edit", decide_tool(policy, "edit", Need.WRITE))
    sent = {
        "isError": result.is_error,
        "content": [{"type": "text", "text": block.text} for block in result.content],
        "_meta": result.meta,
    }
    assert json.loads(block(PERMISSIONS.partition("## A refusal")[2], "json")) == sent


def test_the_example_of_rules_that_ask_asks_where_it_says():
    head = "id: a\ntitle: A\ndescription: D\ntools: [write, bash]\nmode: full\n"
    policy = parse_harness(f"---\n{head}{block(PERMISSIONS, 'yaml')}---\nDo.\n".encode(), "a.md").policy()
    written = [type(decide_path(policy, "write", Need.WRITE, path)) for path in ("src/a", "lib/a", ".git/a")]
    ran = [type(decide_command(policy, "bash", line)) for line in ("git log", "git push x", "git push && rm x", "ls")]
    assert (written, ran) == ([Allow, Ask, Deny], [Allow, Ask, Deny, Deny])


@pytest.mark.parametrize("command", [line.split("#")[0].strip() for line in block(PERMISSIONS, "sh").splitlines()])
def test_the_commands_that_are_said_to_be_refused_are(command):
    rules = (Rule("bash", "git *", Effect.ALLOW), Rule("bash", "rm *", Effect.DENY))
    policy = Policy("h", frozenset({"bash"}), (Cap(Layer.HARNESS, Mode.FULL),), rules)
    assert decide_command(policy, "bash", command) == Deny("a rule denies rm *", Layer.RULE, Mode.FULL)
