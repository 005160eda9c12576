"""Reading a whole file and replacing it in one step, both at a place that `paths` has opened and judged.

A file is replaced by renaming a finished copy over it, so that nobody ever sees half of it; its mode, owner and
access list are kept, other hard links to it are not. Nothing here knows what the contents mean.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from mcp.faults import Fault
from mcp.workspace import complaints
from mcp.workspace.changes import CANCELLED, Gate
from mcp.workspace.locks import Busy, Held, try_lock
from mcp.workspace.paths import Target

Outcome = TypeVar("Outcome")

_BLOCK: Final = 1024 * 1024
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_KEPT_ATTRIBUTES: Final = ("user.", "system.posix_acl_access")
_MAY_ACCESS_EFFECTIVELY: Final = os.access in os.supports_effective_ids


@dataclass(frozen=True, slots=True)
class Written:
    """A file was replaced, or made when `created`; `size` is in bytes."""

    size: int
    created: bool


def under_lock(target: Target, work: Callable[[], Outcome]) -> Outcome | Busy | Fault:
    """Do `work` while holding the lock on the target; Busy when somebody else holds it."""
    lock = try_lock(target.place)
    if not isinstance(lock, Held):
        return lock
    try:
        return work()
    finally:
        lock.release()


def read_whole(target: Target, *, limit: int) -> bytes | Fault:
    """The contents of an existing target, at most `limit` bytes."""
    try:
        return _contents(target.parent_fd, target.name, limit)
    except FileNotFoundError:
        return complaints.conflict(target.given)
    except _TooLargeError as error:
        return Fault(
            f"{complaints.shown(target.given)} is too large to edit: {error.size:,} bytes, at most {limit:,}."
            " Use bash (sed, for example) instead."
        )
    except OSError as error:
        return complaints.failed_open(target.given, error)


def replace(target: Target, content: bytes, gate: Gate, *, expected: bytes | None = None) -> Written | Fault:
    """Make the target hold exactly `content`, in one step.

    Missing folders are made. With `expected` the file must still hold those bytes, else the answer is a conflict
    and the file stays as it is. Nothing is changed once the gate is shut or when a Fault is answered.
    """
    try:
        with contextlib.ExitStack() as opened, contextlib.ExitStack() as made:
            folder = _make_folders(target, opened, made)
            outcome = _replace(folder, target, content, gate, expected)
            if isinstance(outcome, Written):
                made.pop_all()
            return outcome
    except OSError as error:
        return complaints.failed_write(target.given, error)


class _TooLargeError(Exception):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def _contents(folder: int, name: str, limit: int) -> bytes:
    """Read a regular file whole. Raises OSError (a link is ELOOP) and _TooLargeError."""
    fd = os.open(name, _READ, dir_fd=folder)
    try:
        size = os.fstat(fd).st_size
        chunks = []
        total = 0
        while chunk := os.read(fd, min(_BLOCK, limit + 1 - total)):
            chunks.append(chunk)
            total += len(chunk)
            if total > limit:
                raise _TooLargeError(max(size, total))
        return b"".join(chunks)
    finally:
        os.close(fd)


def _make_folders(target: Target, opened: contextlib.ExitStack, made: contextlib.ExitStack) -> int:
    """The folder of the target, made when it is missing: `opened` closes it, `made` takes it away again."""
    current = target.parent_fd
    for name in target.missing:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=current)
            made.callback(_remove_folder, name, current)
        current = os.open(name, _STEP, dir_fd=current)
        opened.callback(os.close, current)
    return current


def _remove_folder(name: str, parent: int) -> None:
    """Take an empty folder away; one that others use by now stays."""
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def _replace(folder: int, target: Target, content: bytes, gate: Gate, expected: bytes | None) -> Written | Fault:
    """Write a copy beside the target and rename it over. Raises OSError and leaves nothing behind."""
    existing = _status(folder, target.name)
    if existing is not None and (refused := _unwritable(folder, target, existing.st_mode)) is not None:
        return refused
    if gate.is_shut:
        return CANCELLED
    temporary = f".superpi-{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, _NEW, 0o666 if existing is None else 0o600, dir_fd=folder)
    try:
        try:
            _fill(fd, content)
            if existing is not None:
                _inherit(fd, folder, target.name, existing)
            os.fsync(fd)
        finally:
            os.close(fd)
        if expected is not None and not _still_holds(folder, target.name, expected):
            return complaints.conflict(target.given)
        with gate.passing() as is_open:
            if not is_open:
                return CANCELLED
            os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
            temporary = ""
    finally:
        if temporary:
            os.unlink(temporary, dir_fd=folder)
    return Written(len(content), created=existing is None)


def _status(folder: int, name: str) -> os.stat_result | None:
    """The status of an entry itself, None when there is none. Raises OSError."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _unwritable(folder: int, target: Target, mode: int) -> Fault | None:
    """Why an existing entry must not be replaced, if so."""
    if stat.S_ISLNK(mode):
        return complaints.conflict(target.given)
    if not stat.S_ISREG(mode):
        return complaints.is_folder(target.given) if stat.S_ISDIR(mode) else complaints.not_regular(target.given, mode)
    if not mode & 0o222:
        return complaints.read_only(target.given, mode)
    if not os.access(target.name, os.W_OK, dir_fd=folder, effective_ids=_MAY_ACCESS_EFFECTIVELY):
        return complaints.no_permission(target.given)
    return None


def _fill(fd: int, content: bytes) -> None:
    """Write all of it. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _inherit(fd: int, folder: int, name: str, existing: os.stat_result) -> None:
    """Give the copy the owner, access list and permissions of the original.

    Set-user-id and set-group-id are lost, as when a file is written in place: they were granted to other contents.
    """
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (existing.st_uid, existing.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(fd, existing.st_uid, existing.st_gid)
    os.fchmod(fd, existing.st_mode & 0o777)
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        original = os.open(name, _READ, dir_fd=folder)
        try:
            for attribute in os.listxattr(original):
                if attribute.startswith(_KEPT_ATTRIBUTES):
                    os.setxattr(fd, attribute, os.getxattr(original, attribute))
        finally:
            os.close(original)


def _still_holds(folder: int, name: str, expected: bytes) -> bool:
    """Whether the file still has those contents. Raises OSError."""
    try:
        return _contents(folder, name, len(expected)) == expected
    except (FileNotFoundError, _TooLargeError):
        return False
