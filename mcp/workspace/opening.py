"""Opening an address inside the roots, and the real place of what was opened.

Every function raises OSError as the system does; EXDEV stands for leaving the roots. The policy and the words
for users are not known here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from mcp.workspace import kernel
from mcp.workspace.given import Address
from mcp.workspace.names import has_other_spellings, same_name

_ATTEMPTS: Final = 5
_ENTRIES_READ: Final = 20_000
#: The tree changed between two steps, so another attempt may succeed.
CHANGING: Final = frozenset({errno.EAGAIN, errno.ESTALE, errno.ELOOP})


@dataclass(frozen=True, slots=True)
class Place:
    """Where something really is: below which root, and its name relative to that root (`.` for the root)."""

    root: str
    relative: str

    @property
    def real(self) -> str:
        """The absolute path; for the server only, never shown."""
        return self.root if self.relative == "." else f"{self.root.rstrip('/')}/{self.relative}"


@dataclass(frozen=True, slots=True)
class Nearest:
    """How far an address can be followed when Unicode spellings count as the same name.

    `address` is the address with the spellings that exist. `name` is the first component that does not exist (None:
    all of them do), `folder` where it was looked for, and `entries` the names that are there instead.
    """

    address: Address
    name: str | None = None
    folder: str = "."
    entries: tuple[str, ...] = ()


def place_of(real: str, roots: Sequence[str]) -> Place | None:
    """The place of an absolute real path; None when it is in no root."""
    for root in roots:
        if real == root:
            return Place(root, ".")
        below = f"{root.rstrip('/')}/"
        if real.startswith(below):
            return Place(root, real[len(below) :])
    return None


def open_place(where: Address, roots: Sequence[str]) -> tuple[int, Place]:
    """A handle (`kernel.HANDLE`) on what the address names, and its real place."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return _open_once(where, roots)
        except OSError as error:
            if error.errno not in CHANGING:
                raise
    return _open_once(where, roots)


def _open_once(where: Address, roots: Sequence[str]) -> tuple[int, Place]:
    """One attempt at `open_place`."""
    handle, expected = _follow(where, roots)
    try:
        place = place_of(kernel.real_path(handle, expected), roots)
        if place is None:
            raise _left()
    except OSError:
        os.close(handle)
        raise
    return handle, place


def _follow(where: Address, roots: Sequence[str]) -> tuple[int, str]:
    """A handle on what the address names, and the real path it should have.

    The kernel follows links that stay below the root at each step. Where it gives up (an absolute link, `..` above
    the root, no `openat2`) the path is resolved first, and then opened without following anything, so a link that
    is swapped in meanwhile is an error.
    """
    if kernel.has_openat2():
        folder = os.open(where.root, kernel.FOLDER)
        try:
            return kernel.open_following(folder, where.relative, kernel.HANDLE), ""
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        finally:
            os.close(folder)
    place = resolve(where, roots)
    return open_exact(place, kernel.HANDLE), place.real


def resolve(where: Address, roots: Sequence[str]) -> Place:
    """The place that an address leads to, which need not exist. True only until the tree changes."""
    place = place_of(os.path.realpath(f"{where.root}/{where.relative}"), roots)
    if place is None:
        raise _left()
    return place


def open_resolved(where: Address, roots: Sequence[str]) -> tuple[int, Place]:
    """Like `open_place` for an address in which `..` also leaves folders that do not exist."""
    place = resolve(where, roots)
    return open_exact(place, kernel.HANDLE), place


def open_exact(place: Place, flags: int, mode: int = 0) -> int:
    """Open a place without following any link; `mode` is for O_CREAT."""
    folder = os.open(place.root, kernel.FOLDER)
    try:
        return kernel.open_exact(folder, place.relative, flags, mode)
    finally:
        os.close(folder)


def open_deepest(place: Place) -> tuple[int, tuple[str, ...]]:
    """The deepest existing folder on the way to a place, and the names of the folders missing below it."""
    folders = place.relative.split("/")[:-1]
    for depth in range(len(folders), -1, -1):
        parent = Place(place.root, "/".join(folders[:depth]) or ".")
        try:
            return open_exact(parent, kernel.FOLDER), tuple(folders[depth:])
        except FileNotFoundError:
            if depth == 0:
                raise
    raise AssertionError("the loop ends at depth 0")


def nearest(where: Address, roots: Sequence[str]) -> Nearest:
    """Follow an address component by component, taking a unique other spelling for a name that is not there."""
    parts = where.relative.split("/")
    for index, name in enumerate(parts):
        if _exists(replace(where, relative="/".join(parts[: index + 1])), roots):
            continue
        folder = "/".join(parts[:index]) or "."
        entries = _entries(replace(where, relative=folder), roots)
        other = same_name(name, entries) if name not in entries and has_other_spellings(name) else None
        if other is None:
            return Nearest(replace(where, relative="/".join(parts)), name, folder, entries)
        parts[index] = other
    return Nearest(replace(where, relative="/".join(parts)))


def _exists(where: Address, roots: Sequence[str]) -> bool:
    """Whether an address can be opened; one that is outside so far may come back and counts as existing.

    Raises OSError for any other reason than that it does not exist.
    """
    try:
        handle, _ = open_place(where, roots)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.EXDEV:
            return True
        raise
    os.close(handle)
    return True


def _entries(where: Address, roots: Sequence[str]) -> tuple[str, ...]:
    """The names in a folder, at most `_ENTRIES_READ`; none when it cannot be read."""
    try:
        handle, _ = open_place(where, roots)
    except OSError:
        return ()
    try:
        folder = kernel.reopen(handle, kernel.READ | os.O_DIRECTORY)
    except OSError:
        return ()
    finally:
        os.close(handle)
    try:
        with os.scandir(folder) as entries:
            return tuple(entry.name for entry in islice(entries, _ENTRIES_READ))
    except OSError:
        return ()
    finally:
        os.close(folder)


def _left() -> OSError:
    """The error for leaving the roots."""
    return OSError(errno.EXDEV, os.strerror(errno.EXDEV))
