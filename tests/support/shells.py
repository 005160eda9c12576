"""Shells for tests: each step of the ladder as it really is on this machine, over a folder that commands may use.

Root's tests run commands as another user, whom pytest's own folders are closed to; so workspaces come from
`workspace`, and what must be out of reach lies beside them, open to everybody but for the sandbox.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from auth.permissions import Mode, Rule
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.tools.base import ToolContext
from mcp.workspace.sandbox import Choice, choose
from mcp.workspace.sandbox_world import World
from mcp.workspace.shell import Command, CommandResult, SandboxStep, Shell
from mcp.workspace.shell_runner import CommandRunner
from tests.support.files import context
from tests.support.unprivileged import folder, own

#: The steps that confine commands.
SANDBOXES = (SandboxStep.BUBBLEWRAP, SandboxStep.LANDLOCK)


@functools.cache
def _choice(step: SandboxStep, world: World) -> Choice:
    return choose(world, allow_unsandboxed=True, local=False, only=step)


def shell(step: SandboxStep, limits: Limits | None = None, world: World | None = None) -> Shell:
    """The shell of that step; the test is skipped, with the reason, on a machine where it does not work."""
    choice = _choice(step, world or World())
    if choice.sandbox is None or choice.sandbox.step is not step:
        pytest.skip(choice.why)
    return Shell(step, choice.why, CommandRunner(choice.sandbox, limits or Limits()).run)


@contextmanager
def workspace() -> Iterator[Path]:
    """An empty workspace in a folder of its own, both open to the user that commands run as."""
    with folder() as beside:
        root = beside / "ws"
        root.mkdir()
        own(beside)
        yield root


@dataclass(frozen=True, slots=True)
class Bench:
    """A shell over a workspace, and how to run commands in it."""

    shell: Shell
    root: Path
    limits: Limits = field(default_factory=Limits)

    async def run(
        self, script: str, mode: Mode = Mode.WORKSPACE_WRITE, timeout: float = 20, **fields: object
    ) -> CommandResult:
        """Run a script that the shell must be able to start."""
        result = await self.attempt(script, mode, timeout, **fields)
        assert isinstance(result, CommandResult), result
        return result

    async def attempt(
        self, script: str, mode: Mode = Mode.WORKSPACE_WRITE, timeout: float = 20, **fields: object
    ) -> CommandResult | Fault:
        """Run a script."""
        command = Command(("bash", "-c", script), self.root, mode, timeout)
        return await self.shell.run(replace(command, **fields))

    def context(self, mode: Mode = Mode.WORKSPACE_WRITE, rules: tuple[Rule, ...] = ()) -> ToolContext:
        """A context for the tool bash."""
        return replace(context(self.root, mode=mode, rules=rules, limits=self.limits), shell=self.shell)

    def put(self, files: dict[str, str]) -> None:
        """Lay files into the workspace, as its owner would."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        own(self.root)
