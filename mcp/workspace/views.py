"""A text as it is compared: exactly, with its line endings made equal, or with everything that typing loses. Pure.

A view has the same lines as the text it was made from, so a position in it leads back to the text by line and
column. Positions count characters.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_BLANKS: Final = " \t"


class Likeness(enum.IntEnum):
    """How alike two texts have to be to match, strictest first."""

    EXACT = 0
    LINE_ENDINGS = 1
    TOLERANT = 2


def _alike(names: str, plain: str) -> dict[int, str]:
    """Maps each of the characters to the plain one."""
    return {ord(char): plain for char in names}


#: Typographic characters and what people and models type for them; one for one, so that columns stay. Bytes that
#: are not UTF-8 (as `surrogateescape` decodes them) count as the replacement character that readers are shown.
_TYPED: Final = {
    **_alike("\u2018\u2019\u201a\u201b\u02bc\u2032", "'"),
    **_alike("\u201c\u201d\u201e\u201f\u2033", '"'),
    **_alike("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys(range(0xDC80, 0xDD00), "\N{REPLACEMENT CHARACTER}"),
    **_alike("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
}
_TYPOGRAPHIC: Final = re.compile(f"[{re.escape(''.join(map(chr, _TYPED)))}]")
_COMPOSED: Final = 16_384


def with_plain_line_ends(text: str) -> str:
    """The text with LF for CRLF and CR."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def as_typed(line: str) -> str:
    """A line with composed characters (NFC), plain quotes, dashes and spaces; columns stay but for NFC.

    A line of more than `_COMPOSED` characters is not composed, because that takes time by the square of its marks.
    """
    if line.isascii():
        return line
    composed = unicodedata.normalize("NFC", line) if len(line) <= _COMPOSED else line
    return _TYPOGRAPHIC.sub(_plain_for, composed)


def _plain_for(found: re.Match[str]) -> str:
    return _TYPED[ord(found.group())]


def tolerant(text: str) -> str:
    """The text as typed, with LF, without blanks at the end of lines."""
    lines = with_plain_line_ends(text).split("\n")
    if not text.isascii():
        lines = [line if line.isascii() else as_typed(line) for line in lines]
    return "\n".join([line.rstrip(_BLANKS) for line in lines])


def ends_in_blanks(text: str) -> bool:
    """Whether the last line of a text ends in blanks that `tolerant` takes away."""
    return as_typed(text[-1:]).endswith((" ", "\t"))


@dataclass(frozen=True)
class Source:
    """A text, its lines (ended by LF, CRLF or CR), and its views, made when they are wanted."""

    text: str

    @cached_property
    def lines(self) -> list[tuple[int, int]]:
        """Start and end of each line, without its line ending; at least one line."""
        starts = [0]
        ends = []
        for match in _LINE_END.finditer(self.text):
            ends.append(match.start())
            starts.append(match.end())
        return list(zip(starts, [*ends, len(self.text)], strict=True))

    @cached_property
    def _plain(self) -> str:
        return with_plain_line_ends(self.text)

    @cached_property
    def _tolerant(self) -> str:
        return tolerant(self.text)

    def view(self, likeness: Likeness) -> str:
        """The text as it is compared."""
        match likeness:
            case Likeness.EXACT:
                return self.text
            case Likeness.LINE_ENDINGS:
                return self._plain
            case Likeness.TOLERANT:
                return self._tolerant

    def line_end(self, index: int) -> str:
        """The line ending after line `index`; empty after the last."""
        if index + 1 >= len(self.lines):
            return ""
        return self.text[self.lines[index][1] : self.lines[index + 1][0]]

    def find_line(self, view: str, position: int) -> tuple[int, int]:
        """Line (from 0) and column of a position in a view."""
        return view.count("\n", 0, position), position - view.rfind("\n", 0, position) - 1

    def back(self, line: int, column: int, likeness: Likeness) -> int:
        """The position in the text of a line and column of a view: before any blanks and marks that it lost."""
        start, end = self.lines[line]
        if likeness is not Likeness.TOLERANT:
            return start + column
        content = self.text[start:end]
        if content.isascii() or len(content) > _COMPOSED:
            return start + column
        # As many characters as compose to `column`: a base and its combining marks stay together.
        return start + bisect_right(range(1, len(content) + 1), column, key=lambda size: len(as_typed(content[:size])))
