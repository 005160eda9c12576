"""Opening below a folder without following anything out of it: `openat2` on Linux, a walk of `openat` elsewhere.

Raises OSError as the system calls do. It knows file descriptors and relative names only; never a workspace, a
policy or a message for users.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

from mcp.workspace import portable

#: The same number on every architecture that got it after the tables were unified (Linux 5.6).
_OPENAT2: Final = 437
_NO_MAGICLINKS: Final = 0x02
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08

#: A handle that names a file without opening it: no FIFO wakes up, no device notices.
HANDLE: Final = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC
FOLDER: Final = HANDLE | os.O_DIRECTORY
#: How regular files and folders are opened for reading. Never blocks.
READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_DELETED: Final = " (deleted)"


@cache
def _system_call() -> Callable[..., int] | None:
    """The C library's `syscall`, or None where there is none to use."""
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    return function


def _openat2(folder: int, relative: str, flags: int, mode: int, resolve: int) -> int:
    """`openat2(2)` with O_CLOEXEC as given in `flags`. Raises OSError."""
    function = _system_call()
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = struct.pack("QQQ", flags, mode if flags & os.O_CREAT else 0, resolve)
    while True:
        fd = function(_OPENAT2, folder, os.fsencode(relative), how, len(how))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


@cache
def has_openat2() -> bool:
    """Whether the kernel contains paths for us and `/proc` tells what was opened; asked once a process."""
    try:
        folder = os.open("/", FOLDER)
    except OSError:
        return False
    try:
        opened = _openat2(folder, ".", FOLDER, 0, _BENEATH | _NO_MAGICLINKS)
        try:
            return os.readlink(f"/proc/self/fd/{opened}") == "/"  # noqa: PTH115 - a magic link, not a path
        finally:
            os.close(opened)
    except OSError:
        return False
    finally:
        os.close(folder)


def open_following(folder: int, relative: str, flags: int) -> int:
    """Open a name below `folder`, following only links that stay below it step by step.

    Raises OSError; EXDEV when the path leaves the folder, also for an absolute link that points back inside.
    """
    return _openat2(folder, relative, flags, 0, _BENEATH | _NO_MAGICLINKS)


def open_exact(folder: int, relative: str, flags: int, mode: int = 0) -> int:
    """Open a name below `folder` that contains no link at all. Raises OSError; ELOOP when it does."""
    if has_openat2():
        return _openat2(folder, relative, flags, mode, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)
    return portable.open_exact(folder, relative, flags, mode)


def real_path(fd: int, expected: str) -> str:
    """The absolute path of what `fd` names, as the kernel knows it; `expected` where no kernel tells.

    Raises OSError; ESTALE when that file no longer has a name.
    """
    if not has_openat2():
        return portable.real_path(fd, expected)
    path = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - a magic link, not a path
    if path.endswith(_DELETED) and not _names(path, fd):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    return path


def _names(path: str, fd: int) -> bool:
    """Whether the file really is called that (a name may end in ` (deleted)` of its own)."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except OSError:
        return False


def reopen(handle: int, flags: int) -> int:
    """Open for reading what a `HANDLE` names: the same file, whatever its name leads to by now. Raises OSError."""
    if has_openat2():
        return os.open(f"/proc/self/fd/{handle}", flags)
    return os.dup(handle)
