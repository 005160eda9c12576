"""The ladder: which sandbox works here, found by running its real profile once; and the shell made of it.

Steps are tried safest first. What is lost with each step down is said in one sentence, for logs, `/readyz` and
`superpi://workspace/tools`; `docs/sandbox.md` says it at length.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.workspace.bubblewrap import Bubblewrap
from mcp.workspace.processes import Ended, Launch, Stop, run_to_end
from mcp.workspace.sandbox_landlock import SCOPED_SIGNALS, Landlock, Unsandboxed, landlock_abi
from mcp.workspace.sandbox_programs import bwraps
from mcp.workspace.sandbox_world import NOBODY, World
from mcp.workspace.shell_command import Command, SandboxStep

_PROBE_SECONDS: Final = 10.0
#: Forks, writes to the workspace and to the temporary folder, and reads a device: what any command may do.
_PROBE: Final = 'echo a >probe && cp probe "$TMPDIR" && head -c 1 /dev/zero >/dev/null && cat "$TMPDIR/probe" | tr a b'
_PROBE_SAYS: Final = b"b\n"
_MOST_OF_REASON: Final = 300

_PATH: Final = re.compile(r"(?<![^\s'\"(:=])/[^\s:'\")]*")

_WARNING: Final = "WARNING: commands run WITHOUT A SANDBOX,"
_BARE: Final = "they can read and change whatever the server can, its keys and data among it."


class Sandbox(Protocol):
    """One step of the ladder."""

    @property
    def step(self) -> SandboxStep:
        """Which one."""

    def plan(self, command: Command) -> Launch | Fault:
        """What to start for a command. Raises OSError when the server lacks a resource for it."""

    def explain(self, command: Command) -> str | None:
        """Why it did not start, when users can mend that."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The sandbox that works here, None when none does and none is not allowed; and `why`, for operators."""

    sandbox: Sandbox | None
    why: str


def choose(world: World, *, allow_unsandboxed: bool, local: bool, only: SandboxStep | None = None) -> Choice:
    """The first step that works; none is tried when commands may run without one. `only` tries just that step."""
    failed: dict[SandboxStep, str] = {}
    if allow_unsandboxed and only in {None, SandboxStep.UNSANDBOXED}:
        return Choice(Unsandboxed(world, local=local), f"{_WARNING} because a setting says so: {_BARE}")
    for sandbox in _ladder(world):
        if only in {None, sandbox.step}:
            problem = _problem(sandbox)
            if problem is None:
                return Choice(sandbox, _why_sandboxed(sandbox.step, failed))
            failed.setdefault(sandbox.step, problem)
    reasons = "; ".join(f"{step}: {problem}" for step, problem in failed.items()) or "this system has none"
    if local and only in {None, SandboxStep.UNSANDBOXED}:
        why = f"{_WARNING} as the user who started the server, since none works here ({reasons}): {_BARE}"
        return Choice(Unsandboxed(world, local=True), why)
    return Choice(
        None,
        f"Commands are refused, because no sandbox works here ({reasons}). Allow user namespaces for bubblewrap, or "
        "run on a kernel with Landlock; SUPERPI_SANDBOX=off runs commands without a sandbox.",
    )


def _ladder(world: World) -> Iterator[Sandbox]:
    for program in bwraps():
        yield Bubblewrap(program, world)
    if landlock_abi():
        yield Landlock(world)


def _problem(sandbox: Sandbox) -> str | None:
    """What stands against this step, found by running a command in it; None when it works."""
    said: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="superpi-probe-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        if os.geteuid() == 0:
            os.chown(root, NOBODY, NOBODY)
        command = Command(("bash", "-c", _PROBE), root, Mode.WORKSPACE_WRITE, _PROBE_SECONDS)
        stop = Stop()
        try:
            launch = sandbox.plan(command)
            if isinstance(launch, Fault):
                return launch.message
            ended = run_to_end(launch, said.append, _PROBE_SECONDS, stop)
        except OSError as error:
            return error.strerror or "it could not be started"
        finally:
            stop.close()
    output = b"".join(said)
    if isinstance(ended, Ended) and ended.exit_code == 0 and output == _PROBE_SAYS:
        return None
    # Clients may read this, and no path of the server is their business.
    return _PATH.sub("...", output.decode(errors="replace").strip()[-_MOST_OF_REASON:]) or "it ended without a word"


def _why_sandboxed(step: SandboxStep, failed: dict[SandboxStep, str]) -> str:
    """One sentence about a working step, and one about root."""
    if step is SandboxStep.BUBBLEWRAP:
        why = "Commands run in bubblewrap, each with namespaces of its own."
    else:
        reason = failed.get(SandboxStep.BUBBLEWRAP, "there is no bwrap")
        signals = "" if landlock_abi() >= SCOPED_SIGNALS else "can signal other processes of the same user, "
        why = (
            f"Commands run under Landlock and seccomp, because bubblewrap does not work here ({reason}): they see "
            f"which processes run, {signals}and deny rules on paths do not bind them."
        )
    if os.geteuid() != 0:
        return why
    return (
        f"{why} The server is root and runs them as the owner of the workspace, or as uid {NOBODY} where that is "
        "root, and then they cannot change root's files: give the workspace to another user."
    )
