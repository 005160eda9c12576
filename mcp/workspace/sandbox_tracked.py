"""Which denied files need no mask, since git would show their content anyway.

Many teams commit `.env.development` and the like. Masked, such a file looks changed to git, and `git commit -a`,
`git stash` and `git checkout` fail on it. A file whose present content is the one in the index gives nothing away
that `git show` would not. A command can put any id into the index, but not the id of content that it cannot read:
so what git says is only compared with ids that are computed here.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.workspace.sandbox_masks import Masks
from mcp.workspace.shell import Command, Shell

#: Bytes of one file, and of all files of a call, beyond which files stay masked unread.
MOST_FILE_BYTES: Final = 4 * 1024**2
MOST_BYTES: Final = 64 * 1024**2
#: Files in masked folders that are looked at.
MOST_FILES: Final = 2000
#: How long git may take, in seconds.
GIT_SECONDS: Final = 10.0

#: Prints the ids of blobs, one a line. They are all that is wanted: names could be forged.
_SCRIPT: Final = (
    'git --literal-pathspecs ls-files -s -- "$@" | '
    'while read -r mode id _; do case $mode in 100*) echo "$id";; esac; done | sort -u'
)
_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


async def without_tracked(shell: Shell, root: Path, masks: Masks, principal: str) -> Masks:
    """The masks without those over files that the workspace's own repository holds as they are.

    A folder loses its mask when that is so of every file in it. Whatever goes wrong, the masks stay.
    """
    if not masks.hidden or not (root / ".git").exists():
        return masks
    argv = ("bash", "-c", _SCRIPT, "bash", *masks.hidden)
    command = Command(argv, root, Mode.READ_ONLY, GIT_SECONDS, principal=principal, hidden=masks.hidden, spool=False)
    listed = await shell.run(command)
    if isinstance(listed, Fault):
        return masks
    ids = frozenset(line for line in listed.output.splitlines() if _ID.fullmatch(line))
    hidden = await asyncio.to_thread(still_hidden, root, masks.hidden, ids) if ids else masks.hidden
    return replace(masks, hidden=hidden)


def still_hidden(root: Path, hidden: tuple[str, ...], ids: frozenset[str]) -> tuple[str, ...]:
    """Those of the paths below `root` that hold anything but blobs with these ids. Blocks for reading them."""
    budget = _Budget()
    return tuple(name for name in hidden if not _is_public(root / name, ids, budget))


class _Budget:
    """What may still be read in one call."""

    def __init__(self) -> None:
        self.files, self.bytes = MOST_FILES, MOST_BYTES

    def takes(self, size: int) -> bool:
        """Whether a file of that size may be read; it counts from then on."""
        if size > MOST_FILE_BYTES or size > self.bytes or not self.files:
            return False
        self.files, self.bytes = self.files - 1, self.bytes - size
        return True


def _is_public(path: Path, ids: frozenset[str], budget: _Budget) -> bool:
    try:
        return all(_is_blob(file, ids, budget) for file in _files(path))
    except OSError:
        return False


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or every entry below a folder that is no folder. Raises OSError for what cannot be listed."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        yield path
        return
    for child in path.iterdir():
        yield from _files(child)


def _is_blob(path: Path, ids: frozenset[str], budget: _Budget) -> bool:
    """Whether a regular file has the content of one of the blobs. Raises OSError when it cannot be read."""
    with os.fdopen(os.open(path, _OPEN), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not budget.takes(status.st_size):
            return False
        content = file.read(status.st_size + 1)
    return any(blob_id(content, length) in ids for length in {len(each) for each in ids})


def blob_id(content: bytes, length: int) -> str:
    """The id that git gives to a blob: of 40 hexadecimal digits with SHA-1, of 64 with SHA-256 (gitformat-pack)."""
    make = hashlib.sha1 if length == 40 else hashlib.sha256
    return make(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
