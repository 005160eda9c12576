"""ripgrep's JSON Lines, in pieces as they come, to matching lines that can be shown. Bounded memory, no I/O.

File names and lines come as JSON strings, so neither a colon nor a newline in a name can be taken for something
else. A record over `MOST_RECORD_BYTES` is not kept, only where it belongs.
"""

from __future__ import annotations

import enum
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

#: A line of a file up to nearly this size is shown around its match, a longer one only by its number.
MOST_RECORD_BYTES: Final = 8 * 1024 * 1024
_KEPT_HEAD: Final = 64
#: Inside a JSON string every quote has a backslash before it, so this comes after the text of the line.
_NUMBER_AFTER_TEXT: Final = re.compile(rb'"\},"line_number":(\d+),')
_OVERLAP: Final = 64
#: What a line costs beyond its path and text: two separators, a space, a newline and its number.
_LINE_OVERHEAD: Final = 10


class _Text(msgspec.Struct):
    """A string, or Base64 when it is not UTF-8."""

    text: str | None = None
    raw: bytes | None = msgspec.field(default=None, name="bytes")


class _Span(msgspec.Struct):
    start: int
    end: int


class _Line(msgspec.Struct):
    lines: _Text
    line_number: int
    absolute_offset: int
    submatches: list[_Span]


class _LineRecord(msgspec.Struct):
    data: _Line


class _Begin(msgspec.Struct):
    path: _Text


class _BeginRecord(msgspec.Struct):
    data: _Begin


class _End(msgspec.Struct):
    binary_offset: int | None


class _EndRecord(msgspec.Struct):
    data: _End


class _Stats(msgspec.Struct):
    searches: int


class _Summary(msgspec.Struct):
    stats: _Stats


class _SummaryRecord(msgspec.Struct):
    data: _Summary


_MATCH_RECORD: Final = b'{"type":"match"'
_LINE_RECORDS: Final = (_MATCH_RECORD, b'{"type":"context"')
_NOT_SHOWN: Final = f"[a line of more than {MOST_RECORD_BYTES // 1024 // 1024} MB, not shown]"
_LINE: Final = msgspec.json.Decoder(_LineRecord)
_BEGIN: Final = msgspec.json.Decoder(_BeginRecord)
_END: Final = msgspec.json.Decoder(_EndRecord)
_SUMMARY: Final = msgspec.json.Decoder(_SummaryRecord)


@dataclass(frozen=True, slots=True)
class Overlong:
    """What is known of a record that was too large to keep; `number` is None when the line's end never came."""

    head: bytes
    number: int | None


class Splitter:
    """Bytes in any pieces to whole lines; one over the limit comes as `Overlong`."""

    def __init__(self, most: int = MOST_RECORD_BYTES) -> None:
        self._most = most
        self._line = bytearray()
        self._head: bytes | None = None
        self._number: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes | Overlong]:
        """The lines that `data` completes."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            yield self._take()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._line += piece
        if self._head is None and len(self._line) <= self._most:
            return
        if self._head is None:
            self._head = bytes(self._line[:_KEPT_HEAD])
        if self._number is None and (found := _NUMBER_AFTER_TEXT.search(self._line)):
            self._number = int(found[1])
        del self._line[:-_OVERLAP]

    def _take(self) -> bytes | Overlong:
        head, number, line = self._head, self._number, bytes(self._line)
        self._head, self._number = None, None
        self._line.clear()
        return line if head is None else Overlong(head, number)


@dataclass(frozen=True, slots=True)
class Line:
    """A line to show: its 1-based number, and its text or an excerpt of it.

    `start` and `end` are its place in the file, in bytes of UTF-8 without a BOM; equal when it was not kept.
    """

    number: int
    text: str
    matched: bool
    cut: bool
    start: int
    end: int


@dataclass(slots=True)
class FileLines:
    """The lines to show of one file, in order. `binary` is set when the search stopped at binary data."""

    path: str
    lines: list[Line] = field(default_factory=list)
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a search may show: matching lines, lines, bytes of text, and characters of a line."""

    matches: int
    lines: int
    size: int
    line_chars: int
    context: int = 0


class Full(enum.Enum):
    """Which bound ended the collecting."""

    MATCHES = enum.auto()
    LINES = enum.auto()
    SIZE = enum.auto()


#: Takes a path as ripgrep gives it and answers the path to show, or None when nothing of the file may be shown.
Admit = Callable[[str], str | None]


class Collector:
    """Takes ripgrep's output until a bound is reached; then `full` says which. Nothing past it is kept."""

    def __init__(self, admit: Admit, bounds: Bounds) -> None:
        self._admit = admit
        self._bounds = bounds
        self._splitter = Splitter()
        self._files: list[FileLines] = []
        self._file: FileLines | None = None
        self._matches = self._lines = self._size = 0
        self.full: Full | None = None
        #: How many files were searched; None until the search came to its end.
        self.searched: int | None = None

    def feed(self, data: bytes) -> bool:
        """Take the next piece; False when a bound is reached."""
        for record in self._splitter.feed(data):
            self._take(record)
            if self.full is not None:
                return False
        return True

    def files(self) -> list[FileLines]:
        """What was found, by path; context that belongs to a match beyond the bounds is left out."""
        shown = []
        for file in self._files:
            last = max((line.number for line in file.lines if line.matched), default=None)
            if last is not None:
                file.lines = [line for line in file.lines if line.number <= last + self._bounds.context]
                shown.append(file)
        return sorted(shown, key=lambda file: file.path.split("/"))

    def _take(self, record: bytes | Overlong) -> None:
        if isinstance(record, Overlong) or record.startswith(_LINE_RECORDS):
            if self._file is not None:
                self._keep(self._file, _line(record, self._bounds.line_chars))
        elif record.startswith(b'{"type":"begin"'):
            self._begin(_BEGIN.decode(record).data.path)
        elif record.startswith(b'{"type":"end"'):
            self._end(_END.decode(record).data.binary_offset)
        elif record.endswith(b'"type":"summary"}'):
            self.searched = _SUMMARY.decode(record).data.stats.searches

    def _begin(self, path: _Text) -> None:
        name = path.text if path.text is not None else os.fsdecode(path.raw or b"")
        shown = self._admit(name)
        self._file = None if shown is None else FileLines(shown)
        if self._file is not None:
            self._files.append(self._file)

    def _end(self, binary_offset: int | None) -> None:
        file, self._file = self._file, None
        if file is not None and binary_offset is not None:
            file.binary = True
            file.lines = [line for line in file.lines if line.end <= binary_offset]

    def _keep(self, file: FileLines, line: Line) -> None:
        size = len(file.path.encode("utf-8", "replace")) + len(line.text.encode()) + _LINE_OVERHEAD
        self.full = self._reached(size, matched=line.matched)
        if self.full is None:
            file.lines.append(line)
            self._matches += line.matched
            self._lines += 1
            self._size += size

    def _reached(self, size: int, *, matched: bool) -> Full | None:
        """Which bound one more line of that size would be over."""
        if matched and self._matches >= self._bounds.matches:
            return Full.MATCHES
        if self._lines >= self._bounds.lines:
            return Full.LINES
        if self._lines and self._size + size > self._bounds.size:
            return Full.SIZE
        return None


def _line(record: bytes | Overlong, most: int) -> Line:
    """What to show of a match or context record."""
    if isinstance(record, Overlong):
        return Line(record.number or 0, _NOT_SHOWN, record.head.startswith(_MATCH_RECORD), cut=True, start=0, end=0)
    return _excerpted(_LINE.decode(record).data, most, matched=record.startswith(_MATCH_RECORD))


def _excerpted(line: _Line, most: int, *, matched: bool) -> Line:
    raw = line.lines.raw
    text = line.lines.text if line.lines.text is not None else (raw or b"").decode("utf-8", "replace")
    length = len(raw) if raw is not None else len(text) if text.isascii() else len(text.encode())
    whole = text.removesuffix("\n").removesuffix("\r").replace("\0", "\N{REPLACEMENT CHARACTER}")
    cut = len(whole) > most
    if cut:
        first = line.submatches[0] if line.submatches else _Span(0, 0)
        start, stop = (_characters(text, raw, at) for at in (first.start, first.end))
        whole = excerpt(whole, start, stop, most)
    begin = line.absolute_offset
    return Line(line.line_number, whole, matched=matched, cut=cut, start=begin, end=begin + length)


def _characters(text: str, raw: bytes | None, at: int) -> int:
    """How many characters the first `at` bytes of a line are."""
    if raw is None and text.isascii():
        return at
    return len((raw if raw is not None else text.encode())[:at].decode("utf-8", "replace"))


def excerpt(text: str, start: int, stop: int, most: int) -> str:
    """At most `most` characters of a longer line around the match from `start` to `stop`, with `…` where it goes on.

    A match that fits is in it whole. A cut never parts a character from the marks that combine with it.
    """
    room = most - min(most, stop - start)
    begin = max(0, min(start - room // 2, len(text) - most))
    end = min(len(text), begin + most)
    while begin and begin < start and unicodedata.combining(text[begin]):
        begin += 1
    while end < len(text) and end > max(stop, begin + 1) and unicodedata.combining(text[end]):
        end -= 1
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
