"""What a command is and what it came to: the values that tools and sandboxes share."""

from __future__ import annotations

import enum
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auth.permissions import Mode

#: What is said when there is no folder at `root` any more.
WORKSPACE_GONE: Final = (
    "The command was not run: the workspace folder is gone. Whoever runs the server must put it back, or serve "
    "another one."
)


class SandboxStep(enum.StrEnum):
    """The rungs of the ladder, safest first."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    UNSANDBOXED = "unsandboxed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `root` is the real path of the workspace and the working directory; `timeout` is in seconds.

    `hidden` and `frozen` are existing paths relative to `root` that the command must not read and must not
    write; `pinned` are folders that it must not rename. Only the bubblewrap step can hold them. With `spool`
    the full output of a truncated result is kept in the workspace.
    """

    argv: tuple[str, ...]
    root: Path
    mode: Mode
    timeout: float
    principal: str = "anonymous"
    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    spool: bool = True


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command came to: `exit_code` is 128+N after signal N, `duration` is in seconds.

    `output` is the end of stdout and stderr in one stream, cleaned, within the limits; it is whole unless
    `truncated`. Lines count from 1 to `total_lines`, `output` shows `first_line` to `last_line`; where it shows
    only the end of one overlong line, `cut_line_bytes` is that line's size and otherwise 0. `total_bytes` is
    the size of the whole cleaned output. `spool` is the path, relative to the workspace, of a file with all of
    it, or with its beginning when `spool_capped`.
    """

    exit_code: int
    output: str
    duration: float
    timed_out: bool
    truncated: bool
    total_lines: int
    total_bytes: int
    first_line: int
    last_line: int
    cut_line_bytes: int = 0
    spool: str | None = None
    spool_capped: bool = False


def is_gone(root: Path) -> bool:
    """Whether there is no folder any more; one that cannot be looked at is not gone."""
    try:
        return not stat.S_ISDIR(root.stat().st_mode)
    except OSError as error:
        return isinstance(error, (FileNotFoundError, NotADirectoryError))
