"""The files of a workspace as a short outline. Pure: paths in, lines out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mcp.workspace.names import printable

#: Levels and lines that an outline has at most.
MOST_LEVELS: Final = 3
MOST_LINES: Final = 200


@dataclass(slots=True)
class _Folder:
    folders: dict[str, _Folder] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    count: int = 0


def outline(paths: Iterable[str]) -> tuple[str, ...]:
    """Lines for POSIX paths relative to the root: folders first, with the number of files below them.

    As many levels are shown as fit; what is left off is said on the last line.
    """
    root = _Folder()
    for path in paths:
        _add(root, path.split("/"))
    for levels in range(MOST_LEVELS, 0, -1):
        lines = _lines(root, levels, "")
        if len(lines) <= MOST_LINES:
            return tuple(lines)
    return (*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more")


def counted(count: int) -> str:
    """A number of files in words."""
    return "1 file" if count == 1 else f"{count:,} files"


def _add(root: _Folder, parts: list[str]) -> None:
    root.count += 1
    folder = root
    for name in parts[:-1]:
        folder = folder.folders.setdefault(name, _Folder())
        folder.count += 1
    folder.files.append(parts[-1])


def _lines(folder: _Folder, levels: int, indent: str) -> list[str]:
    found: list[str] = []
    for name in sorted(folder.folders, key=_order):
        inner = folder.folders[name]
        found.append(f"{indent}{printable(name)}/ ({counted(inner.count)})")
        if levels > 1:
            found += _lines(inner, levels - 1, indent + "  ")
    return found + [indent + printable(name) for name in sorted(folder.files, key=_order)]


def _order(name: str) -> tuple[str, str]:
    return name.casefold(), name
