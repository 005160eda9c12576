"""One page of a text file, streamed: memory is bounded by the limits whatever the size of the file or of a line.

Lines are split on LF only and counted from 1. Bytes that are not UTF-8 become U+FFFD, and so does NUL, which
neither JSON consumers nor databases take. Nothing is known here of paths or of words for users.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp.workspace import filetypes

#: What the first read takes; it holds a small file whole and everything that types are told by.
HEAD: Final = 64 * 1024
_BLOCK: Final = 1024 * 1024
#: How much of the rest of a file is read only to say how many lines it has.
_COUNTED: Final = 4 * 1024 * 1024
_UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Page:
    """Whole lines, `first` to `last`, with their line ends. `more` when lines follow.

    `total` is the number of lines in the file, None when counting them would take long. An empty file is a page
    without lines: `last` is 0.
    """

    text: str
    first: int
    last: int
    total: int | None
    more: bool


@dataclass(frozen=True, slots=True)
class BeyondEnd:
    """The file has only `total` lines."""

    total: int


@dataclass(frozen=True, slots=True)
class LongLine:
    """The first line wanted, `number`, does not fit into the limit by itself."""

    number: int


@dataclass(frozen=True, slots=True)
class Binary:
    """The file is not text; `type` says what it is."""

    type: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nobody waits for the page any more."""


Reading = Page | BeyondEnd | LongLine | Binary | Stopped


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a page holds at most: from line `first` on, `lines` lines and `size` bytes of UTF-8."""

    first: int
    lines: int
    size: int


class _Stream:
    """The file from a position on: `buffer` from `at` is read and not yet used, `more` gets the next block."""

    __slots__ = ("_fd", "_left", "_stopped", "at", "buffer")

    def __init__(self, fd: int, head: bytes, size: int, stopped: Callable[[], bool]) -> None:
        self._fd = fd
        self._left = max(size - len(head), 0)
        self._stopped = stopped
        self.buffer = head
        self.at = 0

    @property
    def unread(self) -> int:
        """Bytes that were not read yet, by the size that the file had."""
        return self._left

    @property
    def ended(self) -> bool:
        """Whether nothing is left, read or unread."""
        return self.at >= len(self.buffer) and not self._left

    def more(self) -> bytes:
        """The next block, which does not go into the buffer; empty at the end. Raises OSError and _StoppedError."""
        if not self._left:
            return b""
        if self._stopped():
            raise _StoppedError
        block = os.read(self._fd, min(_BLOCK, self._left))
        self._left = self._left - len(block) if block else 0
        return block

    def refill(self) -> bool:
        """Go on to the next block; False at the end."""
        self.buffer = self.more()
        self.at = 0
        return bool(self.buffer)


class _StoppedError(Exception):
    pass


def read_page(fd: int, head: bytes, size: int, bounds: Bounds, stopped: Callable[[], bool] = lambda: False) -> Reading:
    """Read one page.

    `fd` stands after `head`, the first `HEAD` bytes; `size` is that of the file. `stopped` is asked between blocks.
    Raises OSError.
    """
    if (kind := filetypes.binary_type(head)) is not None:
        return Binary(kind)
    nul = head.find(b"\0", 0, filetypes.SNIFFED)
    nul_line = head.count(b"\n", 0, nul) + 1 if nul >= 0 else None
    if nul_line is not None and nul_line <= bounds.first:
        return Binary(filetypes.nul_type(head))
    try:
        reading = _read(_Stream(fd, head, size, stopped), bounds)
    except _StoppedError:
        return Stopped()
    if nul_line is not None and isinstance(reading, Page) and reading.last >= nul_line:
        return Binary(filetypes.nul_type(head))
    return reading


def _read(stream: _Stream, bounds: Bounds) -> Page | BeyondEnd | LongLine:
    """The page, from a stream at the beginning of the file."""
    passed = _skip(stream, bounds.first - 1)
    window = _first_lines(_window(stream, bounds.size + len(codecs.BOM_UTF8)), bounds.lines)
    text, taken = _fitting(window, bounds.size, at_start=bounds.first == 1)
    if not taken and not stream.ended:
        return LongLine(bounds.first)
    if not taken and bounds.first > 1:
        return BeyondEnd(passed)
    stream.at += taken
    last = bounds.first - 1 + _count_lines(window[:taken])
    more = not stream.ended
    return Page(text, bounds.first, last, _total(stream, last), more=more)


def _skip(stream: _Stream, lines: int) -> int:
    """Pass over that many lines, or all there are; answers how many, an unfinished one at the end included."""
    passed = 0
    unfinished = False
    while passed < lines:
        inside = stream.buffer.count(b"\n", stream.at)
        if passed + inside < lines:
            passed += inside
            unfinished = not stream.buffer.endswith(b"\n") if stream.buffer else unfinished
            if not stream.refill():
                return passed + unfinished
            continue
        for _ in range(lines - passed):
            stream.at = stream.buffer.index(b"\n", stream.at) + 1
        passed = lines
    return passed


def _window(stream: _Stream, size: int) -> bytes:
    """The next bytes, at most `size`: whole lines, but for a last one that the file does not end."""
    while len(stream.buffer) - stream.at < size and (block := stream.more()):
        stream.buffer = stream.buffer[stream.at :] + block
        stream.at = 0
    window = stream.buffer[stream.at : stream.at + size]
    whole = stream.at + len(window) == len(stream.buffer) and not stream.unread
    return window if whole else window[: window.rfind(b"\n") + 1]


def _first_lines(window: bytes, lines: int) -> bytes:
    """The first lines of a window."""
    if window.count(b"\n") < lines:
        return window
    return window[: len(window) - len(window.split(b"\n", lines)[lines])]


def _fitting(window: bytes, room: int, *, at_start: bool) -> tuple[str, int]:
    """The first lines of a window that fit into `room` as they are shown, and how many bytes of it they are."""
    text = _decoded(window, at_start=at_start)
    if (len(text) if text.isascii() else len(text.encode())) <= room:
        return text, len(window)
    kept: list[str] = []
    taken = 0
    for line in window.split(b"\n"):
        # Only lines before the last are ended by an LF, and that one does not fit with all others.
        shown = _decoded(line + b"\n", at_start=at_start and not taken)
        room -= len(shown.encode())
        if room < 0 or taken + len(line) >= len(window):
            break
        kept.append(shown)
        taken += len(line) + 1
    return "".join(kept), taken


def _count_lines(content: bytes) -> int:
    """Lines, one without its LF at the end included."""
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def _decoded(raw: bytes, *, at_start: bool) -> str:
    """Whole lines as they are shown; an LF never is inside a character."""
    if at_start:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    text = raw.decode("utf-8", "replace")
    return text.replace("\0", _UNKNOWN) if "\0" in text else text


def _total(stream: _Stream, last: int) -> int | None:
    """How many lines the file has, when that can be told after reading little more."""
    if stream.unread > _COUNTED:
        return None
    total = last
    finished = True
    while not stream.ended:
        total += stream.buffer.count(b"\n", stream.at)
        finished = stream.buffer.endswith(b"\n")
        if not stream.refill():
            break
    return total if finished else total + 1
