"""The numbers that a client is told are those of this server, not the defaults."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mcp.arguments import argument_check
from mcp.limits import Limits
from mcp.protocol.offer import Accepted, Rejected
from mcp.tools import bash, edit, find, grep, ls, read, write
from mcp.tools.base import Tool

MODULES = (read, write, edit, bash, grep, find, ls)
RAISED = Limits(
    output_lines=9001,
    output_bytes=9002 * 1024,
    grep_matches=9003,
    grep_line_chars=9004,
    find_results=8005,
    ls_entries=8006,
    shell_seconds=1700,
    shell_seconds_max=1800,
)


def words(tool: Tool) -> str:
    """All that the tool says about itself in descriptions."""
    return " ".join([tool.spec.description, *re.findall(r"'description': ['\"](.*?)['\"][,}]", str(tool.spec))])


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.NAME)
def test_the_tool_of_the_default_limits_is_the_one_at_hand(module: Any) -> None:
    assert module.tool(Limits()).spec == module.TOOL.spec


@pytest.mark.parametrize(
    ("build", "said"),
    [
        pytest.param(read.tool, ["at most 9001 lines or 9002 KiB", "maximum: 9001."], id="read"),
        pytest.param(bash.tool, ["last 9001 lines or 9002 KiB", "Default 1700, at most 1800."], id="bash"),
        pytest.param(
            grep.tool, ["Stops at 9001 matches or 9002 KiB", "over 9004 characters", "9001 by default, at most 9001."],
            id="grep, within the lines of an answer",
        ),
        pytest.param(
            find.tool, ["At most 8005 results or 9002 KiB", "8005 by default, at most 8005."], id="find"
        ),
        pytest.param(ls.tool, ["At most 8006 entries or 9002 KiB", "8006 by default, at most 8006."], id="ls"),
    ],
)  # fmt: skip
def test_descriptions_name_the_limits(build: Callable[[Limits], Tool], said: list[str]) -> None:
    text = words(build(RAISED))
    assert [part for part in said if part not in text] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.NAME)
def test_no_default_is_left_when_limits_change(module: Any) -> None:
    assert re.findall(r"\b(?:2000 lines|50 KiB|100 by default|500 by default|1000 by default|600)\b",
                      words(module.tool(RAISED))) == []  # fmt: skip


@pytest.mark.parametrize(
    ("build", "arguments", "limits"),
    [
        pytest.param(bash.tool, {"command": "x", "timeout": 1800}, RAISED, id="the longest timeout"),
        pytest.param(
            bash.tool, {"command": "x", "timeout": 900}, Limits(shell_seconds=900), id="a default above the longest"
        ),
        pytest.param(grep.tool, {"pattern": "x", "limit": 9003}, RAISED, id="the default of grep"),
        pytest.param(find.tool, {"pattern": "x", "limit": 8005}, RAISED, id="the default of find"),
        pytest.param(ls.tool, {"limit": 8006}, RAISED, id="the default of ls"),
        pytest.param(ls.tool, {"limit": 2000}, Limits(output_lines=10), id="more than an answer has lines"),
    ],
)
def test_what_is_configured_can_be_asked_for(
    build: Callable[[Limits], Tool], arguments: dict[str, Any], limits: Limits
) -> None:
    assert argument_check(build(limits))(arguments) == Accepted(arguments)


def test_a_lowered_timeout_is_the_most_that_is_taken() -> None:
    check = argument_check(bash.tool(Limits(shell_seconds=5, shell_seconds_max=10)))
    assert isinstance(check({"command": "x", "timeout": 11}), Rejected)
