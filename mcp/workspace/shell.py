"""Running commands for the tools: what a command is, what it came to, and the shell that runs it.

A `Shell` is chosen once, at start, by `probe_shell`. Tools know only this module; how a command is confined
(`sandbox`), run and ended (`processes`) and read (`output`, `spool`) is none of their business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from mcp.faults import Fault
from mcp.limits import Limits
from mcp.workspace.sandbox import choose
from mcp.workspace.sandbox_world import World
from mcp.workspace.shell_command import Command, CommandResult, SandboxStep
from mcp.workspace.shell_runner import CommandRunner

__all__ = ["Command", "CommandResult", "Runner", "SandboxStep", "Shell", "probe_shell", "unavailable"]

#: Runs one command to its end. Cancelling the task ends every process of the command before it returns.
Runner = Callable[[Command], Awaitable[CommandResult | Fault]]

_UNAVAILABLE = (
    "Commands cannot be run on this server: it has no sandbox to run them in. Whoever runs the server can install "
    "bubblewrap and allow user namespaces, or use a Linux kernel with Landlock, or set SUPERPI_SANDBOX=off to run "
    "commands without a sandbox. The other tools work."
)


@dataclass(frozen=True, slots=True)
class Shell:
    """The shell of this server: which step of the ladder it is, and `why` in a sentence or two for operators."""

    step: SandboxStep
    why: str
    runner: Runner

    @property
    def masks(self) -> bool:
        """Whether `hidden`, `frozen` and `pinned` of a command are held."""
        return self.step is SandboxStep.BUBBLEWRAP

    async def run(self, command: Command) -> CommandResult | Fault:
        """Run a command; a Fault when it could not be started, and then nothing of it ran."""
        return await self.runner(command)


def unavailable(why: str, message: str = _UNAVAILABLE) -> Shell:
    """A shell that refuses every command with that message."""

    async def refuse(_command: Command) -> CommandResult | Fault:
        return Fault(message)

    return Shell(SandboxStep.UNAVAILABLE, why, refuse)


def probe_shell(
    limits: Limits,
    *,
    allow_unsandboxed: bool,
    local: bool,
    readable: tuple[Path, ...] = (),
    private: tuple[Path, ...] = (),
    only: SandboxStep | None = None,
) -> Shell:
    """The first step of the ladder that works here, found by running its real profile once (it blocks for that).

    With `allow_unsandboxed` commands run without a sandbox, and none is tried: whoever runs the server said so. With
    `local` they do where none works, since the caller is the machine's own user. `readable` are more paths that
    commands may read, `private` the server's own (its data folder), which none may reach. `only` tries that step
    and no other.
    """
    world = World(tuple(readable), tuple(path.resolve() for path in private))
    choice = choose(world, allow_unsandboxed=allow_unsandboxed, local=local, only=only)
    if choice.sandbox is None:
        return unavailable(choice.why)
    return Shell(choice.sandbox.step, choice.why, CommandRunner(choice.sandbox, limits).run)
