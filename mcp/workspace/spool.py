"""Spool files: the full output of a command whose result shows only its end, kept in the workspace for a day.

The server writes into a folder that commands may have prepared, so every step goes through a directory
descriptor and follows no link. Without a spool a result is only shorter: whatever is in the way, there is none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import Final, Self

#: Where spool files lie, relative to the workspace.
FOLDER: Final = ".superpi/spool"
#: Age at which a spool file is removed, in seconds, and how many are kept at most.
MOST_SECONDS: Final = 24 * 3600
MOST_FILES: Final = 100

_NAME: Final = re.compile(r"[0-9a-f]{32}\.log")
_MOST_SCANNED: Final = 10_000
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Spool:
    """One spool file, open for writing. `path` is its name in the workspace, `capped` whether it is not all."""

    def __init__(self, path: str, fd: int, most: int) -> None:
        self.path, self.capped = path, False
        self._fd, self._left, self._most = fd, most, most

    @classmethod
    def create(cls, root: Path, most: int) -> Self | None:
        """A new file of at most `most` bytes below the workspace at `root`, or None when there can be none."""
        with contextlib.ExitStack() as stack:
            try:
                folder = _folder(root, stack)
                _sweep(folder)
                name = f"{secrets.token_hex(16)}.log"
                fd = os.open(name, _NEW_FILE, 0o644, dir_fd=folder)
                _give_to_owner(fd, root)
            except OSError:
                return None
        return cls(f"{FOLDER}/{name}", fd, most)

    def write(self, data: bytes) -> None:
        """Append UTF-8 text; from the cap on, or when the disk is full, nothing more is kept."""
        if self.capped:
            return
        kept = data if len(data) <= self._left else data[: data.rfind(b"\n", 0, self._left) + 1]
        self._left -= len(kept)
        self.capped = len(kept) < len(data)
        try:
            _write_all(self._fd, kept)
            if self.capped:
                _write_all(self._fd, f"\n[The output goes on; only its first {self._most} bytes are kept.]\n".encode())
        except OSError:
            self.capped = True

    def close(self) -> None:
        """No more is written."""
        os.close(self._fd)


def _folder(root: Path, stack: contextlib.ExitStack) -> int:
    """The spool folder as a descriptor, made where it is missing. Raises OSError when a link is in the way."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    for name in FOLDER.split("/"):
        made = _make(name, fd)
        fd = os.open(name, _DIRECTORY, dir_fd=fd)
        stack.callback(os.close, fd)
        if made:
            _give_to_owner(fd, root)
        if name == ".superpi":
            _keep_out_of_git(fd, root)
    return fd


def _make(name: str, parent: int) -> bool:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
        return True
    return False


def _keep_out_of_git(folder: int, root: Path) -> None:
    with contextlib.suppress(OSError), os.fdopen(os.open(".gitignore", _NEW_FILE, 0o644, dir_fd=folder), "wb") as file:
        file.write(b"*\n")
        _give_to_owner(file.fileno(), root)


def _give_to_owner(fd: int, root: Path) -> None:
    """A server that runs as root leaves nothing in a workspace that its owner cannot remove."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            owner = root.stat()
            os.fchown(fd, owner.st_uid, owner.st_gid)


def _sweep(folder: int) -> None:
    """Remove spool files that are too old, and the oldest of those that are too many with the one to come."""
    files = sorted(_spooled(folder))
    oldest = time.time() - MOST_SECONDS
    for at, (written, name) in enumerate(files):
        if written < oldest or len(files) - at >= MOST_FILES:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)


def _spooled(folder: int) -> list[tuple[float, str]]:
    """Spool files with the time they were written; anything else that lies there is none of ours."""
    found = []
    with os.scandir(folder) as entries:
        for _, entry in zip(range(_MOST_SCANNED), entries, strict=False):
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append((status.st_mtime, entry.name))
    return found


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
