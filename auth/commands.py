"""Which programs a command line runs, and whether the patterns of rules name them. Pure; runs nothing.

A pattern is words: `git status` is that command and no other, `git *` is git with any arguments or none. A `*`
that stands alone is any number of words, within a word it is any text, and `{a,b}` chooses. What is denied is
denied with everything behind it, in any case, and from any folder: `rm`, `rm *` and `/bin/rm -rf x` are one.

This is guidance for an honest caller and not a boundary: a program that may run can start any other. What
cannot be read with certainty is never allowed by a pattern, while a denial looks into every part that is found.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, assert_never

from auth.globs import Parts, expand_braces, spans
from auth.shelltext import GLUE, MOST_CHARACTERS, Command, parse
from auth.shellwords import Doubt, Word
from auth.wrappers import ASSIGNMENT, WRAPPERS, CommandLine, Program, Uncertain, Words, look_inside

#: More wrappers around wrappers, or more words that may be the program, are not looked through.
MOST_LAYERS: Final = 32
#: Characters that are read for one command, those of scripts in scripts counted each time.
MOST_READ: Final = 2 * MOST_CHARACTERS

#: Shells, and programs that hand a command line to one with `-c`.
_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "su", "script"})
#: Their arguments are a command line.
_EVALUATORS: Final = frozenset({"eval", "trap"})
#: They read commands from a file into the running shell.
_SOURCES: Final = frozenset({"source", "."})
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SYSTEM_FOLDERS: Final = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
#: Variables by which an assignment in front of a command changes what the command runs.
_TELLING: Final = re.compile(
    r"PATH|CDPATH|HOME|IFS|ENV|BASH.*|SHELL.*|PS\d|PROMPT_COMMAND|XDG_CONFIG_.*|LD_.*|DYLD_.*|GIT_.*|SSH_.*|PYTHON.*"
    r"|PERL.*|RUBY.*|NODE_.*|NPM_.*|_?JAVA_.*|.*PAGER|LESS.*|EDITOR|VISUAL|BROWSER"
)


@dataclass(slots=True)
class Survey:
    """What a command line runs.

    `runs` are the programs without their wrappers, `seen` every layer of them. `opaque`: there may be more.
    `blind`: it was too long or too deep to read at all. `writes`: a redirection may write a file.
    """

    runs: list[Words] = field(default_factory=list)
    seen: list[Words] = field(default_factory=list)
    opaque: bool = False
    blind: bool = False
    writes: bool = False
    read: int = 0


def survey(command: str) -> Survey:
    """Find everything that the command runs. Never raises."""
    found = Survey()
    _script(command, found, 0)
    return found


def denies(pattern: str, found: Survey) -> bool:
    """Whether the pattern names anything that was found. One with too many alternatives names everything."""
    alternatives = _compiled(pattern, loose=True)
    if alternatives is None:
        return True
    return any(spans(parts, form) for words in found.seen for form in _loose_forms(words) for parts in alternatives)


def unnamed(patterns: Iterable[str], found: Survey, loose: Sequence[str] = ()) -> str | None:
    """The first program that no pattern names, as text; None when all are named. Not for an opaque survey.

    The `loose` patterns name as those of a denial do.
    """
    alternatives = [parts for pattern in patterns for parts in _compiled(pattern, loose=False) or ()]
    for words in found.runs:
        if any(spans(parts, form) for form in _exact_forms(words) for parts in alternatives):
            continue
        if not any(denies(pattern, Survey(seen=[words])) for pattern in loose):
            return _shown(words)
    return None


def _script(text: str, found: Survey, level: int) -> None:
    found.read += len(text)
    if level > MOST_LAYERS or found.read > MOST_READ:
        found.opaque = found.blind = True
        return
    script = parse(text)
    found.opaque, found.blind = found.opaque or script.opaque, found.blind or script.blind
    found.writes = found.writes or script.writes
    for command in script.commands:
        _command(command, found, level)


def _command(command: Command, found: Survey, level: int) -> None:
    words = _without_assignments(command.words, found)
    for _ in range(level, MOST_LAYERS):
        if not words:
            return
        found.seen.append(words)
        name = _base(words[0].text).casefold()
        if words[0].doubt is not Doubt.NONE:
            _doubtful(words, found)
        inner = _unwrapped(name, words, found, level) if name in WRAPPERS else words
        if inner == words:
            found.runs.append(words)
            _carried(name, words, command.stdin, found, level)
            return
        words = inner
    found.opaque = found.blind = True


def _without_assignments(words: Words, found: Survey) -> Words:
    """The command behind `NAME=value`; one that changes what runs makes it opaque."""
    at = 0
    while at < len(words) and (name := ASSIGNMENT.match(words[at].text)):
        found.opaque = found.opaque or _TELLING.fullmatch(name[1]) is not None
        at += 1
    return words[at:]


def _doubtful(words: Words, found: Survey) -> None:
    """The program's name is an expansion: never allowed. A list in braces can still be denied."""
    found.opaque = True
    choices = expand_braces(words[0].text)
    found.blind = found.blind or choices is None
    found.seen.append((*(Word(choice) for choice in choices or () if choice), *words[1:]))


def _unwrapped(name: str, words: Words, found: Survey, level: int) -> Words:
    """What the wrapper runs; the same words when it runs nothing else, none when that was dealt with here."""
    match look_inside(WRAPPERS[name], words[1:]):
        case Program(inner):
            _without_assignments(words[1 : len(words) - len(inner)], found)
            if not inner:
                return words
            while inner and inner[0].plain and inner[0].text in GLUE:
                inner = inner[1:]
            return _without_assignments(inner, found)
        case CommandLine(text):
            found.opaque = True
            _script(text, found, level + 1)
        case Uncertain(rest):
            found.opaque = True
            found.blind = found.blind or len(rest) > MOST_LAYERS
            found.seen += [rest[at:] for at in range(min(len(rest), MOST_LAYERS))]
        case never:
            assert_never(never)
    return ()


def _carried(name: str, words: Words, stdin: tuple[str, ...], found: Survey, level: int) -> None:
    """Commands that a program gets as arguments or as input."""
    arguments = [word.text for word in words[1:]]
    if name in _SOURCES:
        found.opaque = True
    elif name in _EVALUATORS:
        found.opaque = True
        _script(" ".join(arguments), found, level + 1)
    elif name in _SHELLS:
        texts = _shell_texts(arguments)
        found.opaque = found.opaque or bool(texts or stdin) or not [text for text in arguments if text[:1] != "-"]
        for text in (*texts, *stdin):
            _script(text, found, level + 1)
    elif name == "find":
        for inner in _found_by_find(words):
            _command(Command(inner), found, level + 1)


def _shell_texts(arguments: list[str]) -> list[str]:
    """Everything from `-c` on, which may stand among other letters: one of the words behind it is the script."""
    for at, text in enumerate(arguments):
        if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*|--command(=.*)?", text, re.DOTALL):
            return [text.partition("=")[2], *arguments[at + 1 :]]
    return []


def _found_by_find(words: Words) -> Iterator[Words]:
    texts = [word.text for word in words]
    at = 0
    while (start := next((n for n in range(at, len(texts)) if texts[n] in _FIND_RUNS), None)) is not None:
        at = next((n for n in range(start + 1, len(texts)) if texts[n] in {";", "+"}), len(texts))
        yield words[start + 1 : at]


def _base(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2]


def _shown(words: Words) -> str:
    """The words on one short line that holds nothing but printable characters."""
    text = " ".join(" ".join(word.text for word in words).split())
    return "".join(char if char.isprintable() else "?" for char in text[:_SHOWN]) + (
        "..." if len(text) > _SHOWN else ""
    )


_SHOWN: Final = 80

Form = tuple[str | None, ...]


def _loose_forms(words: Words) -> Iterator[Form]:
    folded = tuple(word.text.casefold() for word in words)
    yield folded
    if "/" in folded[0]:
        yield (_base(folded[0]), *folded[1:])


def _exact_forms(words: Words) -> Iterator[Form]:
    """The words as a pattern may name them; one that is only known at run time fits nothing but a lone `*`."""
    texts = tuple(None if word.doubt is Doubt.UNKNOWN else word.text for word in words)
    yield texts
    folder, slash, name = words[0].text.rpartition("/")
    if slash and folder in _SYSTEM_FOLDERS:
        yield (name, *texts[1:])


@lru_cache(maxsize=1024)
def _compiled(pattern: str, *, loose: bool) -> tuple[Parts, ...] | None:
    """The pattern's alternatives, None when they are too many. A loose one goes on to the end of the command."""
    alternatives = expand_braces(pattern.casefold() if loose else pattern)
    if alternatives is None:
        return None
    lists = [text.split() for text in alternatives]
    if loose:
        lists = [[_base(words[0]) if words[0][0] == "/" else words[0], *words[1:], "*"] for words in lists if words]
    return tuple(tuple(_part(word) for word in words) for words in lists)


def _part(word: str) -> re.Pattern[str] | None:
    return None if word in {"*", "**"} else re.compile(fnmatch.translate(word))
