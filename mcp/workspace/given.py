"""Reading a path as callers write it: which root it is about and which name below that root. Pure but for links.

It decides nothing about containment; that is the opening's business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from mcp.faults import Fault
from mcp.workspace.complaints import outside

_FILE_URL: Final = "file://"
_PATH_BYTES: Final = 4095


@dataclass(frozen=True, slots=True)
class Address:
    """A root and a name relative to it: `.`, or components that may still hold `..` and links.

    `folder` is set when the path ends in a slash and so can only mean a folder.
    """

    root: str
    relative: str
    folder: bool = False


def address(given: str, roots: tuple[str, ...]) -> Address | Fault:
    """Where a path as given points to. `roots` are absolute and real, the workspace root first."""
    if not given:
        return Fault("The path is empty. Give a path relative to the workspace root, or . for the root itself.")
    try:
        size = len(os.fsencode(given))
    except UnicodeEncodeError:
        return Fault("The path is not valid Unicode: it contains half of a surrogate pair.")
    if size > _PATH_BYTES:
        return Fault(f"The path is too long: {size} bytes, at most {_PATH_BYTES} are possible.")
    text = _unmarked(given, roots[0])
    if "\0" in text:
        return Fault("The path contains a NUL character, which no file name can.")
    if not text.startswith("/"):
        return _below(roots[0], text)
    return _absolute(text, roots) or outside(given)


def _unmarked(given: str, root: str) -> str:
    """The path without the marks that hosts put before it: `@` (a mention) and `file://`.

    A name that really starts with `@` (`@types/x.d.ts`) stays as it is when the root has such an entry.
    """
    text = given
    if text.startswith("@") and "\0" not in text and not os.path.lexists(f"{root}/{text.split('/', 1)[0]}"):
        text = text[1:]
    if text[: len(_FILE_URL)].lower() == _FILE_URL:
        text = unquote(text[len(_FILE_URL) :], errors="surrogateescape")
        text = text.removeprefix("localhost") if text.startswith("localhost/") else text
    return text


def _below(root: str, text: str) -> Address:
    """An address from a relative path; empty components and dots are dropped, `..` is kept for the kernel."""
    parts = [part for part in text.split("/") if part not in {"", "."}]
    return Address(root, "/".join(parts) or ".", folder=text.endswith("/"))


def _absolute(text: str, roots: tuple[str, ...]) -> Address | None:
    """An address from an absolute path into a root, named as it is or through a link that leads there."""
    for candidate in (text, os.path.realpath(text) + ("/" if text.endswith("/") else "")):
        for root in roots:
            below = f"{root.rstrip('/')}/"
            if candidate == root or candidate.startswith(below):
                return _below(root, candidate[len(below) :])
    return None
