"""Shapes of arguments that every tool takes alike although its schema says otherwise (case 38)."""

from __future__ import annotations

from typing import Any

import pytest

from mcp.arguments import argument_check
from mcp.protocol.offer import Accepted, Rejected
from mcp.tools import bash, edit, find, grep, ls, read, write
from mcp.tools.base import Tool

TOOLS = (read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, grep.TOOL, find.TOOL, ls.TOOL)
LEAST: dict[str, dict[str, Any]] = {
    "read": {"path": "f"},
    "write": {"path": "f", "content": ""},
    "edit": {"path": "f", "edits": [{"old_text": "a", "new_text": "b"}]},
    "bash": {"command": "ls"},
    "grep": {"pattern": "a"},
    "find": {"pattern": "a"},
    "ls": {},
}


def optional(*types: str) -> list[Any]:
    """Every argument of every tool that may be left out and has one of these types."""
    return [
        pytest.param(tool, name, id=f"{tool.spec.name} {name}")
        for tool in TOOLS
        for name, schema in tool.spec.input_schema["properties"].items()
        if name not in LEAST[tool.spec.name] and schema["type"] in types
    ]


@pytest.mark.parametrize(("tool", "name"), optional("integer", "number"))
@pytest.mark.parametrize("sent", ["5", " 5\n"])
def test_a_whole_number_may_come_as_a_string(tool: Tool, name: str, sent: str) -> None:
    least = LEAST[tool.spec.name]
    assert argument_check(tool)({**least, name: sent}) == Accepted({**least, name: 5})


@pytest.mark.parametrize(("tool", "name"), optional("integer", "number"))
@pytest.mark.parametrize("sent", ["", "five", "-5", "5 lines", "0x5", [5]])
def test_what_is_no_whole_number_is_refused(tool: Tool, name: str, sent: object) -> None:
    assert isinstance(argument_check(tool)({**LEAST[tool.spec.name], name: sent}), Rejected)


@pytest.mark.parametrize(("tool", "name"), optional("string"))
def test_an_empty_string_counts_as_not_given(tool: Tool, name: str) -> None:
    least = LEAST[tool.spec.name]
    assert argument_check(tool)({**least, name: ""}) == Accepted(least)


@pytest.mark.parametrize(("tool", "name"), optional("string", "integer", "number", "boolean"))
def test_null_counts_as_not_given(tool: Tool, name: str) -> None:
    least = LEAST[tool.spec.name]
    assert argument_check(tool)({**least, name: None}) == Accepted(least)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param("[" * 300 + "]" * 300, id="nested too deep for any reader"),
        pytest.param("[" * 65 + "]" * 65, id="nested deeper than a message may be"),
        pytest.param('[{"old_text": "a\\u0000", "new_text": "b"}]', id="with U+0000"),
        pytest.param('[{"old_text": "a", "old_text": "c", "new_text": "b"}]', id="with a key twice"),
        pytest.param('[{"old_text": "a", "new_text": NaN}]', id="with no number"),
        pytest.param('[{"old_text": "a", "new_text": "\ud800"}]', id="with half a surrogate pair"),
        pytest.param('[{"old_text": "a", "new_text": "\\ud800"}]', id="with half a surrogate pair, escaped"),
    ],
)
def test_json_in_a_string_is_read_by_the_rules_for_messages(edits: str) -> None:
    check = argument_check(edit.TOOL)
    assert isinstance(check({"path": "f", "edits": edits}), Rejected)
    assert isinstance(check({"path": "f", "edits": [edits]}), Rejected)
