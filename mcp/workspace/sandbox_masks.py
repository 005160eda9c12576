"""What a sandbox must cover up in a workspace: the existing paths that deny rules match.

A mount masks a path, while a rule is a pattern; so the workspace is listed before every command that a rule
concerns. The listing must be complete or the command is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auth import globs
from mcp.faults import Fault
from mcp.workspace.sandbox_world import User, enters, user_for
from mcp.workspace.shell_command import WORKSPACE_GONE, is_gone

#: How long a workspace may take to be listed, in seconds, and how many mounts a command gets at most.
LISTING_SECONDS: Final = 10.0
MOST_MASKS: Final = 1000

_LIST: Final = ("--no-config", "--no-messages", "--files", "--null", "--hidden", "--no-ignore")
#: ripgrep's exit codes: something listed, nothing listed, something could not be read.
_SOME, _NONE, _UNREADABLE = 0, 1, 2

_TOO_SLOW: Final = (
    f"The command was not run: rules deny paths here, and the workspace could not be searched for them within "
    f"{LISTING_SECONDS:g} s. Remove what need not be in the workspace, or try again."
)
_TOO_MANY: Final = (
    f"The command was not run: rules deny more than {MOST_MASKS} single paths of the workspace, too many to mask. "
    "Rules that name whole folders need one mask each."
)
_CANNOT_LIST: Final = (
    "The command was not run: rules deny paths here, and the workspace could not be searched for them."
)
_EVERYTHING: Final = (
    "The command was not run: a rule denies reading the whole workspace, and a command would work in it."
)


@dataclass(frozen=True, slots=True)
class Masks:
    """Paths relative to the workspace, as `shell_command.Command` wants them."""

    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()


def find_masks(
    root: Path, hidden: tuple[str, ...], frozen: tuple[str, ...], seconds: float = LISTING_SECONDS
) -> Masks | Fault:
    """The paths below `root` that globs of `auth.permissions.denied_globs` match. Blocks for the listing."""
    # An absolute glob is about extra roots, and no sandbox shows those.
    hidden, frozen = (tuple(glob for glob in kind if not glob.startswith("/")) for kind in (hidden, frozen))
    if not hidden and not frozen:
        return Masks()
    if any(globs.covers(glob, ".") for glob in hidden):
        return Fault(_EVERYTHING)
    try:
        listing = _list(root, (*hidden, *frozen), time.monotonic() + seconds)
        masks = None if listing is None else _masks(root, listing, hidden, frozen)
    except (subprocess.TimeoutExpired, TimeoutError):
        return Fault(_TOO_SLOW)
    except OSError:
        masks = None
    if masks is None:
        return Fault(WORKSPACE_GONE if is_gone(root) else _CANNOT_LIST)
    too_many = len(masks.hidden) + len(masks.frozen) + len(masks.pinned) > MOST_MASKS
    return Fault(_TOO_MANY) if too_many else masks


@dataclass(frozen=True, slots=True)
class _Listing:
    """Names that may match, and folders that could not be looked into but that a command could open."""

    names: tuple[str, ...]
    closed: frozenset[str]


def _list(root: Path, patterns: tuple[str, ...], deadline: float) -> _Listing | None:
    """List what may match; None when that cannot be done. Raises TimeoutExpired or TimeoutError at the deadline."""
    program = _ripgrep()
    if program is None:
        return None
    wider = dict.fromkeys([*_BEYOND_ASCII, *(wide for glob in patterns for wide in _wider(glob))])
    words = [word for glob in wider for word in ("--iglob", glob)]
    done = subprocess.run(  # noqa: S603 - a fixed program; globs are values of an option
        [program, *_LIST, *words],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=max(0.0, deadline - time.monotonic()),
        check=False,
    )
    if done.returncode not in {_SOME, _NONE, _UNREADABLE}:
        return None
    names = tuple(os.fsdecode(name).removeprefix("./") for name in done.stdout.split(b"\0") if name)
    closed = frozenset(_closed(root, deadline)) if done.returncode == _UNREADABLE else frozenset()
    return _Listing(names, closed)


def _ripgrep() -> str | None:
    folders = (str(Path(sys.executable).parent), sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))
    return shutil.which("rg", path=os.pathsep.join(folders))


def _wider(glob: str) -> tuple[str, ...]:
    """Globs in ripgrep's dialect that match all that this one covers, and more.

    What the dialects write differently becomes a wildcard, and a match covers what is below it.
    """
    plain = _CLASS.sub("?", glob)
    loose = _UNLIKE.sub("*", plain)
    if not f"/{loose}".endswith("/**"):
        return loose, f"{loose}/**"
    # What lies below a name is covered, and so is a file of that name.
    stem = loose.removesuffix("/**")
    return (loose, stem) if stem != loose else (loose,)


#: Names beyond ASCII, which rules may match in another case or composition than ripgrep sees: all are looked at.
_BEYOND_ASCII: Final = ("**/*[!\x01-\x7f]*", "**/*[!\x01-\x7f]*/**")
#: A class of characters as `fnmatch` reads it.
_CLASS: Final = re.compile(r"\[!?\]?[^\]/]*\]")
#: Characters beyond those that both dialects take as themselves, or as the same wildcard.
_UNLIKE: Final = re.compile(r"[^A-Za-z0-9 _.,:;=+@#$%&()~'*?/-]+")


def _closed(root: Path, deadline: float) -> Iterator[str]:
    """Folders that hide their contents from the listing, but not from a command whose user owns them."""
    user = user_for(root)
    uid = os.geteuid() if user is None else user.uid
    unreadable: list[str] = []
    for _ in os.walk(root, onerror=lambda error: unreadable.append(error.filename)):
        if time.monotonic() > deadline:
            raise TimeoutError
    for path in unreadable:
        if os.lstat(path).st_uid == uid:
            yield os.path.relpath(path, root)


def _masks(root: Path, listing: _Listing, hidden: tuple[str, ...], frozen: tuple[str, ...]) -> Masks:
    user = user_for(root)
    hide, freeze = set(listing.closed), set[str]()
    for kind, patterns in ((hide, hidden), (freeze, frozen)):
        covered = _covered(listing.names, patterns)
        kind.update(held for name in covered if (held := _held(root, name, user)) is not None)
    by_place = tuple(glob for glob in (*hidden, *frozen) if _by_place(glob))
    places = [held for name in _covered(listing.names, by_place) if (held := _held(root, name, user)) is not None]
    pin = {str(above) for name in places for above in Path(name).parents} - {"."}
    return Masks(tuple(sorted(hide)), tuple(sorted(freeze)), tuple(sorted(pin)))


def _covered(names: tuple[str, ...], patterns: tuple[str, ...]) -> set[str]:
    """The outermost files and folders that any of the globs covers; each folder is judged once."""
    judged: dict[str, bool] = {}
    found: set[str] = set()
    for name in names if patterns else ():
        for prefix in _prefixes(name):
            if prefix not in judged:
                judged[prefix] = globs.covers_any(patterns, prefix)
            if judged[prefix]:
                found.add(prefix)
                break
    return found


def _prefixes(name: str) -> Iterator[str]:
    """The folders above a path from the outermost on, then the path."""
    at = name.find("/")
    while at >= 0:
        if at:
            yield name[:at]
        at = name.find("/", at + 1)
    yield name


def _by_place(glob: str) -> bool:
    """Whether a match depends on the names of folders above it, which a command could change."""
    return "/" in glob.removeprefix("**/").removesuffix("/**")


def _held(root: Path, name: str, user: User | None) -> str | None:
    """What to mask for a path: itself, or a folder above it that is closed but that the command's user could open.

    None where the user cannot get at it anyway, and then it could not be masked either.
    """
    for above in reversed(Path(name).parents):
        folder = root / above
        if not enters(user, folder):
            owner = os.geteuid() if user is None else user.uid
            return str(above) if folder.stat().st_uid == owner else None
    return name
