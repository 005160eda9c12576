"""Which existing name was meant: one spelling of Unicode for another, or a slip worth a suggestion. Pure.

macOS stores names decomposed (NFD), writes U+202F before AM and PM in screenshot names and curls apostrophes;
people and models type none of that (pi-mono#181, pi-mono#1078).
"""

from __future__ import annotations

import difflib
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
_SIMILARITY: Final = 0.8
#: A suggestion is not worth comparing more names than this.
_COMPARED: Final = 500


def folded(name: str) -> str:
    """The spelling under which names count as the same: NFC, plain spaces, plain apostrophes."""
    return unicodedata.normalize("NFC", name).translate(_PLAIN)


def has_other_spellings(name: str) -> bool:
    """Whether a different name could fold to the same; false for nearly every name in a source tree."""
    return not name.isascii() or " " in name or "'" in name


def same_name(name: str, entries: Iterable[str]) -> str | None:
    """The only entry that is `name` in another spelling; None when there is none or more than one."""
    wanted = folded(name)
    found = [entry for entry in entries if entry != name and folded(entry) == wanted]
    return found[0] if len(found) == 1 else None


def similar_name(name: str, entries: Iterable[str]) -> str | None:
    """The entry most like `name`, first of all one that differs in case only; None when none is close."""
    wanted = name.casefold()
    by_case = {entry.casefold(): entry for entry in entries}
    if wanted in by_case:
        return by_case[wanted]
    likely = [entry for entry in by_case if entry[:1] == wanted[:1]] if len(by_case) > _COMPARED else list(by_case)
    close = difflib.get_close_matches(wanted, likely[:_COMPARED], n=1, cutoff=_SIMILARITY)
    return by_case[close[0]] if close else None
