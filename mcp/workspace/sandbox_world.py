"""What a sandboxed command gets to see of the machine: folders, environment, user, resource limits.

One table for all steps of the ladder, so that a command finds the same world in each. Nothing here starts a process.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Where programs, libraries and toolchains lie, as far as they exist.
_PROGRAMS: Final = ("/usr", "/opt", "/nix")
#: Names in the root that are folders on some systems and links into /usr on others.
ROOT_LINKS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Settings that programs need and that hold no secrets.
_SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
)
_NETWORK_SETTINGS: Final = ("/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf")

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_USER: Final = "agent"

#: What `~/.gitconfig` says: who commits where the repository names nobody, and that a repository may belong to
#: another user, since all that git could run for it stays in the sandbox.
GIT_CONFIG: Final = f"[user]\n\tname = {_USER}\n\temail = {_USER}@superpi.invalid\n[safe]\n\tdirectory = *\n"

#: Resource limits of one process, in bytes; core dumps are off. See `rlimits`.
MOST_ADDRESS_SPACE: Final = 32 * 1024**3
MOST_FILE_SIZE: Final = 4 * 1024**3
#: Most processes and threads: of one command where they are counted by user namespace (Linux 5.14), else of
#: everything that the user runs.
MOST_PROCESSES: Final = 1024
MOST_PROCESSES_OF_USER: Final = 8192

#: Whom commands run as when both the server and the workspace are root's.
NOBODY: Final = 65_534


@dataclass(frozen=True, slots=True)
class World:
    """What the installation adds: more paths to read, and the server's own paths, which no command may reach."""

    readable: tuple[Path, ...] = ()
    private: tuple[Path, ...] = ()

    def exposed(self, *, network: bool) -> Iterator[Path]:
        """The paths to show read-only; all of them exist. One that holds a private path is shown without it."""
        settings = _SETTINGS + _NETWORK_SETTINGS if network else _SETTINGS
        for path in (*map(Path, (*_PROGRAMS, *settings)), *self.readable):
            if path.exists():
                yield from _carve(path, self.private)

    def holds_private(self, root: Path) -> bool:
        """Whether one of the server's own paths lies in that folder, or is it."""
        return any(private.is_relative_to(root) for private in self.private)

    def environment(self, home: str, tmp: str) -> dict[str, str]:
        """The whole environment of a command."""
        bins = [str(path / "bin") for path in self.readable if (path / "bin").is_dir()]
        zone = {"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}
        return zone | {
            "PATH": ":".join([*bins, _PATH]),
            "HOME": home,
            "TMPDIR": tmp,
            "USER": _USER,
            "LOGNAME": _USER,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PAGER": "cat",
            # git reads no settings of the machine, and asks nobody
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }


def _carve(path: Path, private: tuple[Path, ...]) -> Iterator[Path]:
    """The path, or the parts of it beside what is private."""
    real = path.resolve()
    if any(real.is_relative_to(hidden) for hidden in private):
        return
    inside = tuple(hidden for hidden in private if hidden.is_relative_to(real))
    if not inside:
        yield path
        return
    for child in sorted(path.iterdir()):
        yield from _carve(child, inside)


def program(name: str, environment: dict[str, str]) -> str:
    """The absolute path of a program by the command's own PATH; the name itself when there is none."""
    return shutil.which(name, path=environment["PATH"]) or name


def passwd(uid: int, gid: int) -> tuple[bytes, bytes]:
    """An /etc/passwd and an /etc/group with one line each."""
    return f"{_USER}:x:{uid}:{gid}:Super-Pi:/tmp/home:/bin/bash\n".encode(), f"{_USER}:x:{gid}:\n".encode()


def git_ignore(hidden: Iterable[str]) -> bytes:
    """A `~/.config/git/ignore` that names these paths, so that `git add -A` passes over what cannot be read.

    Git holds it against files that it does not track, by their place in the repository (gitignore(5)).
    """
    special = (re.sub(r"([\\\\*?\[]|\s\Z)", r"\\\1", name) for name in hidden if "\n" not in name)
    return b"".join(b"/" + os.fsencode(name) + b"\n" for name in special)


def rlimits(timeout: float, *, shared: bool) -> dict[str, int]:
    """Limits by the name that module `resource` gives them. CPU time is what all cores give within the timeout."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": MOST_ADDRESS_SPACE,
        "RLIMIT_FSIZE": MOST_FILE_SIZE,
        "RLIMIT_CPU": math.ceil(timeout) * (os.cpu_count() or 1) + 1,
        "RLIMIT_NPROC": MOST_PROCESSES_OF_USER if shared or _kernel() < (5, 14) else MOST_PROCESSES,
    }


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())


@dataclass(frozen=True, slots=True)
class User:
    """An unprivileged user to run commands as."""

    uid: int
    gid: int


def user_for(root: Path) -> User | None:
    """Whom a server that runs as root becomes for a command: the workspace's owner, never root. None: itself."""
    if os.geteuid() != 0:
        return None
    owner = root.stat()
    return User(owner.st_uid, owner.st_gid or NOBODY) if owner.st_uid else User(NOBODY, NOBODY)


def reaches(user: User | None, root: Path, path: Path) -> bool:
    """Whether the user gets from `root` to a path below it, by the folders on the way."""
    return all(enters(user, folder) for folder in path.parents if folder.is_relative_to(root))


def enters(user: User | None, folder: Path) -> bool:
    """Whether the user gets into a folder: by its mode, or, where access control lists say more, perhaps."""
    if user is None:
        return os.access(folder, os.X_OK)
    status = folder.stat()
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return bool(status.st_mode >> shift & 1) or "system.posix_acl_access" in os.listxattr(folder)
