"""Contained opening for systems without `openat2`: one `openat` a component, none of which may be a link.

Knows file descriptors and relative names only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from typing import Final

_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HANDLE_ONLY: Final = getattr(os, "O_PATH", 0)
_GET_PATH: Final[int | None] = getattr(fcntl, "F_GETPATH", None)
_PATH_MAX: Final = 1024


def open_exact(folder: int, relative: str, flags: int, mode: int = 0) -> int:
    """Open a name below `folder` that contains no link and no `..`. Raises OSError; ELOOP for a link.

    A handle-only open becomes an open for reading, so that `reopen` can duplicate it; special files give ENXIO.
    """
    parts = [part for part in relative.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    current = folder
    try:
        for part in parts[:-1]:
            following = _step(current, part)
            if current != folder:
                os.close(current)
            current = following
        return _last(current, parts[-1] if parts else ".", flags, mode)
    finally:
        if current != folder:
            os.close(current)


def _last(folder: int, name: str, flags: int, mode: int) -> int:
    """Open the last component; a FIFO, socket or device is not even opened."""
    if not flags & os.O_CREAT:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    return os.open(name, (flags & ~_HANDLE_ONLY) | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=folder)


def _step(folder: int, name: str) -> int:
    """Open a folder inside a folder; a link gives ELOOP (Linux says ENOTDIR for it)."""
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def real_path(fd: int, expected: str) -> str:
    """The path that the system reports for `fd` (macOS, with the case that the disk has), else `expected`."""
    if _GET_PATH is None:
        return expected
    return os.fsdecode(fcntl.fcntl(fd, _GET_PATH, bytes(_PATH_MAX)).rstrip(b"\0"))
