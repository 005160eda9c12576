"""Locks on files by real path, held between threads, processes and pods that share a workspace.

A lock is a `flock` on one of 4,096 files in `<root>/.superpi/locks/`, chosen by a hash of the file's name: two
files may share one, which only makes one wait for the other. A caller holds at most one lock and never waits
for it inside the kernel, so nothing can deadlock. What is done under the lock is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from dataclasses import dataclass
from typing import Final

from mcp.faults import Fault
from mcp.workspace import kernel
from mcp.workspace.opening import Place, open_exact

#: The folder in a root that belongs to the server; no tool writes there.
STATE_FOLDER: Final = ".superpi"
_LOCKS: Final = "locks"
_HASH_DIGITS: Final = 3
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_UNAVAILABLE: Final = Fault(
    f"The workspace cannot be changed: the server cannot keep its locks in {STATE_FOLDER}/ at the workspace root."
    " The workspace is read-only for it, or something else has that name. Nothing was changed."
)


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that is held until `release`."""

    fd: int

    def release(self) -> None:
        """Let the next one have it; once."""
        os.close(self.fd)


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else holds the lock."""


def try_lock(place: Place) -> Held | Busy | Fault:
    """Take the lock on a file without waiting. A Fault says that this workspace cannot have locks."""
    try:
        fd = _open_lock(place)
    except OSError:
        return _UNAVAILABLE
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        return Busy() if error.errno in {errno.EAGAIN, errno.EACCES} else _UNAVAILABLE
    return Held(fd)


def _open_lock(place: Place) -> int:
    """Open the lock file of a place, and make the folders for it the first time. Raises OSError."""
    digest = hashlib.sha256(os.fsencode(place.relative)).hexdigest()[:_HASH_DIGITS]
    lock = Place(place.root, f"{STATE_FOLDER}/{_LOCKS}/{digest}")
    try:
        return open_exact(lock, _CREATE, 0o666)
    except FileNotFoundError:
        make_state_folder(place.root, _LOCKS)
        return open_exact(lock, _CREATE, 0o666)


def make_state_folder(root: str, name: str) -> None:
    """Make `<root>/.superpi/<name>` and tell git to ignore it. Raises OSError; never follows a link."""
    base = os.open(root, kernel.FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(STATE_FOLDER, dir_fd=base)
    finally:
        os.close(base)
    state = open_exact(Place(root, STATE_FOLDER), kernel.FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            ignore = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=state)
            try:
                os.write(ignore, b"*\n")
            finally:
                os.close(ignore)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=state)
    finally:
        os.close(state)
