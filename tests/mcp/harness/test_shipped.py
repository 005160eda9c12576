"""The four harnesses that ship: what they may do, and that their prompts speak of nothing else."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from auth.permissions import Mode
from mcp.harness.definition import TOOL_NAMES
from mcp.harness.registry import SHIPPED, load

REGISTRY = load(None)


@pytest.mark.parametrize(
    ("id", "mode", "tools", "arguments"),
    [
        ("super-pi-code", Mode.WORKSPACE_WRITE, set(TOOL_NAMES), [("task", False)]),
        ("super-pi-assistant", Mode.READ_ONLY, set(), []),
        ("super-pi-librarian", Mode.WORKSPACE_WRITE, set(TOOL_NAMES) - {"bash"}, [("focus", False)]),
        ("super-pi-planner", Mode.READ_ONLY, {"read", "grep", "find", "ls"}, [("goal", True), ("constraints", False)]),
    ],
)
def test_what_a_shipped_harness_may_do(id, mode, tools, arguments):
    harness = REGISTRY.get(id)
    assert (harness.mode, harness.tools, harness.rules) == (mode, tools, ())
    assert [(argument.name, argument.required) for argument in harness.arguments] == arguments


def test_the_folder_holds_exactly_the_shipped_ones():
    names = {entry.name for entry in files("mcp.harness").joinpath("shipped").iterdir()}
    assert names == {f"{id}.md" for id in SHIPPED}


@pytest.mark.parametrize("id", SHIPPED)
def test_a_shipped_prompt_is_a_page_and_describes_only_tools_that_the_harness_has(id):
    harness = REGISTRY.get(id)
    lines = harness.body.splitlines()
    assert 60 <= len(lines) <= 120
    assert max(map(len, lines)) <= 120
    described = set(re.findall(r"^- .*?`(\w+)`", harness.body, re.MULTILINE)) & set(TOOL_NAMES)
    assert described <= harness.tools


@pytest.mark.parametrize("id", SHIPPED)
def test_a_shipped_prompt_reads_well_without_arguments(id):
    assert "{{" not in REGISTRY.get(id).render({})
