"""The words for what went wrong with a path. Pure.

They name the path as the caller gave it, say what to do next, and never hold a directory of the server.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import Final

from mcp.faults import Fault
from mcp.workspace.names import printable, shown_as, similar_name

_SHOWN_CHARS: Final = 200
_NO_PERMISSION: Final = "cannot be opened: the server has no permission on it."
_NO_HANDLES: Final = "cannot be opened: the server has too many files open. Try again."
_CHANGED: Final = "kept changing while it was opened. Try again."

_WORDS: Final = {
    errno.ENOENT: "does not exist.",
    errno.ENOTDIR: "does not exist: a part of it is a file, not a folder.",
    errno.EISDIR: "is a folder, not a file. Use ls to list it.",
    errno.ENXIO: "is not a regular file.",
    errno.ENODEV: "is not a regular file.",
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.ELOOP: "cannot be opened: its symbolic links lead in a circle.",
    errno.ENAMETOOLONG: "is too long: a name holds at most 255 bytes, a path 4,095.",
    errno.EMFILE: _NO_HANDLES,
    errno.ENFILE: _NO_HANDLES,
    errno.EAGAIN: _CHANGED,
    errno.ESTALE: _CHANGED,
}

_NO_SPACE: Final = "cannot be written: no space is left on the server's disk. Nothing was changed."
_NO_WRITE: Final = "cannot be written: the server has no permission to write in its folder. Nothing was changed."

_WRITE_WORDS: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "cannot be written: it would be larger than the server's file size limit. Nothing was changed.",
    errno.EROFS: "cannot be written: it is on a read-only file system. Nothing was changed.",
    errno.EACCES: _NO_WRITE,
    errno.EPERM: _NO_WRITE,
}

_SPECIAL: Final = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def shown(name: str) -> str:
    """A path fit for a message, cut when it is very long. What is to be used as a path goes through `printable`."""
    text = printable(name)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def outside(given: str) -> Fault:
    """The refusal of everything that leads out of the workspace, whether it exists or not."""
    return Fault(f"{shown(given)} is outside the workspace. Give a path below the workspace root.")


def failed_open(given: str, error: OSError) -> Fault:
    """What an error of the system means for the path; EXDEV stands for leaving the workspace."""
    if error.errno == errno.EXDEV:
        return outside(given)
    code = error.errno or errno.EIO
    return Fault(f"{shown(given)} {_WORDS.get(code) or f'cannot be opened: {os.strerror(code)}.'}")


def failed_write(given: str, error: OSError) -> Fault:
    """What an error of the system means for a file that was to be written, and was not."""
    if error.errno in _WORDS and error.errno not in _WRITE_WORDS:
        return failed_open(given, error)
    code = error.errno or errno.EIO
    words = _WRITE_WORDS.get(code) or f"cannot be written: {os.strerror(code)}. Nothing was changed."
    return Fault(f"{shown(given)} {words}")


def conflict(given: str) -> Fault:
    """Somebody else changed the file between reading and writing it."""
    return Fault(f"{shown(given)} was changed by somebody else meanwhile, and was left as it is. Read it again.")


def read_only(given: str, mode: int) -> Fault:
    """A file whose mode forbids writing; replacing it would get around that."""
    permissions = stat.S_IMODE(mode)
    return Fault(f"{shown(given)} is read-only (mode {permissions:04o}), and was left as it is. Change its mode first.")


def no_permission(given: str) -> Fault:
    """A file that the server's own user may not write."""
    return Fault(f"{shown(given)} cannot be written: the server has no permission to write it. Nothing was changed.")


def not_regular(given: str, mode: int) -> Fault:
    """The refusal of a FIFO, socket or device; `mode` is its `st_mode`."""
    kind = next((words for test, words in _SPECIAL if test(mode)), "something else")
    return Fault(f"{shown(given)} is not a regular file: it is {kind}.")


def is_folder(given: str) -> Fault:
    """A folder where a file is wanted."""
    return Fault(f"{shown(given)} {_WORDS[errno.EISDIR]}")


def is_file(given: str) -> Fault:
    """A file where a folder is wanted."""
    return Fault(f"{shown(given)} is a file, not a folder.")


def missing(given: str, folder: str, name: str, entries: Iterable[str]) -> Fault:
    """Nothing has that name. `name` is the first component that is not in `folder`, whose names are `entries`."""
    entries = tuple(entries)
    words = [f"{shown(given)} does not exist."]
    if name in entries:
        words = [f"{shown(given)} is a broken link: what it points to does not exist."]
    elif len(shown_as(name, entries)) > 1:
        words.append("More than one name there is shown like that. Rename one of them with bash.")
    elif similar := similar_name(name, entries):
        words.append(f"Did you mean {printable(similar if folder == '.' else f'{folder}/{similar}')}?")
    elif name != given.rstrip("/").rsplit("/", 1)[-1]:
        words.append(f"There is no {shown(name)} in {'the workspace root' if folder == '.' else shown(folder)}.")
    if given.startswith("~"):
        words.append("~ is not expanded: paths are relative to the workspace root.")
    return Fault(" ".join(words))
