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

#: Longest part of one line that can still be written over, in characters.
LINE_IN_HAND: Final = 8192

#: Text without C0 (but tab and newline), DEL and C1 (ECMA-48, ISO 6429). CRLF and whole CSI sequences that move
#: nothing may stand in it: they are so common that they are taken out in one go. (No possessive quantifiers: Python
#: 3.11.2 gets them wrong.)
_STILL: Final = r"\x1b\[[\x20-\x3f]*[@-BEFHIL-~]"
_PLAIN: Final = re.compile(rf"(?:[^\x00-\x08\x0b-\x1f\x7f-\x9f]+|{_STILL}|\r\n)*")
_COMMON: Final = re.compile(rf"{_STILL}|\r(?=\n)")
_CSI_BODY: Final = re.compile(r"[\x20-\x3f]*")
_INTERMEDIATES: Final = re.compile(r"[\x20-\x2f]*")
#: What ends a control string or breaks it off: BEL, CAN, SUB, ESC, ST; a newline too, lest an open one eat the rest.
_STRING_BODY: Final = re.compile(r"[^\x07\x0a\x18\x1a\x1b\x9c]*")

#: The bytes of a character in UTF-8 after its first.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


@dataclass(slots=True)
class Row:
    """The part of a line that can still be written over, and the column that comes next. Columns are characters.

    `begun`: the beginning of the line went out already. It cannot be written over, so text that should be goes to a
    line of its own, as `returned` says. `moved`: tabs have yet to become columns.
    """

    text: str = ""
    column: int = 0
    begun: bool = False
    returned: bool = False
    moved: bool = False

    def put(self, text: str) -> tuple[str, ...]:
        """Write at the column; answers what of the line is certain now."""
        certain: tuple[str, ...] = ()
        if not text:
            return certain
        if self.returned:
            certain = (self.text, "\n")
            self.text, self.begun, self.returned = "", False, False
        self._over(text)
        while len(self.text) > LINE_IN_HAND:
            certain = (*certain, self.text[:LINE_IN_HAND])
            self.text, self.begun = self.text[LINE_IN_HAND:], True
            self.column -= LINE_IN_HAND
        return certain

    def _over(self, text: str) -> None:
        """Write over what is there; a tab leaves it, as it only moves."""
        if self.column == len(self.text):
            self.text += text
            self.column = len(self.text)
            return
        if self.moved:
            self._without_tabs()
            self.moved = False
        at = 0
        while at < len(text) and self.column < len(self.text):
            tab = text.find("\t", at)
            if tab == at:
                self.column += _TAB - self.column % _TAB
                at += 1
            else:
                end = len(text) if tab < 0 else tab
                self.text = self.text[: self.column] + text[at:end] + self.text[self.column + end - at :]
                self.column += end - at
                at = end
        self.text = self.text.ljust(self.column) + text[at:]
        self.column += len(text) - at

    def _without_tabs(self) -> None:
        """Make columns of tabs, unless the line gets too long by it."""
        if "\t" in self.text and len(spread := self.text.expandtabs(_TAB)) <= LINE_IN_HAND:
            self.column += len(self.text[: self.column].expandtabs(_TAB)) - len(self.text[: self.column])
            self.text = spread

    def to(self, parameters: str) -> None:
        """CHA: to the column of that number, from 1, which is also where a carriage return goes."""
        self.returned = self.returned or self.begun
        self._move(_number(parameters) - 1)

    def right(self, parameters: str) -> None:
        """CUF: so many columns on."""
        self._move(self.column + _number(parameters))

    def left(self, parameters: str) -> None:
        """CUB: so many columns back; one is what a backspace does."""
        self._move(self.column - _number(parameters))

    def _move(self, column: int) -> None:
        self.column = min(max(column, 0), LINE_IN_HAND)
        self.moved = True

    def erase(self, parameters: str) -> None:
        """EL: to the end of the line, from its beginning, or all of it. What went out stays."""
        if self.returned:
            return
        self._without_tabs()
        end = min(self.column + 1, len(self.text))
        match parameters.lstrip("0"):
            case "":
                self.text = self.text[: self.column]
            case "1":
                self.text = " " * end + self.text[end:]
            case "2":
                self.text = ""

    def erase_below(self, parameters: str) -> None:
        """ED: of what is below, the rest of this line is all that is known here."""
        if not parameters.lstrip("0"):
            self.erase(parameters)


def _number(parameters: str) -> int:
    """The count that a sequence gives; none and 0 are 1."""
    return int(parameters or 1) or 1


#: What sequences do within a line, by their final character.
_MOVES: Final = {"C": Row.right, "D": Row.left, "G": Row.to, "J": Row.erase_below, "K": Row.erase}


_TEXT, _ESCAPE, _CHARSET, _CSI, _STRING = range(5)
#: The state that a character enters from text: ESC and the C1 introducers (CSI; DCS, SOS, OSC, PM, APC).
_FROM_TEXT: Final = {"\x1b": _ESCAPE, "\x9b": _CSI} | dict.fromkeys("\x90\x98\x9d\x9e\x9f", _STRING)
#: The state after ESC and that character; `\` ends a control string that was already left.
_FROM_ESCAPE: Final = {"[": _CSI} | dict.fromkeys("PX]^_", _STRING)
#: Parameters longer than this move nothing.
_MOST_PARAMETERS: Final = 16
_NUMBER: Final = re.compile(r"\d{0,15}")
_TAB: Final = 8
#: Ends of a control string that belong to it; the others are looked at again.
_STRING_ENDS: Final = frozenset("\x07\x18\x1a\x9c")


class Cleaner:
    """Bytes in, text out that holds no NUL, no escape sequence and no control character but tab and newline.

    NUL and invalid UTF-8 become U+FFFD. Within a line it shows what a terminal would: text after a carriage return
    or a backspace is written over what is there, and sequences that move in the line or erase in it do so. What of
    a line can still be written over comes out with its newline or by `finish`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._state = _TEXT
        self._parameters = ""
        self._out: list[str] = []
        self._line = Row()

    def feed(self, data: bytes) -> str:
        """The text that is certain after `data`."""
        return self._take(self._decoder.decode(data))

    def finish(self) -> str:
        """The rest."""
        rest = self._take(self._decoder.decode(b"", final=True)) + self._line.text
        self._line = Row()
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
        self._parameters = ""
        self._state = _FROM_ESCAPE.get(char, _TEXT)
        if "\x20" <= char <= "\x2f":
            self._state = _CHARSET
        return at + 1 if "\x20" <= char <= "\x7e" else at

    def _in_charset(self, text: str, at: int) -> int:
        return self._through(_INTERMEDIATES, text, at, final="\x30")

    def _in_csi(self, text: str, at: int) -> int:
        stop = _end(_CSI_BODY, text, at)
        self._parameters = (self._parameters + text[at:stop])[: _MOST_PARAMETERS + 1]
        if stop < len(text) and text[stop] in _MOVES and _NUMBER.fullmatch(self._parameters):
            _MOVES[text[stop]](self._line, self._parameters)
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
            self._line.to("1")
        elif char == "\b":
            self._line.left("1")
        elif char == "\x00":
            self._write("\ufffd")
        else:
            self._parameters = ""
            self._state = _FROM_TEXT.get(char, _TEXT)

    def _write(self, text: str) -> None:
        first, newline, rest = text.partition("\n")
        self._out += self._line.put(first)
        if newline:
            between, last_newline, last = rest.rpartition("\n")
            self._out += (self._line.text, newline, between, last_newline)
            self._line = Row()
            self._out += self._line.put(last)

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
