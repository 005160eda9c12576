"""The files and folders whose names fit a glob, from a list of files in pieces as they come. Bounded memory, no I/O.

ripgrep lists files only, so a folder is known by the files in it: one that holds no file, or only ignored ones, is
not there, as in git.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable
from typing import Final

from mcp.workspace.search_globs import Glob

#: How many of the first names are kept; far more than can be shown, as some may not be.
MOST_KEPT: Final = 20_000


class Listing:
    """Takes names that begin with `./` and end with NUL; keeps those that the glob takes, folders with a slash."""

    def __init__(self, glob: Glob, most: int = MOST_KEPT) -> None:
        self._glob = glob
        self._most = most
        self._rest = b""
        self._folders: set[str] = set()
        self._kept: list[str] = []
        self._forgot = False

    def feed(self, data: bytes) -> bool:
        """Take the next piece; always True, as any name may be among the first."""
        whole, _, self._rest = (self._rest + data).rpartition(b"\0")
        names = os.fsdecode(whole).removeprefix("./").replace("\0./", "\0").split("\0") if whole else []
        if not self._glob.folders_only:
            self._kept += self._fitting(names)
        self._kept += [f"{name}/" for name in self._fitting(self._new_folders(names))]
        if len(self._kept) > 2 * self._most:
            self._kept = heapq.nsmallest(self._most, self._kept, key=_order)
            self._forgot = True
        return True

    def found(self) -> tuple[list[str], bool]:
        """The names in order, and whether these are all."""
        return sorted(self._kept, key=_order)[: self._most], not self._forgot and len(self._kept) <= self._most

    def _fitting(self, names: Iterable[str]) -> list[str]:
        matches = self._glob.matches
        return [name for name in names if matches(name)]

    def _new_folders(self, names: Iterable[str]) -> list[str]:
        """The folders of these names that were not seen before, with those above them."""
        new = {name.rpartition("/")[0] for name in names} - self._folders - {""}
        pending = list(new)
        while pending:
            above = pending.pop().rpartition("/")[0]
            if above and above not in new and above not in self._folders:
                new.add(above)
                pending.append(above)
        self._folders |= new
        return list(new)


def _order(name: str) -> list[str]:
    """What names are sorted by: a folder comes right before all that is in it."""
    return name.removesuffix("/").split("/")
