"""Words of bash: quotes removed, expansions noticed. Pure; leaves the commands inside a word to a subclass."""

from __future__ import annotations

import abc
import enum
import re
from dataclasses import dataclass, field
from typing import Final

#: Deeper nesting is not read.
MOST_LEVELS: Final = 40


class Doubt(enum.IntEnum):
    """How far the text of a word may differ from what the program gets."""

    NONE = 0
    #: A pathname pattern, a brace list or a tilde: file names or a few words take its place.
    PATTERN = 1
    #: A parameter or a substitution: anything can take its place, several words too.
    UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes. `plain` when nothing in it was quoted, so that it can be a keyword."""

    text: str
    doubt: Doubt = Doubt.NONE
    plain: bool = True


META: Final = frozenset(" \t\n|&;()<>")
_PATTERN_CHARACTERS: Final = frozenset("*?[")
_ORDINARY: Final = re.compile(r"[^ \t\n|&;()<>*?\[\\'\"$`}]+")
_PARAMETER: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ANSI_C_INSIDE: Final = re.compile(r"(?:[^'\\]|\\.)*+", re.DOTALL)
_BACKTICK_INSIDE: Final = re.compile(r"(?:[^`\\]|\\.)*+", re.DOTALL)
_ANSI_C: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c?(.))", re.DOTALL
)
_ANSI_C_LETTERS: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
#: What a backslash takes the meaning from inside double quotes and braces.
_ESCAPABLE: Final = frozenset({"$", "`", '"', "\\", "\n", "}"})


@dataclass(slots=True)
class Spelling:
    """A word while it is read."""

    text: list[str] = field(default_factory=list)
    doubt: Doubt = Doubt.NONE
    plain: bool = True

    def add(self, text: str, doubt: Doubt = Doubt.NONE, *, plain: bool = True) -> None:
        """Append a part; the word is as doubtful as its most doubtful part."""
        self.text.append(text)
        self.doubt = max(self.doubt, doubt)
        self.plain = self.plain and plain

    def word(self) -> Word:
        """Finish the word. A tilde and a brace list count also where quotes would disarm them."""
        text = "".join(self.text)
        listed = 0 <= text.find("{") < max(text.rfind(","), text.rfind("..")) < text.rfind("}")
        least = Doubt.PATTERN if listed or text.startswith("~") else Doubt.NONE
        return Word(text, max(self.doubt, least), self.plain)


@dataclass(slots=True)
class WordReader(abc.ABC):
    """Reads the words of a text from left to right.

    `opaque` is set by what cannot be read with certainty, `blind` when reading was given up.
    """

    text: str
    at: int = 0
    level: int = 0
    opaque: bool = False
    blind: bool = False

    @abc.abstractmethod
    def inside(self, closer: str) -> None:
        """Read the commands of a substitution up to `closer` and past it."""

    @abc.abstractmethod
    def apart(self, text: str) -> None:
        """Read commands that stand in a text of their own, such as between backticks."""

    def word(self) -> Word:
        """Read one word."""
        spelling = Spelling()
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.process_next():
                self._substitution(2, ")", spelling)
            elif char in META:
                break
            elif char in _PATTERN_CHARACTERS:
                self.at += 1
                spelling.add(char, Doubt.PATTERN)
            elif not self._quotation(char, spelling):
                self._ordinary(spelling)
        return spelling.word()

    def process_next(self) -> bool:
        """Whether a process substitution begins here."""
        return self.text.startswith(("<(", ">("), self.at)

    def blanks(self) -> None:
        """Skip blanks and line continuations."""
        while self.text[self.at : self.at + 1] in {" ", "\t"} or self.text.startswith("\\\n", self.at):
            self.at += 2 if self.text[self.at] == "\\" else 1

    def expansions(self, closer: str, spelling: Spelling, *, quoted: bool = True) -> None:
        """Read the inside of double quotes, of a here-document (no closer) or of `${...}`."""
        self.descend()
        spelling.add("", plain=False)
        while self.at < len(self.text) and (char := self.text[self.at]) != closer:
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in _ESCAPABLE:
                self._escape(spelling)
            elif char == "$":
                self._dollar(spelling, quoted=quoted)
            elif char == "`":
                self._backtick(spelling)
            elif closer == "}" and (char == '"' or (char == "'" and not quoted)):
                self._quotation(char, spelling)
            else:
                self.opaque = self.opaque or (closer == "}" and char == "'")
                self._ordinary(spelling)
        self.opaque = self.opaque or (bool(closer) and self.at >= len(self.text))
        self.at += 1
        self.level -= 1

    def descend(self) -> None:
        """Go one level down; too deep ends the reading."""
        self.level += 1
        if self.level > MOST_LEVELS:
            self.opaque = self.blind = True
            self.at = len(self.text)

    def _ordinary(self, spelling: Spelling) -> None:
        found = _ORDINARY.match(self.text, self.at)
        end = found.end() if found else self.at + 1
        spelling.add(self.text[self.at : end])
        self.at = end

    def _quotation(self, char: str, spelling: Spelling) -> bool:
        """Read a quotation or an expansion that begins here; False when none does."""
        if char == "\\":
            self._escape(spelling)
        elif char == "'":
            self._single(spelling)
        elif char == '"':
            self.at += 1
            self.expansions('"', spelling)
        elif char == "$":
            self._dollar(spelling, quoted=False)
        elif char == "`":
            self._backtick(spelling)
        else:
            return False
        return True

    def _escape(self, spelling: Spelling) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        spelling.add("" if following == "\n" else following, plain=False)

    def _single(self, spelling: Spelling) -> None:
        start, end = self.at + 1, self.text.find("'", self.at + 1)
        if end < 0:
            self.opaque, end = True, len(self.text)
        self.at = end + 1
        spelling.add(self.text[start:end], plain=False)

    def _dollar(self, spelling: Spelling, *, quoted: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(":
            self._substitution(2, ")", spelling)
        elif following == "{" and self.text[self.at + 2 : self.at + 3] in {" ", "\t", "\n", "|"}:
            self._substitution(3, "}", spelling)
        elif following == "{":
            self.at += 2
            spelling.add("${", Doubt.UNKNOWN)
            self.expansions("}", spelling, quoted=quoted)
            spelling.add("}")
        elif following == "'" and not quoted:
            self.at += 2
            spelling.add(_ANSI_C.sub(_ansi_c_character, self._through(_ANSI_C_INSIDE, "'")), plain=False)
        elif following == '"' and not quoted:
            self.at += 1
        else:
            self.opaque = self.opaque or following == "["
            self._parameter(spelling)

    def _parameter(self, spelling: Spelling) -> None:
        found = _PARAMETER.match(self.text, self.at + 1)
        self.at = found.end() if found else self.at + 1
        spelling.add(f"${found[0]}" if found else "$", Doubt.UNKNOWN if found else Doubt.NONE)

    def _through(self, inside: re.Pattern[str], closer: str) -> str:
        """The text that `inside` matches here, and past the closer behind it."""
        start, found = self.at, inside.match(self.text, self.at)
        end = found.end() if found else start
        self.opaque = self.opaque or not self.text.startswith(closer, end)
        self.at = end + 1
        return self.text[start:end]

    def _substitution(self, skip: int, closer: str, spelling: Spelling) -> None:
        """Read commands whose output becomes part of a word: found, and never certain."""
        start = self.at
        self.at += skip
        self.opaque = True
        self.inside(closer)
        spelling.add(self.text[start : self.at], Doubt.UNKNOWN, plain=False)

    def _backtick(self, spelling: Spelling) -> None:
        self.at += 1
        self.opaque = True
        inner = self._through(_BACKTICK_INSIDE, "`")
        self.apart(re.sub(r"\\([`\\$])", r"\1", inner))
        spelling.add(f"`{inner}`", Doubt.UNKNOWN, plain=False)


def _ansi_c_character(found: re.Match[str]) -> str:
    byte, short, long, octal, letter = found.groups()
    if letter is not None:
        return _ANSI_C_LETTERS.get(letter, letter)
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    return chr(code) if code < 0x110000 else "\N{REPLACEMENT CHARACTER}"
