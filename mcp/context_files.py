"""The instruction files of a workspace: which count, in what order, and how they are shown. Pure.

AGENTS.md and CLAUDE.md are what coding agents read before they work; one in a folder speaks about that folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mcp.workspace.names import printable

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
#: Files and bytes that are shown at most, of one file and in all.
MOST_FILES: Final = 20
MOST_FILE_BYTES: Final = 32 * 1024
MOST_BYTES: Final = 64 * 1024

_FENCE: Final = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file: its path relative to the root, and its beginning; `whole` when that is all of it."""

    path: str
    content: bytes
    whole: bool


def candidates(paths: Iterable[str]) -> tuple[str, ...]:
    """The instruction files among the paths, outermost first; those of the root are always looked for.

    A file of the root is often a link or ignored, so a listing may lack it.
    """
    found = {path for path in paths if path.rpartition("/")[2] in NAMES} | set(NAMES)
    return tuple(sorted(found, key=lambda path: (path.count("/"), path)))


def instruction_lines(files: Iterable[Instruction], *, left_out: int = 0) -> tuple[str, ...]:
    """The files as Markdown, each in a fence; one that says the same as an earlier one is only named."""
    earlier: dict[bytes, str] = {}
    room = MOST_BYTES
    lines: list[str] = []
    for file in files:
        lines += ["", f"### {printable(file.path)}", ""]
        if (same := earlier.setdefault(file.content, file.path)) != file.path:
            lines.append(f"The same as {printable(same)}.")
            continue
        content = _cut(file.content, min(room, MOST_FILE_BYTES))
        room -= len(content)
        lines += _fenced(content.decode("utf-8-sig", "replace").replace("\r\n", "\n").rstrip("\n"))
        if not file.whole or len(content) < len(file.content):
            lines += ["", f"Only the beginning is shown; read {printable(file.path)} for the rest."]
    if left_out:
        lines += ["", f"{left_out} more instruction files are not shown; find them by name (AGENTS.md, CLAUDE.md)."]
    return tuple(lines[1:]) or ("There are none.",)


def _cut(content: bytes, most: int) -> bytes:
    """At most that many bytes, up to the end of a line."""
    return content if len(content) <= most else content[: content.rfind(b"\n", 0, most) + 1]


def _fenced(text: str) -> Iterator[str]:
    """The text between fences that are longer than any in it."""
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(text))])
    yield f"{fence}markdown"
    yield text
    yield fence
