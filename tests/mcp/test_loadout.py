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
    "means": "Commands are confined, and paths that rules deny are hidden from them.",
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
            "Never write below .git/ at any depth, nor below .superpi/ at the root.",
        ],
        "sandbox": SANDBOX,
    }


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("has", [{"read", "edit", "bash"}, {"read"}, set()], ids=["all tools", "one tool", "no tool"])
@pytest.mark.parametrize("rules", [(), (Rule("bash", "*", Effect.DENY),)], ids=["no rules", "a rule"])
def test_it_says_what_the_decision_says(mode, has, rules):
    policy = Policy("h", frozenset(has), (Cap(Layer.HARNESS, mode),), rules)
    for tool in described(policy)["tools"]:
        decision = decide_tool(policy, tool["name"], NEEDS[tool["name"]])
        refused = refusal_text(tool["name"], decision) if isinstance(decision, Deny) else None
        assert (tool["allowed"], tool.get("message")) == (refused is None, refused)


@pytest.mark.parametrize("step", SandboxStep)
def test_every_step_of_the_sandbox_is_explained_and_the_result_is_json(step):
    policy = Policy("h", frozenset(NEEDS), (Cap(Layer.HARNESS, Mode.FULL),))
    assert json.loads(json.dumps(described(policy, step)))["sandbox"]["step"] == step.value
