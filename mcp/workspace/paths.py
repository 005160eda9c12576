"""Contained paths: what a caller names is opened below the workspace, judged by its real path, or refused.

The check and the use are one: the kernel resolves and opens in a single step (`openat2` with RESOLVE_BENEATH),
and the policy is asked about the path of the very file that was opened. Contents are not touched here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from auth.permissions import Allow, Decision
from mcp.faults import Fault
from mcp.workspace import complaints, kernel
from mcp.workspace.given import Address, address
from mcp.workspace.names import shown_as
from mcp.workspace.opening import CHANGING, Place, nearest, open_deepest, open_place, open_resolved, resolve

#: Takes a policy path and answers whether it may be touched.
Permit = Callable[[str], Decision]

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Located:
    """An existing file or folder, open for reading; a context manager that closes `fd`.

    `given` is the path as the caller wrote it, `path` the policy path (POSIX, relative to the root, `.` for the
    root; absolute for extra roots), `place` where it really is (for the server only), `size` in bytes.
    """

    given: str
    path: str
    place: Place
    fd: int
    is_dir: bool
    size: int

    @property
    def real(self) -> Path:
        """The absolute path; for the server only, never shown."""
        return Path(self.place.real)

    def close(self) -> None:
        """Close `fd`; once."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Target:
    """A regular file to create or replace; a context manager that closes `parent_fd`.

    `parent_fd` is the deepest folder that exists, `missing` the folders to make below it, `name` the entry to
    write in the last of them; links were followed to here. The other fields are those of `Located`.
    """

    given: str
    path: str
    place: Place
    parent_fd: int
    missing: tuple[str, ...]
    name: str
    exists: bool

    @property
    def real(self) -> Path:
        """The absolute path; for the server only, never shown."""
        return Path(self.place.real)

    @property
    def root(self) -> Path:
        """The root that the file lies below; for the server only."""
        return Path(self.place.root)

    def close(self) -> None:
        """Close `parent_fd`; once."""
        os.close(self.parent_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders that tools may touch: `root`, and `extra` roots, which are addressed by absolute path.

    All are absolute; links in them are resolved when the value is made.
    """

    root: Path
    extra: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", _real_root(self.root))
        object.__setattr__(self, "extra", tuple(_real_root(path) for path in self.extra))

    @property
    def roots(self) -> tuple[str, ...]:
        """Every root, the workspace root first."""
        return (str(self.root), *map(str, self.extra))

    def locate(self, given: str, permit: Permit, *, directory: bool | None = None) -> Located | Fault:
        """Open an existing file or folder for reading.

        `given` may be relative to the root, absolute inside a root, and start with `@`, `./` or `file://`; links
        are followed while they stay inside. `directory` True demands a folder, False a regular file, None takes
        either; FIFOs, sockets and devices are refused without being opened. `permit` is asked once, with the
        policy path of what was opened. A Fault says what is wrong, or carries the Deny or Ask.
        """
        where = address(given, self.roots)
        if isinstance(where, Fault):
            return where
        found = self._existing(given, where)
        if isinstance(found, Fault):
            return found
        handle, place = found
        try:
            return self._readable(given, handle, place, permit, directory=True if where.folder else directory)
        finally:
            os.close(handle)

    def target(self, given: str, permit: Permit, *, create: bool = True) -> Target | Fault:
        """Where to write: an existing regular file or, with `create`, also one that does not exist yet.

        Links are followed while they stay inside, so that the file is replaced and the link stays. A new file gets
        exactly the name given; an existing one is found in another Unicode spelling too, and then it is the one
        to be replaced. Changes nothing: `permit` is asked, with the policy path, before any folder is made.
        """
        where = address(given, self.roots)
        if isinstance(where, Fault):
            return where
        if where.folder or where.relative.rsplit("/", 1)[-1] in {".", ".."}:
            return Fault(f"{complaints.shown(given)} names a folder. Give the path of a file.")
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._target(given, where, permit, create=create)
            except OSError as error:
                if error.errno not in CHANGING:
                    return complaints.failed_open(given, error)
        try:
            return self._target(given, where, permit, create=create)
        except OSError as error:
            return complaints.failed_open(given, error)

    def _existing(self, given: str, where: Address) -> tuple[int, Place] | Fault:
        """A handle on what the address names, in the spelling given or the only other that exists."""
        try:
            return open_place(where, self.roots)
        except FileNotFoundError:
            return self._existing_by_spelling(given, where)
        except OSError as error:
            return complaints.failed_open(given, error)

    def _existing_by_spelling(self, given: str, where: Address) -> tuple[int, Place] | Fault:
        """A handle on the one thing that has this name in another spelling."""
        try:
            near = nearest(where, self.roots)
            return open_resolved(near.address, self.roots)
        except FileNotFoundError:
            return complaints.missing(given, near.folder, near.name or "", near.entries)
        except OSError as error:
            return complaints.failed_open(given, error)

    def _readable(
        self, given: str, handle: int, place: Place, permit: Permit, *, directory: bool | None
    ) -> Located | Fault:
        """Judge what a handle names and open it for reading."""
        status = os.fstat(handle)
        is_dir = stat.S_ISDIR(status.st_mode)
        if not is_dir and not stat.S_ISREG(status.st_mode):
            return complaints.not_regular(given, status.st_mode)
        decision = permit(self._policy_path(place))
        if not isinstance(decision, Allow):
            return Fault(decision.reason, decision)
        if directory is not None and directory != is_dir:
            return complaints.is_folder(given) if is_dir else complaints.is_file(given)
        try:
            fd = kernel.reopen(handle, kernel.READ | os.O_DIRECTORY if is_dir else kernel.READ)
        except OSError as error:
            return complaints.failed_open(given, error)
        return Located(given, self._policy_path(place), place, fd, is_dir, status.st_size)

    def _target(self, given: str, where: Address, permit: Permit, *, create: bool) -> Target | Fault:
        """One attempt at `target`; raises OSError."""
        found = self._destination(given, where, create=create)
        if isinstance(found, Fault):
            return found
        place, exists = found
        path = self._policy_path(place)
        decision = permit(path)
        if not isinstance(decision, Allow):
            return Fault(decision.reason, decision)
        parent, missing = open_deepest(place)
        name = place.relative.rsplit("/", 1)[-1]
        return Target(given, path, place, parent, missing, name, exists)

    def _destination(self, given: str, where: Address, *, create: bool) -> tuple[Place, bool] | Fault:
        """Where a write goes, and whether a regular file is there already; raises OSError."""
        try:
            return _regular(given, *open_place(where, self.roots))
        except FileNotFoundError:
            near = nearest(where, self.roots)
        try:
            return _regular(given, *open_resolved(near.address, self.roots))
        except FileNotFoundError:
            if not create or len(shown_as(near.name or "", near.entries)) > 1:
                return complaints.missing(given, near.folder, near.name or "", near.entries)
            return resolve(near.address, self.roots), False

    def _policy_path(self, place: Place) -> str:
        """What the policy judges a place by."""
        return place.relative if place.root == str(self.root) else place.real


def _regular(given: str, handle: int, place: Place) -> tuple[Place, bool] | Fault:
    """The place of an existing file when it is a regular one; closes the handle."""
    try:
        mode = os.fstat(handle).st_mode
    finally:
        os.close(handle)
    if stat.S_ISREG(mode):
        return place, True
    return complaints.is_folder(given) if stat.S_ISDIR(mode) else complaints.not_regular(given, mode)


def _real_root(path: Path) -> Path:
    """A root without links in it. Raises ValueError for a relative path, which is a mistake of the wiring."""
    if not path.is_absolute():
        raise ValueError("a workspace root must be an absolute path")
    return Path(os.path.realpath(path))
