"""The second sandbox step and the unsandboxed one: both start commands with the launcher `landlock.py`."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.workspace.processes import Launch
from mcp.workspace.sandbox_seccomp import shared_filter
from mcp.workspace.sandbox_world import DEVICES, GIT_CONFIG, ROOT_LINKS, User, World, program, rlimits, user_for
from mcp.workspace.shell_command import Command, SandboxStep

_LAUNCHER: Final = Path(__file__).with_name("landlock.py")
#: What a sandbox that shares the server's root shows besides `World.exposed`: who users are, and processes.
_SHARED: Final = (*ROOT_LINKS, "/etc/passwd", "/etc/group", "/proc")

#: The system call, and the flag that makes it answer the version.
_CREATE_RULESET, _VERSION = 444, 1
#: The version from which Landlock keeps signals inside.
SCOPED_SIGNALS: Final = 6

_HOLDS_PRIVATE: Final = (
    "Commands cannot run here: the server's own data lies in the workspace, and the landlock sandbox cannot keep "
    "commands from it. Move the data elsewhere, or make bubblewrap work on the server."
)


def landlock_abi() -> int:
    """The version of Landlock that the kernel speaks; 0 without any."""
    if platform.system() != "Linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), _VERSION)))


_NOT_READ_ONLY: Final = (
    "Commands cannot run here: this server has no sandbox, and without one nothing keeps a command from changing "
    "files, which the mode read_only promises. Nothing was run. Use read, grep, find and ls. Whoever runs the server "
    "can make a sandbox work (bubblewrap, or Landlock) and take SUPERPI_SANDBOX=off away, or allow a higher mode."
)


class Landlock:
    """Starts commands under Landlock rules and a system call filter."""

    step = SandboxStep.LANDLOCK

    def __init__(self, world: World) -> None:
        self._world = world

    def plan(self, command: Command) -> Launch | Fault:
        """The launch of a command under the launcher, with a folder of its own for temporary files."""
        filters = shared_filter(
            platform.machine(),
            abi=landlock_abi(),
            network=command.mode is Mode.FULL,
            read_only=command.mode is Mode.READ_ONLY,
        )
        if filters is None:
            return Fault("Commands cannot run: no system call filter is known for this machine.")
        if self._world.holds_private(command.root):
            return Fault(_HOLDS_PRIVATE)
        scratch = _Scratch.make(user_for(command.root))
        words = [*_paths(command, self._world, scratch), "confine=yes", f"seccomp={filters.hex()}"]
        if command.mode is Mode.FULL:
            words.append("network=yes")
        return _launch(command, self._world, scratch, words, user_for(command.root))

    def explain(self, _command: Command) -> str | None:
        """Nothing that a user could mend."""
        return None


class Unsandboxed:
    """Starts commands without confinement; `local` as the machine's own user, with their home and PATH.

    In the mode read_only it starts none, since nothing would hold that mode.
    """

    step = SandboxStep.UNSANDBOXED

    def __init__(self, world: World, *, local: bool) -> None:
        self._world, self._local = world, local

    def plan(self, command: Command) -> Launch | Fault:
        """The launch of a command: where there is Linux under the launcher, which still ends what it leaves."""
        if command.mode is Mode.READ_ONLY:
            return Fault(_NOT_READ_ONLY)
        user = None if self._local else user_for(command.root)
        scratch = _Scratch.make(user)
        own = {name: os.environ[name] for name in ("PATH", "HOME") if self._local and name in os.environ}
        if platform.system() == "Linux":
            return _launch(command, self._world, scratch, ["confine=no"], user, own)
        env = self._world.environment(str(scratch.home), str(scratch.tmp)) | own
        argv = (program(command.argv[0], env), *command.argv[1:])
        return Launch(argv, env, cwd=str(command.root), cleanup=scratch.remove)

    def explain(self, _command: Command) -> str | None:
        """Nothing that a user could mend."""
        return None


@dataclass(frozen=True, slots=True)
class _Scratch:
    """A private folder for one command."""

    folder: Path

    @classmethod
    def make(cls, user: User | None) -> _Scratch:
        scratch = cls(Path(tempfile.mkdtemp(prefix="superpi-")))
        for folder in (scratch.home, scratch.tmp):
            folder.mkdir(mode=0o700)
        git_config = scratch.home / ".gitconfig"
        git_config.write_text(GIT_CONFIG)
        if user is not None:
            for made in (git_config, scratch.home, scratch.tmp, scratch.folder):
                os.chown(made, user.uid, user.gid)
        return scratch

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _paths(command: Command, world: World, scratch: _Scratch) -> Iterator[str]:
    network = command.mode is Mode.FULL
    for path in (*_SHARED, *world.exposed(network=network)):
        yield f"readable={path}"
    for device in DEVICES:
        yield f"device={device}"
    yield f"writable={scratch.folder}"
    yield f"{'readable' if command.mode is Mode.READ_ONLY else 'writable'}={command.root}"


def _launch(
    command: Command,
    world: World,
    scratch: _Scratch,
    words: list[str],
    user: User | None,
    own: dict[str, str] | None = None,
) -> Launch:
    env = world.environment(str(scratch.home), str(scratch.tmp)) | (own or {})
    limits = rlimits(command.timeout, shared=True)
    reading, writing = os.pipe()
    plan = [f"root={command.root}", f"parent={os.getpid()}", f"status={writing}", *words]
    plan += [f"limit={name}:{figure}" for name, figure in limits.items()]
    plan += [] if user is None else [f"user={user.uid}:{user.gid}"]
    launcher = (sys.executable, "-I", "-S", "-P", str(_LAUNCHER))
    argv = (*launcher, *plan, "--", program(command.argv[0], env), *command.argv[1:])
    return Launch(argv, env, ending=signal.SIGTERM, fds=(writing,), status=reading, cleanup=scratch.remove)
