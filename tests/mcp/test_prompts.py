"""Prompts: what is offered, rendered and completed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.harness.definition import Argument, Harness
from mcp.harness.registry import Registry, load
from mcp.prompts import complete_prompt_argument, prompt_specs, render_prompt
from mcp.protocol.content import PromptMessage, Text
from mcp.protocol.offer import PromptArgument, PromptSpec

SHIPPED = load(None)
WRITER = Harness(
    id="writer",
    title="Writer",
    description="Writes.",
    tools=frozenset(),
    mode=Mode.READ_ONLY,
    body="Write {{kind}} about {{topic}}.",
    source="writer.md",
    arguments=(
        Argument("topic", "About what.", required=True),
        Argument("kind", "What.", values=("Poem", "prose", "play")),
        Argument("harness", "For which harness."),
    ),
)
TEAM = Registry((*SHIPPED.harnesses, WRITER))


def test_there_is_a_prompt_for_each_harness_and_the_alias_of_the_planner():
    planner = SHIPPED.get("super-pi-planner")
    arguments = tuple(PromptArgument(one.name, one.description, one.required) for one in planner.arguments)
    assert [spec.name for spec in prompt_specs(TEAM)] == [*SHIPPED.ids, "writer", "plan_architecture"]
    assert prompt_specs(SHIPPED)[-1] == PromptSpec(
        "plan_architecture", "Plan an architecture", planner.description, arguments
    )


def test_without_a_planner_there_is_no_alias():
    assert [spec.name for spec in prompt_specs(Registry((WRITER,)))] == ["writer"]


def test_a_prompt_is_its_harness_with_the_arguments_filled_in():
    assert render_prompt(TEAM, "writer", {"topic": "rain", "kind": "a poem"}) == (
        "Writes.",
        (PromptMessage("user", Text("Write a poem about rain.")),),
    )


def test_the_alias_renders_the_planner():
    arguments = {"goal": "One queue.", "constraints": "No downtime."}
    rendered = render_prompt(TEAM, "plan_architecture", arguments)
    assert rendered == render_prompt(TEAM, "super-pi-planner", arguments)
    assert "One queue.\n\nConstraints: No downtime." in rendered[1][0].content.text


def test_the_alias_follows_a_team_that_replaced_the_planner():
    own = replace(WRITER, id="super-pi-planner", body="Plan {{topic}}.")
    assert render_prompt(Registry((own,)), "plan_architecture", {"topic": "x"})[1][0].content == Text("Plan x.")


@pytest.mark.requirement("PR-3", "PR-5")
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        pytest.param(
            "poet",
            {},
            "There is no prompt called 'poet'. The prompts are super-pi-code, super-pi-assistant, super-pi-librarian, "
            "super-pi-planner, writer, plan_architecture.",
            id="unknown prompt",
        ),
        pytest.param(
            "writer", {}, "The prompt writer needs topic. Its arguments: topic, kind, harness.", id="missing argument"
        ),
        pytest.param(
            "writer", {"topic": " "}, "The prompt writer needs topic. Its arguments: topic, kind, harness.", id="blank"
        ),
        pytest.param(
            "writer",
            {"topic": "x", "tpoic": "y"},
            "The prompt writer has no argument tpoic. Its arguments: topic, kind, harness.",
            id="unknown argument",
        ),
        pytest.param(
            "super-pi-assistant",
            {"x": "y"},
            "The prompt super-pi-assistant has no argument x. Its arguments: none.",
            id="no arguments at all",
        ),
    ],
)
def test_mistaken_requests_are_told_what_is_known(name, arguments, message):
    assert render_prompt(TEAM, name, arguments) == Fault(message)


@pytest.mark.requirement("CP-3")
@pytest.mark.parametrize(
    ("name", "argument", "value", "offered"),
    [
        pytest.param("writer", "kind", "", ("Poem", "prose", "play"), id="everything"),
        pytest.param("writer", "kind", "P", ("Poem", "prose", "play"), id="by a beginning in any case"),
        pytest.param("writer", "kind", "pr", ("prose",), id="by more of it"),
        pytest.param("writer", "kind", "x", (), id="nothing fits"),
        pytest.param("writer", "topic", "", (), id="free text has no values"),
        pytest.param("writer", "harness", "super-pi-p", ("super-pi-planner",), id="harness ids"),
        pytest.param("plan_architecture", "goal", "a", (), id="through the alias"),
        pytest.param("writer", "colour", "", None, id="unknown argument"),
        pytest.param("poet", "kind", "", None, id="unknown prompt"),
    ],
)
def test_completion(name, argument, value, offered):
    assert complete_prompt_argument(TEAM, name, argument, value, {}) == offered
