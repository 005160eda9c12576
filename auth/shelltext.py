"""Bash text taken apart into the simple commands it runs. Pure; knows no rules and runs nothing.

The parts inside substitutions, subshells, loops and here-documents are found too. What cannot be taken apart
with certainty makes the script `opaque`: a substitution, a construct outside the part of the grammar below,
text that does not parse. Commands found up to there are still listed, since bash runs a line before it reads
the next one. Grammar: Bash Reference Manual, chapter 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from auth.shellwords import META, Doubt, Spelling, Word, WordReader

#: Longer commands are not taken apart; such a script is `blind`.
MOST_CHARACTERS: Final = 32_768
#: Words that only hold a compound command together when they stand where a command may begin.
GLUE: Final = frozenset({"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "coproc"})

_OPERATOR: Final = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[|&;]")
_REDIRECTION: Final = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||[<>](?!\()")
_DESCRIPTOR: Final = re.compile(r"\d+|\{[A-Za-z_]\w*\}")
_DUPLICATED: Final = re.compile(r"\d+-?|-")
#: Redirections to these write no file.
_NO_FILES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
#: Their header is a list of words, not a command.
_HEADERS: Final = frozenset({"for", "select", "case"})
#: What they do is not followed.
_UNFOLLOWED: Final = frozenset({"case", "select", "function", "coproc", "[["})


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words, redirections left out, and the here-documents it reads."""

    words: tuple[Word, ...]
    stdin: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """What a text runs. `opaque`: it may run more than `commands`. `blind`: it was too long or too deep to read.

    `writes`: a redirection may write a file.
    """

    commands: tuple[Command, ...]
    opaque: bool = False
    blind: bool = False
    writes: bool = False


def parse(text: str) -> Script:
    """Take the text apart. Never raises."""
    if len(text) > MOST_CHARACTERS:
        return Script((), opaque=True, blind=True)
    reader = _Reader(text)
    reader.script("")
    drafts = [draft for draft in reader.drafts if draft.words or draft.stdin]
    commands = tuple(Command(tuple(draft.words), tuple(draft.stdin)) for draft in drafts)
    return Script(commands, reader.opaque, reader.blind, reader.writes)


@dataclass(slots=True)
class _Draft:
    """A command while it is read."""

    words: list[Word] = field(default_factory=list)
    stdin: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _HereDocument:
    delimiter: str
    tabs: bool
    expands: bool
    into: list[str]


@dataclass(slots=True)
class _Reader(WordReader):
    """Reads one text; substitutions are read in place by the same methods."""

    drafts: list[_Draft] = field(default_factory=list)
    pending: list[_HereDocument] = field(default_factory=list)
    writes: bool = False

    def script(self, closer: str) -> None:
        """Read commands up to `closer` (`)`, `}` or the end of the text) and past it."""
        self.descend()
        draft: _Draft | None = self._begin()
        while draft is not None and self.at < len(self.text):
            draft = self._step(draft, closer)
        self.opaque = self.opaque or (draft is not None and bool(closer))
        self.level -= 1

    def inside(self, closer: str) -> None:
        """Read a substitution. A here-document it leaves open is none: `$((1<<2))` has no body."""
        pending = list(self.pending)
        self.script(closer)
        self.pending = pending

    def apart(self, text: str) -> None:
        """Read a script in a text of its own, one level down."""
        inner = _Reader(text, level=self.level)
        inner.script("")
        self._adopt(inner)

    def _adopt(self, inner: _Reader) -> None:
        self.drafts += inner.drafts
        self.opaque, self.blind = self.opaque or inner.opaque, self.blind or inner.blind
        self.writes = self.writes or inner.writes

    def _begin(self) -> _Draft:
        self.drafts.append(_Draft())
        return self.drafts[-1]

    def _end(self, draft: _Draft) -> _Draft:
        """Close a command and begin the next; the header of a loop is none."""
        if draft.words and draft.words[0].plain and draft.words[0].text in _HEADERS:
            draft.words.clear()
        return self._begin()

    def _step(self, draft: _Draft, closer: str) -> _Draft | None:
        """Read one token; answers the command that the next one belongs to, None after the closer."""
        start, char = self.at, self.text[self.at]
        self.blanks()
        if self.at > start:
            return draft
        if char == "#":
            self.at = self._line_end()
            return draft
        if char == "\n":
            self.at += 1
            self._here_documents()
            return self._end(draft)
        if char in "()":
            return self._parenthesis(draft, closer)
        if found := _REDIRECTION.match(self.text, self.at):
            self.at = found.end()
            self._redirect(found[0], draft)
            return draft
        if found := _OPERATOR.match(self.text, self.at):
            self.at = found.end()
            return self._end(draft)
        return self._place(self.word(), draft, closer)

    def _parenthesis(self, draft: _Draft, closer: str) -> _Draft | None:
        """Read a subshell; elsewhere than where a command may begin it is something that is not followed."""
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            arithmetic = self.text.startswith("(", self.at)
            self.opaque = self.opaque or arithmetic or bool(draft.words)
            (self.inside if arithmetic else self.script)(")")
            return self._end(draft)
        following = self._end(draft)
        if closer == ")":
            return None
        self.opaque = True
        return following

    def _place(self, word: Word, draft: _Draft, closer: str) -> _Draft | None:
        """Give a word to the command, unless it is a keyword or the number of a redirected descriptor."""
        if not word.plain:
            draft.words.append(word)
            return draft
        if _DESCRIPTOR.fullmatch(word.text) and self.text[self.at : self.at + 1] in {"<", ">"}:
            return draft
        if not draft.words:
            return self._first(word, draft, closer)
        if word.text == "do" and len(draft.words) == 2 and draft.words[0].text in _HEADERS:
            return self._end(draft)
        draft.words.append(word)
        return draft

    def _first(self, word: Word, draft: _Draft, closer: str) -> _Draft | None:
        """Place an unquoted word that stands where a command may begin."""
        if word.text == closer:
            return None
        self.opaque = self.opaque or word.text in _UNFOLLOWED
        if word.text == "function":
            self.blanks()
            self.word()
        elif word.text not in GLUE:
            draft.words.append(word)
        return draft

    def _redirect(self, operator: str, draft: _Draft) -> None:
        self.blanks()
        if self.at >= len(self.text) or (self.text[self.at] in META and not self.process_next()):
            self.opaque = True
            return
        target = self.word()
        self.writes = self.writes or _may_write(operator, target)
        if operator == "<<<":
            draft.stdin.append(target.text)
        elif operator in {"<<", "<<-"}:
            self.pending.append(_HereDocument(target.text, operator == "<<-", target.plain, draft.stdin))

    def _here_documents(self) -> None:
        documents, self.pending = self.pending, []
        for document in documents:
            body = self._body(document)
            document.into.append(body)
            if document.expands:
                inner = _Reader(body, level=self.level)
                inner.expansions("", Spelling())
                self._adopt(inner)

    def _body(self, document: _HereDocument) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            end = self._line_end()
            line, self.at = self.text[self.at : end], end + 1
            if document.tabs:
                line = line.lstrip("\t")
            if line == document.delimiter:
                break
            lines.append(line + "\n")
        return "".join(lines)

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end


def _may_write(operator: str, target: Word) -> bool:
    """Whether a redirection may write a file: not one that reads, and not one to a descriptor that is open."""
    if ">" not in operator:
        return False
    if target.doubt is not Doubt.NONE:
        return True
    return target.text not in _NO_FILES and not (operator == ">&" and _DUPLICATED.fullmatch(target.text))
