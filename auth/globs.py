"""File patterns of rules: does a pattern name a path? Pure text, knows neither policies nor file systems.

The dialect is that of `.gitignore`: `*` and `?` stay within a name, `**` spans folders, `[...]` and `{a,b}`
choose, a slash inside the pattern ties it to the root, without one it names files and folders at any depth,
and a pattern that ends in `/` or `/**` is the whole folder. There is no escape character; `[*]` is a literal
star. A path is POSIX and relative to the workspace (`.` is the root), or absolute for an extra root.

Two questions are asked. `names` is for what a rule allows: exact, so that nothing is allowed by accident.
`covers` is for what a rule denies: it disregards case, Unicode composition and the spellings by which macOS
and Windows file systems reach the same file, and covers everything below a folder that matches.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

#: Most patterns that the braces of one may stand for; more is refused rather than expanded.
MOST_ALTERNATIVES: Final = 256

_INNERMOST_BRACES: Final = re.compile(r"\{([^{},]*+,[^{}]*+)\}")
#: Code points that HFS+ leaves out when it compares names (the list of git's core.protectHFS).
_IGNORED_BY_HFS: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF], None
)
_NTFS_STREAM: Final = re.compile(r"::?\$.*\Z", re.DOTALL)

Segments = tuple[str, ...]
#: One expression an item; None stands for any number of items.
Parts = tuple[re.Pattern[str] | None, ...]
_NOTHING: Final = re.compile(r"(?!)")


def expand_braces(pattern: str) -> tuple[str, ...] | None:
    """The patterns that `{a,b}` stands for, nested ones too; None when they are more than `MOST_ALTERNATIVES`.

    A brace without a partner or without a comma is a character like any other.
    """
    pending, done = [pattern], dict[str, None]()
    while pending:
        text = pending.pop(0)
        found = _INNERMOST_BRACES.search(text)
        if found is None:
            done[text] = None
        else:
            pending += [text[: found.start()] + choice + text[found.end() :] for choice in found[1].split(",")]
        if len(pending) + len(done) > MOST_ALTERNATIVES:
            return None
    return tuple(done)


@lru_cache(maxsize=4096)
def rooted(pattern: str) -> tuple[str, ...] | None:
    """The pattern as globs from the root, without braces or shorthands; None when it has too many alternatives."""
    alternatives = expand_braces(pattern)
    if alternatives is None:
        return None
    return tuple(dict.fromkeys(glob for text in alternatives for glob in _root(text)))


@lru_cache(maxsize=4096)
def is_everything(pattern: str) -> bool:
    """Whether the pattern says nothing about names: `*`, `**`, `**/*` and their like."""
    parts = [glob.split("/") for glob in rooted(pattern) or ()]
    return any(set(glob) <= {"*", "**"} and "**" in glob and glob.count("*") <= 1 for glob in parts)


def literal(path: str) -> str:
    """A pattern for exactly this path: what patterns give a meaning to stands for itself in brackets."""
    return re.sub(r"[*?\[\]{}]", lambda found: f"[{found[0]}]", path)


def names(pattern: str, path: str) -> bool:
    """Whether the pattern names exactly this path, in this case; Unicode composition does not matter."""
    return any(spans(_exact(glob), _split(unicodedata.normalize("NFC", path))) for glob in rooted(pattern) or ())


def covers(pattern: str, path: str) -> bool:
    """Whether the pattern names this path or a folder above it, however a file system lets it be spelled.

    A pattern with too many alternatives covers everything: what cannot be judged stays denied.
    """
    globs = rooted(pattern)
    if globs is None:
        return True
    spellings = _spellings(path)
    return any(spans(_folded(glob), spelling) for glob in globs for spelling in spellings)


def covers_any(patterns: tuple[str, ...], path: str) -> bool:
    """Whether any of the patterns covers the path; asked of a fixed set for every file of a search."""
    anywhere, others = _joined(patterns)
    spellings = _spellings(path)
    if any(anywhere.match(name) for spelling in spellings for name in spelling):
        return True
    return any(spans(parts, spelling) for parts in others for spelling in spellings)


@lru_cache(maxsize=64)
def _joined(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[Parts, ...]]:
    """One expression for all patterns that are a name at any depth, and the others one by one."""
    globs = [glob for pattern in patterns for glob in rooted(pattern) or ("**",)]
    parts = [_folded(glob) for glob in globs]
    names = [part[1].pattern for part in parts if _is_name(part) and part[1] is not None]
    others = tuple(part for part in parts if not _is_name(part))
    return re.compile("|".join(names)) if names else _NOTHING, others


def _is_name(parts: Parts) -> bool:
    """Whether the parts are `**/name/**`, as most rules are."""
    return len(parts) == 3 and parts[0] is parts[2] is None and parts[1] is not None


def spans(parts: Parts, items: Sequence[str | None]) -> bool:
    """Whether the parts fit the items one by one, a None part any number of them and a None item only such a part.

    Going back to the last None part is enough, so it takes at most the product of the lengths.
    """
    if _is_name(parts) and (name := parts[1]) is not None:
        return any(item is not None and name.match(item) for item in items)
    at = of = 0
    retry: tuple[int, int] | None = None
    while at < len(items):
        part = parts[of] if of < len(parts) else _NOTHING
        if part is None:
            retry, of = (of, at), of + 1
        elif (item := items[at]) is not None and part.match(item):
            at, of = at + 1, of + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            of, at = retry[0] + 1, retry[1]
        else:
            return False
    return all(part is None for part in parts[of:])


def _root(text: str) -> tuple[str, ...]:
    folder = text.endswith("/")
    stem = re.sub(r"/{2,}", "/", text).removesuffix("/")
    while stem.startswith("./"):
        stem = stem[2:]
    if stem in {"", ".", "*", "**"}:
        return ("**",)
    tail = "/**" if folder and not stem.endswith("/**") else ""
    if stem.startswith("/"):
        return (stem + tail, stem[1:] + tail)
    return (stem + tail,) if "/" in stem else (f"**/{stem}{tail}",)


@lru_cache(maxsize=4096)
def _exact(glob: str) -> Parts:
    return _compile(unicodedata.normalize("NFC", glob))


@lru_cache(maxsize=4096)
def _folded(glob: str) -> Parts:
    return _compile(_fold(glob if f"/{glob}".endswith("/**") else glob + "/**"))


def _compile(glob: str) -> Parts:
    """One expression a segment, None for `**`. `fnmatch` writes expressions that do not backtrack."""
    return tuple(None if part == "**" else re.compile(fnmatch.translate(part)) for part in glob.split("/"))


def _split(path: str) -> Segments:
    """The names of a path from the root; an absolute path begins with an empty one."""
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    return ("", *parts) if path.startswith("/") else parts


def _fold(text: str) -> str:
    """Caseless canonical form (Unicode 3.13, D145), composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


@lru_cache(maxsize=4096)
def _spellings(path: str) -> tuple[Segments, ...]:
    plain = _split(_fold(path))
    stripped = tuple(_stripped(name) for name in plain)
    return (plain,) if stripped == plain else (plain, stripped)


def _stripped(name: str) -> str:
    """The name without what HFS+ ignores and NTFS cuts off (git's core.protectHFS and core.protectNTFS)."""
    bare = _NTFS_STREAM.sub("", name.translate(_IGNORED_BY_HFS)).rstrip(" .")
    return bare or name
