"""Ignore files above the folder that is searched: their rules, rewritten as rules of that folder.

ripgrep would read the ignore files of every parent, also above the workspace, and treats an explicit ignore file
as if it lay in the folder searched. So it is told to read none of the parents', and gets the rules of those that
lie in the workspace in the form that this module gives them. What a rule says about the searched folder itself is
dropped: who names an ignored folder wants to see into it (pi-mono#3303, pi#5960).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mcp.faults import Fault
from mcp.workspace import kernel
from mcp.workspace.search_globs import (
    DEEP,
    Component,
    Components,
    Kind,
    component_regex,
    components,
    expand_braces,
    source,
)

#: Names of ignore files, the weaker ones first. git's own count only from the repository's top down.
_GIT_FILES: Final = (".git/info/exclude", ".gitignore")
_OTHER_FILES: Final = (".ignore", ".rgignore")
_MOST_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The text of an ignore file, and the names that lead from its folder to the folder searched."""

    text: str
    below: tuple[str, ...]


def inherited_rules(root: str, relative: str) -> tuple[str, ...]:
    """Gitignore lines for the folder `relative` from the ignore files above it, up to `root`. Reads those files."""
    if relative == ".":
        return ()
    return tuple(line for file in _files_above(root, relative.split("/")) for line in translated(file))


def _files_above(root: str, names: Sequence[str]) -> Iterable[IgnoreFile]:
    """The ignore files above a folder, the weakest first."""
    top = os.open(root, kernel.FOLDER)
    try:
        repository = _repository_depth(top, names)
        for file in (*_GIT_FILES, *_OTHER_FILES):
            for depth in range(repository if file in _GIT_FILES else 0, len(names)):
                text = _read(top, "/".join([*names[:depth], file]))
                if text:
                    yield IgnoreFile(text, tuple(names[depth:]))
    finally:
        os.close(top)


def _repository_depth(top: int, names: Sequence[str]) -> int:
    """How deep the innermost repository begins that the folder is in; 0 when there is none."""
    for depth in range(len(names), 0, -1):
        try:
            os.close(kernel.open_exact(top, "/".join([*names[:depth], ".git"]), kernel.HANDLE))
        except OSError:
            continue
        return depth
    return 0


def _read(top: int, relative: str) -> str:
    """The beginning of a regular file; empty when there is none to read."""
    try:
        fd = kernel.open_exact(top, relative, kernel.READ)
    except OSError:
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
        return os.read(fd, _MOST_BYTES).decode("utf-8-sig", "replace") if regular else ""
    except OSError:
        return ""
    finally:
        os.close(fd)


def translated(file: IgnoreFile) -> list[str]:
    """The rules of one ignore file as rules of the folder below it, in their order."""
    return [rule for line in file.text.splitlines() for rule in _translated_line(line, file.below)]


def _translated_line(line: str, below: Sequence[str]) -> Iterable[str]:
    text = re.sub(r"(?<!\\)\s+\Z", "", line)
    if not text or text.startswith("#"):
        return ()
    sign = "!" if text.startswith("!") else ""
    body = text.removeprefix("!").rstrip("/")
    folder = "/" if text.endswith("/") else ""
    if "/" not in body:
        return (text,)
    expanded = expand_braces(body)
    if isinstance(expanded, Fault):
        return ()
    rests = [rest for pattern in expanded for rest in remainders(pattern, below)]
    return tuple(f"{sign}/{source(rest)}{folder}" for rest in rests)


def remainders(pattern: str, below: Sequence[str]) -> tuple[Components, ...]:
    """What is left of an anchored pattern for a folder that many names below; nothing when it cannot match there.

    A remainder that takes everything in the folder is left out too.
    """
    parsed = components(pattern)
    if isinstance(parsed, Fault):
        return ()
    places = {0}
    for name in below:
        places = {after for place in _reached(parsed, places) for after in _after(parsed, place, name)}
    return tuple(parsed[place:] for place in sorted(places) if not _is_everything(parsed[place:]))


def _reached(pattern: Components, places: Iterable[int]) -> set[int]:
    """The places, and those after a `**` that stands for no folder at all."""
    return {place for place in places if place < len(pattern)} | {
        place + 1 for place in places if place + 1 < len(pattern) and pattern[place] == DEEP
    }


def _after(pattern: Components, place: int, name: str) -> tuple[int, ...]:
    component = pattern[place]
    if component == DEEP:
        return (place,)
    return (place + 1,) if _fits(component, name) else ()


def _fits(component: Component, name: str) -> bool:
    return re.fullmatch(component_regex(component), name, re.DOTALL) is not None


def _is_everything(pattern: Components) -> bool:
    return not pattern or (len(pattern) == 1 and len(pattern[0]) == 1 and pattern[0][0].kind is Kind.STAR)
