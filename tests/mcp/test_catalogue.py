"""The catalogue as clients see it: complete, valid, and true to the server's limits."""

import re

import jsonschema_rs
import pytest

from auth.permissions import Need
from mcp.arguments import argument_check
from mcp.catalogue import standard_catalogue, tool_definitions
from mcp.harness.registry import load
from mcp.limits import Limits
from mcp.protocol.offer import Accepted, Rejected

CATALOGUE = standard_catalogue(load(None), Limits())
TOOLS = {tool.spec.name: tool for tool in CATALOGUE.tools}

#: The hints of each tool: read-only, destructive, idempotent, open world.
HINTS = {
    "read": (True, False, True, False),
    "write": (False, True, True, False),
    "edit": (False, True, False, False),
    "bash": (False, True, False, True),
    "grep": (True, False, True, False),
    "find": (True, False, True, False),
    "ls": (True, False, True, False),
}


@pytest.mark.requirement("TL-3", "TL-16")
def test_the_tools_come_in_their_order_with_their_hints():
    """By the hints hosts decide what to approve without asking."""
    hints = {spec.name: spec.annotations for spec in tool_definitions(Limits())}
    found = {name: (hint.read_only, hint.destructive, hint.idempotent, hint.open_world) for name, hint in hints.items()}
    assert list(found.items()) == list(HINTS.items())


@pytest.mark.requirement("TL-4", "TL-5", "JS-1", "JS-2")
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_each_tool_says_what_a_model_needs(tool):
    """TL-4, TL-5: a safe name, words, an object schema that is valid and closed, and a description a property."""
    spec = tool.spec
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", spec.name)
    assert spec.title
    assert len(spec.description) > 80
    assert (spec.input_schema["type"], spec.input_schema["additionalProperties"]) == ("object", False)
    assert all(item.get("description") for item in spec.input_schema["properties"].values())
    for schema in filter(None, (spec.input_schema, spec.output_schema)):
        jsonschema_rs.meta.validate(dict(schema))


def test_every_tool_but_read_declares_what_it_gives():
    """docs/decisions/0006: a picture has no structure that hosts would show."""
    assert [name for name, tool in TOOLS.items() if tool.spec.output_schema is None] == ["read"]


@pytest.mark.requirement("TL-16")
def test_only_tools_that_read_are_called_so():
    """The hint and what the policy asks for agree."""
    assert all(tool.spec.annotations.read_only == (tool.need is Need.READ) for tool in TOOLS.values())


def test_a_limit_that_was_raised_is_raised_for_callers_too():
    """The schema and the words follow the setting."""
    raised = {tool.spec.name: tool for tool in standard_catalogue(load(None), Limits(shell_seconds_max=1800)).tools}
    arguments = {"command": "true", "timeout": 700}
    assert isinstance(argument_check(TOOLS["bash"])(arguments), Rejected)
    assert argument_check(raised["bash"])(arguments) == Accepted(arguments)
    assert "1800" in str(raised["bash"].spec.input_schema)


@pytest.mark.requirement("TL-13", "TL-15")
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("read", {}, '"path" is a required property'),
        ("read", {"path": 3}, "path: the value is not of type"),
        ("read", {"path": "a", "offset": 0}, "offset: the value is less than the minimum of 1"),
        ("read", {"path": "a", "of": 1}, "'of' was unexpected"),
        ("edit", {"path": "a", "edits": [{"old_text": "x"}]}, 'edits[0]: "new_text" is a required property'),
        ("edit", {"path": "a", "edits": "[" * 300 + "]" * 300}, "edits"),
        ("bash", {"command": "x", "timeout": -1}, "timeout"),
    ],
)
def test_a_fault_in_arguments_is_a_sentence_with_its_path(tool, arguments, words):
    """And holds no value of the caller's: it may be a secret, or megabytes."""
    verdict = argument_check(TOOLS[tool])(arguments)
    assert isinstance(verdict, Rejected)
    assert words in "\n".join(verdict.faults)


def test_a_value_is_never_repeated_in_a_fault():
    """Whatever it is."""
    verdict = argument_check(TOOLS["read"])({"path": {"secret": "canary"}})
    assert "canary" not in "\n".join(verdict.faults)


def test_there_is_a_prompt_for_each_harness_and_the_plan():
    """The mission's prompts."""
    names = [prompt.spec.name for prompt in CATALOGUE.prompts]
    assert names == [
        "super-pi-code",
        "super-pi-assistant",
        "super-pi-librarian",
        "super-pi-planner",
        "plan_architecture",
    ]
