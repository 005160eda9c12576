"""The tool loadout: what is allowed here, what is refused and why."""

from __future__ import annotations

import json

import pytest

from auth.permissions import Cap, Deny, Effect, Layer, Mode, Need, Policy, Rule, decide_tool
from auth.refusals import refusal_text
from mcp.loadout import loadout
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.workspace.shell import SandboxStep

NEEDS = {"read": Need.READ, "edit": Need.WRITE, "bash": Need.EXECUTE}
TOOLS = [
    (ToolSpec(name, name.title(), "", {}, None, ToolAnnotations(True, False, True, False)), need)
    for name, need in NEEDS.items()
]


def described(policy: Policy, step: SandboxStep = SandboxStep.BUBBLEWRAP) -> dict:
    return loadout(policy, TOOLS, workspace="shop", step=step, why="It works.")


EDIT_REFUSED = {
    "name": "edit",
    "title": "Edit",
    "allowed": False,
    "refusal": {
        "tool": "edit",
        "mode": "read_only",
        "layer": "remote cap",
        "reason": "it changes files, and the mode read_only only reads",
    },
    "message": "edit was refused by the remote cap: it changes files, and the mode read_only only reads. "
    "The mode here is read_only. Nothing was changed.",
}
SANDBOX = {
    "step": "bubblewrap",
    "means": "Commands are confined, and paths that rules deny or ask about are hidden from them, but for files that "
    "git has with the same content. The workspace's .git/config and .git/hooks are read-only to them.",
    "why": "It works.",
}


def test_the_whole_loadout():
    policy = Policy(
        "super-pi-code",
        frozenset({"read", "bash", "edit"}),
        (Cap(Layer.HARNESS, Mode.WORKSPACE_WRITE), Cap(Layer.REMOTE, Mode.READ_ONLY)),
        (Rule("read", "secrets/**", Effect.DENY), Rule("bash", "git *", Effect.ALLOW)),
    )
    assert described(policy) == {
        "harness": "super-pi-code",
        "mode": "read_only",
        "caps": [{"layer": "harness", "mode": "workspace_write"}, {"layer": "remote cap", "mode": "read_only"}],
        "workspace": "shop",
        "tools": [
            {
                "name": "read",
                "title": "Read",
                "allowed": True,
                "reach": "reads in the workspace",
                "rules": ["Never read, grep or edit: secrets/**"],
            },
            EDIT_REFUSED,
            {
                "name": "bash",
                "title": "Bash",
                "allowed": True,
                "reach": "runs with the workspace read-only and without a network",
                "rules": ["Only bash: git *"],
            },
        ],
        "rules": [
            "Never read, grep or edit: secrets/**",
            "Only bash: git *",
            "Never show the content of .env files; .env.example may be read.",
            "File tools never write below .git/ at any depth, nor below .superpi/ at the root. Commands may commit.",
        ],
        "sandbox": SANDBOX,
    }


def test_it_says_which_rules_ask_of_which_tool():
    policy = Policy(
        "h",
        frozenset(NEEDS),
        (Cap(Layer.HARNESS, Mode.FULL),),
        (Rule("read", "*", Effect.ASK), Rule("edit", "docs/", Effect.ASK)),
    )
    reading = "Only with a yes from a person read, grep, edit or bash: all that no rule allows"
    editing = "Only with a yes from a person edit: docs/"
    told = described(policy)
    assert told["rules"][:2] == [reading, editing]
    assert [(tool["allowed"], tool["rules"]) for tool in told["tools"]] == [
        (True, [reading]),
        (True, [reading, editing]),
        (True, [reading]),
    ]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("has", [{"read", "edit", "bash"}, {"read"}, set()], ids=["all tools", "one tool", "no tool"])
@pytest.mark.parametrize("rules", [(), (Rule("bash", "*", Effect.DENY),)], ids=["no rules", "a rule"])
def test_it_says_what_the_decision_says(mode, has, rules):
    policy = Policy("h", frozenset(has), (Cap(Layer.HARNESS, mode),), rules)
    for tool in described(policy)["tools"]:
        decision = decide_tool(policy, tool["name"], NEEDS[tool["name"]])
        refused = refusal_text(tool["name"], decision) if isinstance(decision, Deny) else None
        assert (tool["allowed"], tool.get("message")) == (refused is None, refused)


UNCONFINED = "runs unconfined, with a network and with all files that the server's user reaches"
READ_ONLY_REFUSED = (
    "bash is refused here: the server runs commands without a sandbox, and nothing would hold them to the mode "
    "read_only. Nothing was changed."
)
NO_SANDBOX = "bash is refused here: the server has no sandbox to run commands in. Nothing was changed."


@pytest.mark.parametrize(
    ("step", "mode", "said"),
    [
        pytest.param(
            SandboxStep.LANDLOCK,
            Mode.READ_ONLY,
            {"allowed": True, "reach": "runs with the workspace read-only and without a network", "rules": []},
            id="a sandbox holds the mode",
        ),
        pytest.param(
            SandboxStep.UNSANDBOXED,
            Mode.READ_ONLY,
            {"allowed": False, "message": READ_ONLY_REFUSED},
            id="without one nothing holds read_only",
        ),
        *(
            pytest.param(
                SandboxStep.UNSANDBOXED, mode, {"allowed": True, "reach": UNCONFINED, "rules": []}, id=f"nor {mode}"
            )
            for mode in (Mode.WORKSPACE_WRITE, Mode.FULL)
        ),
        *(
            pytest.param(
                SandboxStep.UNAVAILABLE, mode, {"allowed": False, "message": NO_SANDBOX}, id=f"none available in {mode}"
            )
            for mode in Mode
        ),
    ],
)
def test_the_reach_of_commands_is_what_the_step_can_hold(step: SandboxStep, mode: Mode, said: dict):
    policy = Policy("h", frozenset(NEEDS), (Cap(Layer.HARNESS, mode),))
    assert described(policy, step)["tools"][2] == {"name": "bash", "title": "Bash", **said}


@pytest.mark.parametrize("step", SandboxStep)
def test_only_commands_depend_on_the_step(step: SandboxStep):
    policy = Policy("h", frozenset(NEEDS), (Cap(Layer.HARNESS, Mode.FULL),))
    assert described(policy, step)["tools"][:2] == described(policy)["tools"][:2]


@pytest.mark.parametrize("step", SandboxStep)
def test_every_step_of_the_sandbox_is_explained_and_the_result_is_json(step):
    policy = Policy("h", frozenset(NEEDS), (Cap(Layer.HARNESS, Mode.FULL),))
    assert json.loads(json.dumps(described(policy, step)))["sandbox"]["step"] == step.value
