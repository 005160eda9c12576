"""The output of a command, from bytes as they come to text that can be shown: cleaned, counted, its end kept.

Everything here is incremental: feeding a stream in any pieces gives the same as feeding it whole, and memory
stays bounded whatever the stream. It knows no process, no file and no clock.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Final

#: Longest part of one line that a carriage return can still take back, in characters.
LINE_IN_HAND: Final = 8192

#: Text without C0 (but tab and newline), DEL and C1 (ECMA-48, ISO 6429). Whole CSI sequences and CRLF may stand in
#: it: they are so common that they are taken out in one go. (No possessive quantifiers: Python 3.11.2 gets them wrong.)
_PLAIN: Final = re.compile(r"(?:[^\x00-\x08\x0b-\x1f\x7f-\x9f]+|\x1b\[[\x20-\x3f]*[\x40-\x7e]|\r\n)*")
_COMMON: Final = re.compile(r"\x1b\[[\x20-\x3f]*[\x40-\x7e]|\r(?=\n)")
_CSI_BODY: Final = re.compile(r"[\x20-\x3f]*")
_INTERMEDIATES: Final = re.compile(r"[\x20-\x2f]*")
#: What ends a control string or breaks it off: BEL, CAN, SUB, ESC, ST; a newline too, lest an open one eat the rest.
_STRING_BODY: Final = re.compile(r"[^\x07\x0a\x18\x1a\x1b\x9c]*")

#: The bytes of a character in UTF-8 after its first.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))

_TEXT, _ESCAPE, _CHARSET, _CSI, _STRING = range(5)
#: The state that a character enters from text: ESC and the C1 introducers (CSI; DCS, SOS, OSC, PM, APC).
_FROM_TEXT: Final = {"\x1b": _ESCAPE, "\x9b": _CSI} | dict.fromkeys("\x90\x98\x9d\x9e\x9f", _STRING)
#: The state after ESC and that character; `\` ends a control string that was already left.
_FROM_ESCAPE: Final = {"[": _CSI} | dict.fromkeys("PX]^_", _STRING)
#: Ends of a control string that belong to it; the others are looked at again.
_STRING_ENDS: Final = frozenset("\x07\x18\x1a\x9c")


class Cleaner:
    """Bytes in, text out that holds no NUL, no escape sequence and no control character but tab and newline.

    NUL and invalid UTF-8 become U+FFFD. A carriage return starts the line anew, as a progress bar means it; a
    backspace takes a character back. What a line still may take back comes out with its newline or by `finish`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._state = _TEXT
        self._out: list[str] = []
        self._line = ""
        self._returned = False
        self._committed = False

    def feed(self, data: bytes) -> str:
        """The text that is certain after `data`."""
        return self._take(self._decoder.decode(data))

    def finish(self) -> str:
        """The rest."""
        rest = self._take(self._decoder.decode(b"", final=True)) + self._line
        self._line = ""
        return rest

    def _take(self, text: str) -> str:
        at, end = 0, len(text)
        while at < end:
            at = self._STEPS[self._state](self, text, at)
        out, self._out = "".join(self._out), []
        return out

    def _in_text(self, text: str, at: int) -> int:
        stop = _end(_PLAIN, text, at)
        plain = text[at:stop]
        if "\x1b" in plain or "\r" in plain:
            plain = _COMMON.sub("", plain)
        if plain:
            self._write(plain)
        if stop == len(text):
            return stop
        self._control(text[stop])
        return stop + 1

    def _in_escape(self, text: str, at: int) -> int:
        char = text[at]
        self._state = _FROM_ESCAPE.get(char, _TEXT)
        if "\x20" <= char <= "\x2f":
            self._state = _CHARSET
        return at + 1 if "\x20" <= char <= "\x7e" else at

    def _in_charset(self, text: str, at: int) -> int:
        return self._through(_INTERMEDIATES, text, at, final="\x30")

    def _in_csi(self, text: str, at: int) -> int:
        return self._through(_CSI_BODY, text, at, final="\x40")

    def _through(self, body: re.Pattern[str], text: str, at: int, *, final: str) -> int:
        """Skip the body of a sequence and its final character; anything else breaks it off and is text."""
        stop = _end(body, text, at)
        if stop == len(text):
            return stop
        self._state = _TEXT
        return stop + 1 if final <= text[stop] <= "\x7e" else stop

    def _in_string(self, text: str, at: int) -> int:
        stop = _end(_STRING_BODY, text, at)
        if stop == len(text):
            return stop
        self._state = _TEXT
        return stop + 1 if text[stop] in _STRING_ENDS else stop

    def _control(self, char: str) -> None:
        if char == "\r":
            self._returned = True
        elif char == "\b":
            self._line = self._line if self._returned else self._line[:-1]
        elif char == "\x00":
            self._write("\ufffd")
        else:
            self._state = _FROM_TEXT.get(char, _TEXT)

    def _write(self, text: str) -> None:
        if self._returned:
            self._return_to_start(text)
        line, newline, rest = text.rpartition("\n")
        if newline:
            self._out += (self._line, line, newline)
            self._line, self._committed = rest, False
        else:
            self._line += text
        while len(self._line) > LINE_IN_HAND:
            self._out.append(self._line[:LINE_IN_HAND])
            self._line, self._committed = self._line[LINE_IN_HAND:], True

    def _return_to_start(self, text: str) -> None:
        """What follows a carriage return replaces the line; a newline right after it (CRLF) leaves it."""
        self._returned = False
        if text[0] == "\n":
            return
        if self._committed:
            self._out += (self._line, "\n")
        self._line, self._committed = "", False

    _STEPS: ClassVar = {
        _TEXT: _in_text,
        _ESCAPE: _in_escape,
        _CHARSET: _in_charset,
        _CSI: _in_csi,
        _STRING: _in_string,
    }


def _end(body: re.Pattern[str], text: str, at: int) -> int:
    found = body.match(text, at)
    return found.end() if found else at


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of an output. Fields as in `shell.CommandResult`."""

    text: str
    total_lines: int
    total_bytes: int
    first_line: int
    last_line: int
    cut_line_bytes: int = 0

    @property
    def truncated(self) -> bool:
        """Whether anything was left off."""
        return self.first_line > 1 or self.cut_line_bytes > 0


class TailKeeper:
    """Keeps the last `lines` lines or `size` bytes of a text in UTF-8, whichever is less, and counts all of it."""

    def __init__(self, lines: int, size: int) -> None:
        self._lines, self._size = lines, size
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._bytes = self._newlines = 0
        self._open_line = self._closed_line = 0

    def fits(self, data: bytes) -> bool:
        """Whether everything up to and with `data` would be shown."""
        lines = self._newlines + data.count(b"\n") + (not data.endswith(b"\n"))
        return self._bytes + len(data) <= self._size and lines <= self._lines

    def feed(self, data: bytes) -> None:
        """Take the next piece: UTF-8, characters not split."""
        if not data:
            return
        self._bytes += len(data)
        self._newlines += data.count(b"\n")
        self._measure_lines(data)
        self._pieces.append(data)
        self._kept += len(data)
        while self._kept - len(self._pieces[0]) > self._size:
            self._kept -= len(self._pieces.popleft())

    def _measure_lines(self, data: bytes) -> None:
        newline = data.rfind(b"\n")
        if newline < 0:
            self._open_line += len(data)
            return
        before = data.rfind(b"\n", 0, newline)
        self._closed_line = newline - before - 1 if before >= 0 else self._open_line + newline
        self._open_line = len(data) - newline - 1

    def kept(self) -> bytes:
        """Everything fed so far as long as all of it fitted, afterwards at least the last `size` bytes of it."""
        return b"".join(self._pieces)

    def tail(self) -> Tail:
        """What to show."""
        data = self.kept()
        total = self._newlines + (self._open_line > 0)
        if self._bytes <= self._size and total <= self._lines:
            return Tail(data.decode(), total, self._bytes, min(1, total), total)
        start = self._start(data)
        if start is None:
            line = self._open_line or self._closed_line
            return Tail(self._last(data).decode(), total, self._bytes, total, total, line)
        shown = data.count(b"\n", start) + (not data.endswith(b"\n"))
        return Tail(data[start:].decode(), total, self._bytes, total - shown + 1, total)

    def _start(self, data: bytes) -> int | None:
        """Where the earliest line begins that fits with all after it; None when not even the last one does."""
        end = len(data) - data.endswith(b"\n")
        best = None
        for _ in range(self._lines):
            newline = data.rfind(b"\n", 0, end)
            if newline < 0 or len(data) - newline - 1 > self._size:
                break
            best, end = newline + 1, newline
        return best

    def _last(self, data: bytes) -> bytes:
        """The end of a line that is over the limit by itself, from a whole character on."""
        return data[-self._size :].lstrip(_CONTINUATION)
