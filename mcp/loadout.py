"""What a connection may do here and why, as data: the tool loadout. Pure.

`tools/list` is the same for everybody; this says which of those tools are refused to this connection, by which
part of the policy, and what the others are bound to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from auth.permissions import ANY_TOOL, Deny, Mode, Need, Policy, Rule, bound_tools, decide_tool
from auth.refusals import refusal_data, refusal_text
from auth.rules import rule_text
from mcp.protocol.offer import ToolSpec
from mcp.workspace.shell import SandboxStep

_BUILT_IN: Final = (
    "Never show the content of .env files; .env.example may be read.",
    "File tools never write below .git/ at any depth, nor below .superpi/ at the root. Commands may commit.",
)

_REACH: Final = {
    (Need.READ, Mode.READ_ONLY): "reads in the workspace",
    (Need.READ, Mode.WORKSPACE_WRITE): "reads in the workspace",
    (Need.READ, Mode.FULL): "reads in the workspace and the extra roots",
    (Need.WRITE, Mode.WORKSPACE_WRITE): "writes in the workspace",
    (Need.WRITE, Mode.FULL): "writes in the workspace and the extra roots",
    (Need.EXECUTE, Mode.READ_ONLY): "runs with the workspace read-only and without a network",
    (Need.EXECUTE, Mode.WORKSPACE_WRITE): "runs with the workspace writable and without a network",
    (Need.EXECUTE, Mode.FULL): "runs with the workspace writable and with a network",
}
#: What the reach of a command is worth on each step of the sandbox.
_STEPS: Final = {
    SandboxStep.BUBBLEWRAP: (
        "Commands are confined, and paths that rules deny or ask about are hidden from them, but for files that git "
        "has with the same content. The workspace's .git/config and .git/hooks are read-only to them."
    ),
    SandboxStep.LANDLOCK: (
        "Commands are confined; paths that rules deny inside the workspace are not hidden from them. Where a rule asks "
        "about reading, every command needs a yes."
    ),
    SandboxStep.UNSANDBOXED: (
        "Commands are not confined: they reach whatever the server's user reaches, the network too, whatever the mode "
        "and the rules on paths say. In the mode read_only they are refused. Where a rule asks about reading, every "
        "command needs a yes."
    ),
    SandboxStep.UNAVAILABLE: "Commands cannot be run.",
}
_UNCONFINED: Final = "runs unconfined, with a network and with all files that the server's user reaches"
_NO_SANDBOX: Final = "bash is refused here: the server has no sandbox to run commands in. Nothing was changed."
_NOT_READ_ONLY: Final = (
    "bash is refused here: the server runs commands without a sandbox, and nothing would hold them to the mode "
    "read_only. Nothing was changed."
)


def loadout(
    policy: Policy, tools: Iterable[tuple[ToolSpec, Need]], *, workspace: str, step: SandboxStep, why: str
) -> dict[str, Any]:
    """The loadout as a JSON object.

    `workspace` is the name by which users know it, `step` and `why` are the shell's. Whatever it says about a tool
    as a whole, a single call can still be refused for its path or its command, or need a yes from a person.
    """
    return {
        "harness": policy.harness,
        "mode": policy.mode.label,
        "caps": [{"layer": cap.layer.value, "mode": cap.mode.label} for cap in policy.caps],
        "workspace": workspace,
        "tools": [_tool(policy, spec, need, step) for spec, need in tools],
        "rules": [rule_text(rule) for rule in policy.rules] + list(_BUILT_IN),
        "sandbox": {"step": step.value, "means": _STEPS[step], "why": why},
    }


def _tool(policy: Policy, spec: ToolSpec, need: Need, step: SandboxStep) -> dict[str, Any]:
    described = {"name": spec.name, "title": spec.title}
    decision = decide_tool(policy, spec.name, need)
    if isinstance(decision, Deny):
        refusal = refusal_data(spec.name, decision)
        return described | {"allowed": False, "refusal": dict(refusal), "message": refusal_text(spec.name, decision)}
    if need is Need.EXECUTE and (message := _unrunnable(policy.mode, step)) is not None:
        return described | {"allowed": False, "message": message}
    rules = [rule_text(rule) for rule in policy.rules if _binds(rule, spec.name)]
    return described | {"allowed": True, "reach": _reach(need, policy.mode, step), "rules": rules}


def _unrunnable(mode: Mode, step: SandboxStep) -> str | None:
    """Why no command can be run, though the policy allows it; None when they can."""
    if step is SandboxStep.UNAVAILABLE:
        return _NO_SANDBOX
    return _NOT_READ_ONLY if step is SandboxStep.UNSANDBOXED and mode is Mode.READ_ONLY else None


def _reach(need: Need, mode: Mode, step: SandboxStep) -> str:
    unconfined = need is Need.EXECUTE and step is SandboxStep.UNSANDBOXED
    return _UNCONFINED if unconfined else _REACH[need, mode]


def _binds(rule: Rule, tool: str) -> bool:
    return bool({tool, ANY_TOOL}.intersection(bound_tools(rule)))
