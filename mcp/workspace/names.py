"""How a name is shown, and which existing name was meant: the one that is shown so, another spelling, a slip. Pure.

macOS stores names decomposed (NFD), writes U+202F before AM and PM in screenshot names and curls apostrophes;
people and models type none of that (pi-mono#181, pi-mono#1078). A name that cannot be shown as it is still has to
be of use to a host that has nothing but what it was shown.

Names are as `os.fsdecode` gives them: a byte that is not UTF-8 is a lone surrogate.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_PLAIN: Final = str.maketrans(
    {
        "\N{NO-BREAK SPACE}": " ",
        "\N{NARROW NO-BREAK SPACE}": " ",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{MODIFIER LETTER APOSTROPHE}": "'",
    }
)
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
_NO_CHARACTER: Final = re.compile("[\ud800-\udfff]")
#: Control characters, line and paragraph separators, and what changes the direction of text around it (Unicode TR 36).
_DISGUISING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SIMILARITY: Final = 0.8
#: A suggestion is not worth comparing more names than this.
_COMPARED: Final = 500


def valid(name: str) -> str:
    """A name as valid Unicode: a replacement character for each byte that is not UTF-8."""
    return name if name.isascii() else _NO_CHARACTER.sub(_REPLACED, name)


def printable(name: str) -> str:
    """A name as a piece of one line: a replacement character also for what can make it look like something else.

    Spaces of any width and joiners stay, so that the name can be given as it is shown.
    """
    return name if name.isprintable() else _DISGUISING.sub(_REPLACED, name)


def folded(name: str) -> str:
    """The spelling under which names count as the same: NFC, plain spaces, plain apostrophes."""
    return unicodedata.normalize("NFC", name).translate(_PLAIN)


def has_other_spellings(name: str) -> bool:
    """Whether a different name could fold to the same; false for nearly every name in a source tree."""
    return not name.isascii() or " " in name or "'" in name


def same_name(name: str, entries: Iterable[str]) -> str | None:
    """The only entry that is `name` in another spelling, or else is shown so; None when there is none or more."""
    wanted = folded(name)
    others = [entry for entry in entries if entry != name]
    found = [entry for entry in others if folded(entry) == wanted] or shown_as(name, others)
    return found[0] if len(found) == 1 else None


def shown_as(name: str, entries: Iterable[str]) -> list[str]:
    """The entries that have something in place of which a replacement character in `name` is shown."""
    if _REPLACED not in name:
        return []
    wanted = folded(printable(name))
    return [entry for entry in entries if _REPLACED not in entry and wanted in _as_shown(entry)]


def _as_shown(entry: str) -> set[str]:
    """The entry as this server shows it, and as decoders do, which replace a broken sequence once (Unicode 3.9)."""
    decoded = os.fsencode(entry).decode("utf-8", "replace")
    return {folded(printable(entry)), folded(printable(decoded))}


def similar_name(name: str, entries: Iterable[str]) -> str | None:
    """The entry most like `name`, first of all one that differs in case only; None when none is close."""
    wanted = name.casefold()
    by_case = {entry.casefold(): entry for entry in entries}
    if wanted in by_case:
        return by_case[wanted]
    likely = [entry for entry in by_case if entry[:1] == wanted[:1]] if len(by_case) > _COMPARED else list(by_case)
    close = difflib.get_close_matches(wanted, likely[:_COMPARED], n=1, cutoff=_SIMILARITY)
    return by_case[close[0]] if close else None
