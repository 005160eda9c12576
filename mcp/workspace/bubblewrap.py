"""The first sandbox step: bubblewrap, with namespaces of its own for every command.

The profile is a list of arguments made from values, so that it can be read and tested without running it. The
order of mounts matters: what is mounted later covers what was mounted before.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.workspace.processes import Launch
from mcp.workspace.sandbox_programs import OpenProgram, drop_to
from mcp.workspace.sandbox_seccomp import namespaced_filter
from mcp.workspace.sandbox_world import (
    GIT_CONFIG,
    ROOT_LINKS,
    User,
    World,
    enters,
    git_ignore,
    passwd,
    reaches,
    rlimits,
    user_for,
)
from mcp.workspace.shell_command import Command, SandboxStep

#: Size of the private /tmp and /dev/shm of a command, in bytes; they are memory.
TMP_BYTES: Final = 1024**3
SHM_BYTES: Final = 256 * 1024**2

HOME: Final = "/tmp/home"  # noqa: S108 - inside the sandbox, where /tmp is private
#: Folders of the sandbox itself, which no workspace may take the place of.
_TAKEN: Final = ("/", "/tmp", "/dev", "/proc", "/etc", "/usr", "/run", "/var")  # noqa: S108
_WITHIN: Final = ("/dev", "/proc", "/etc")

#: What `ulimit` of bash calls an rlimit, and the bytes that its unit stands for.
_ULIMITS: Final = {
    "RLIMIT_CORE": ("-c", 1024),
    "RLIMIT_AS": ("-v", 1024),
    "RLIMIT_FSIZE": ("-f", 1024),
    "RLIMIT_CPU": ("-t", 1),
    "RLIMIT_NPROC": ("-u", 1),
}

_SYSTEM_FOLDER: Final = "Commands cannot run here: the workspace is a system folder. Serve a folder of its own."
_SERVERS_FOLDER: Final = "Commands cannot run here: the workspace is the server's own folder. Serve another one."


@dataclass(frozen=True, slots=True)
class Inherited:
    """The descriptors that the profile names."""

    status: int
    passwd: int
    group: int
    git_config: int
    git_ignore: int
    seccomp: int | None

    def all(self) -> tuple[int, ...]:
        """Every one of them."""
        named = (self.status, self.passwd, self.group, self.git_config, self.git_ignore)
        return named if self.seccomp is None else (*named, self.seccomp)


def _inherited(status: int, user: User | None, git_ignore: bytes) -> Inherited:
    uid, gid = (os.geteuid(), os.getegid()) if user is None else (user.uid, user.gid)
    users, groups = passwd(uid, gid)
    program = namespaced_filter(platform.machine())
    seccomp = None if program is None else _memory(program)
    git = (_memory(GIT_CONFIG.encode()), _memory(git_ignore))
    return Inherited(status, _memory(users), _memory(groups), *git, seccomp)


def _memory(data: bytes) -> int:
    """A descriptor from which the data can be read once."""
    fd = os.memfd_create("superpi")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Bubblewrap:
    """Starts commands with a bwrap binary."""

    step = SandboxStep.BUBBLEWRAP

    def __init__(self, program: Path, world: World) -> None:
        self._program, self._world = OpenProgram(program), world

    def plan(self, command: Command) -> Launch | Fault:
        """The launch of a command in its sandbox."""
        if str(command.root) in _TAKEN or any(command.root.is_relative_to(folder) for folder in _WITHIN):
            return Fault(_SYSTEM_FOLDER)
        if command.root in self._world.private:
            return Fault(_SERVERS_FOLDER)
        user = user_for(command.root)
        drop = () if user is None else drop_to(user)
        if drop is None:
            return Fault("Commands cannot run: the server is root, and there is no setpriv to give that up.")
        program = self._program.path()
        reading, writing = os.pipe()
        inherited = _inherited(writing, user, git_ignore((*command.hidden, *_own(command, self._world))))
        argv = (*drop, str(program), *profile(command, self._world, user, inherited))
        return Launch(argv, env={}, fds=inherited.all(), status=reading)

    def explain(self, command: Command) -> str | None:
        """Why a command could not be started, when that is something that its user can mend."""
        user = user_for(command.root)
        if user is None or all(enters(user, folder) for folder in (command.root, *command.root.parents)):
            return None
        return (
            f"Commands cannot run here: the server is root and runs commands as uid {user.uid}, to whom a folder "
            "above the workspace is closed. Open it for others (chmod o+x), or run the server as an ordinary user."
        )


def profile(command: Command, world: World, user: User | None, inherited: Inherited) -> list[str]:
    """The arguments of bwrap: a minimal root, the one workspace at its own path, and the command."""
    network = command.mode is Mode.FULL
    root = str(command.root)
    arguments = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    arguments += ["--share-net"] if network else []
    arguments += ["--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"]
    for name, value in world.environment(HOME, "/tmp").items():  # noqa: S108 - see HOME
        arguments += ["--setenv", name, value]
    arguments += _system(world, inherited, network=network)
    arguments += ["--ro-bind" if command.mode is Mode.READ_ONLY else "--bind", root, root]
    arguments += _masks(command, world, user)
    arguments += ["--remount-ro", "/", "--chdir", root, "--json-status-fd", str(inherited.status)]
    arguments += [] if inherited.seccomp is None else ["--seccomp", str(inherited.seccomp)]
    return [*arguments, "--", *_limited(command)]


def _system(world: World, inherited: Inherited, *, network: bool) -> Iterator[str]:
    """Everything but the workspace."""
    for path in map(Path, ROOT_LINKS):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp", "--dir", HOME)  # noqa: S108
    yield from ("--file", str(inherited.git_config), f"{HOME}/.gitconfig")
    yield from ("--dir", f"{HOME}/.config/git", "--file", str(inherited.git_ignore), f"{HOME}/.config/git/ignore")
    yield from ("--dir", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")  # noqa: S108
    # An installation may show paths below any of these.
    for path in world.exposed(network=network):
        yield from ("--ro-bind", str(path.resolve()), str(path))
    yield from ("--ro-bind-data", str(inherited.passwd), "/etc/passwd")
    yield from ("--ro-bind-data", str(inherited.group), "/etc/group")


def _masks(command: Command, world: World, user: User | None) -> Iterator[str]:
    """Mounts over parts of the workspace, outer ones first: a mount cannot be written through, read or renamed.

    A hidden file becomes a device on a mount without devices, which nobody can open. What the command's user
    cannot reach needs no mask, and bwrap could not mount one.
    """
    kinds = dict.fromkeys(command.pinned, "pin") | dict.fromkeys(command.frozen, "freeze")
    kinds |= dict.fromkeys([*command.hidden, *_own(command, world)], "hide")
    for name in sorted(kinds, key=lambda name: name.split("/")):
        path = command.root / name
        above = {kinds.get(str(folder)) for folder in Path(name).parents if str(folder) != name}
        covered = "hide" in above or ("freeze" in above and kinds[name] != "hide")
        if covered or not reaches(user, command.root, path) or path.is_symlink() or not path.exists():
            continue
        match kinds[name]:
            case "pin":
                yield from ("--ro-bind" if command.mode is Mode.READ_ONLY else "--bind", str(path), str(path))
            case "freeze":
                yield from ("--ro-bind", str(path), str(path))
            case _ if path.is_dir():
                yield from ("--perms", "0000", "--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path))
            case _:
                yield from ("--ro-bind", "/dev/null", str(path))


def _own(command: Command, world: World) -> list[str]:
    """The server's own paths in the workspace."""
    return [str(path.relative_to(command.root)) for path in world.private if path.is_relative_to(command.root)]


def _limited(command: Command) -> list[str]:
    """The command behind a shell that sets its limits; one that is lower already stays."""
    limits = rlimits(command.timeout, shared=False)
    words = [f"ulimit {flag} {limits[name] // unit}" for name, (flag, unit) in _ULIMITS.items()]
    script = f'{{ echo 1000 >/proc/self/oom_score_adj; {"; ".join(words)}; }} 2>/dev/null; exec "$@"'
    return ["bash", "-c", script, "bash", *command.argv]
