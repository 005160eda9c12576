r"""A caller's text as a person is shown it: on one line, bounded, and unable to look like something else. Pure.

What is not plainly visible is written as an escape, and a backslash as two, so that each shown text stands for one
text only. That goes for control characters and line ends, for spaces of other widths and spaces that would not be
seen, for what changes or has a direction from right to left (it reorders the text around it), and for marks that
strike or pile up (Unicode TR 36).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

#: Characters that are shown of a text, escapes counted as they are written; about three fifths are its beginning.
MOST_SHOWN: Final = 1000
_HEAD: Final = 600
#: Marks in a row that a letter may carry.
_MOST_MARKS: Final = 2
#: Spaces at the ends, and more in a row than indentation needs: what stands behind them would be out of sight.
_TOKEN: Final = re.compile(r"(\A[ ]+|[ ]+\Z|[ ]{9,})|(.)", re.DOTALL)
_NAMED: Final = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
#: They count as printable and are blank (Default_Ignorable_Code_Point, and the braille blank).
_BLANK: Final = frozenset(
    map(chr, [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159])
) | frozenset(map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
#: The combining class of marks that strike a letter through.
_OVERLAY: Final = 1


@dataclass(frozen=True, slots=True)
class Shown:
    """A text to show: all of it in `head`, or its two ends and how many characters are left out between them."""

    head: str
    left_out: int = 0
    tail: str = ""

    @property
    def line(self) -> str:
        """The text as one line, for data."""
        return f"{self.head} [{self.left_out:,} characters are left out] {self.tail}" if self.left_out else self.head

    @property
    def escaped(self) -> bool:
        """Whether there is an escape in it."""
        return "\\" in self.head or "\\" in self.tail


def show(text: str) -> Shown:
    """The text as it is shown, at most `MOST_SHOWN` characters of it."""
    pieces = list(_pieces(text))
    if sum(len(piece) for _, piece in pieces) <= MOST_SHOWN:
        return Shown("".join(piece for _, piece in pieces))
    head = _within(pieces, _HEAD)
    tail = _within(reversed(pieces), MOST_SHOWN - _HEAD)[::-1]
    left_out = sum(size for size, _ in pieces[len(head) : len(pieces) - len(tail)])
    return Shown("".join(head), left_out, "".join(tail))


def _within(pieces: Iterable[tuple[int, str]], room: int) -> list[str]:
    """The first pieces that fit."""
    found: list[str] = []
    for _, piece in pieces:
        room -= len(piece)
        if room < 0:
            break
        found.append(piece)
    return found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """What is shown for each character or run of spaces, with how many characters it is."""
    marks = 0
    for spaces, char in _TOKEN.findall(text):
        if spaces:
            yield len(spaces), f"\\x20{{{len(spaces)}}}"
            continue
        marks = marks + 1 if unicodedata.category(char).startswith("M") else 0
        yield 1, _character(char, piled=marks > _MOST_MARKS)


def _character(char: str, *, piled: bool) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if char.isascii() and char.isprintable():
        return char
    return _escape(char) if piled or not _is_plain(char) else char


def _is_plain(char: str) -> bool:
    if not char.isprintable() or char in _BLANK or unicodedata.category(char) == "Me":
        return False
    return unicodedata.combining(char) != _OVERLAY and unicodedata.bidirectional(char) not in _RIGHT_TO_LEFT


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
