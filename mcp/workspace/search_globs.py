"""Globs as find and grep take them: pattern in, matcher out. Pure; never touches a file system.

The grammar is ripgrep's: `*` and `?` stay within a name, `**` as a whole component stands for any number of
folders, `[a-z]`, `[!a-z]` and `{a,b}` work, a backslash takes the next character literally, and a dot is a
character like any other. A pattern without a slash is held against the name at any depth, one with a slash
against the whole relative path (tools.md, "grep, find, ls"; pi#11807, #12020, #12066).

Two things are ours: names are compared in one spelling (`names.folded`), and a class also matches its own text,
so that `[id].tsx` finds the file of that name. Every star but the last of its component is atomic, so no pattern
makes a match slow.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mcp.faults import Fault
from mcp.workspace.names import folded

#: How many patterns the braces of one glob may stand for, and how many characters those have together.
MOST_ALTERNATIVES: Final = 256
MOST_CHARACTERS: Final = 4096
#: How many patterns that take a class as text are added to them.
_MOST_AS_TEXT: Final = 16
#: Above this the patterns are no longer handed to ripgrep to narrow the walk.
_MOST_NARROWING: Final = 32
_GLOB_SPECIAL: Final = frozenset("*?[]{}\\!#")
_BRACES: Final = re.compile(r"\\.|\[[!^]?\]?[^]/]*\]|[{},]", re.DOTALL)


class Kind(enum.Enum):
    """What one token of a component matches."""

    TEXT = enum.auto()
    ANY_CHARACTER = enum.auto()
    CLASS = enum.auto()
    STAR = enum.auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is the literal text of TEXT and the regular expression of CLASS; `source` is as written."""

    kind: Kind
    source: str
    value: str = ""


Component = tuple[Token, ...]
Components = tuple[Component, ...]

_STAR: Final = Token(Kind.STAR, "*")
_ANY: Final = Token(Kind.ANY_CHARACTER, "?")
#: The component that stands for any number of folders.
DEEP: Final[Component] = (Token(Kind.STAR, "**"),)


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled glob.

    `narrowing` are gitignore lines that take back in, after a line that ignores everything, at least the files that
    the glob takes; without any the walk cannot be narrowed.
    """

    pattern: str
    regex: re.Pattern[str]
    negated: bool = False
    folders_only: bool = False
    narrowing: tuple[str, ...] = ()

    def matches(self, path: str) -> bool:
        """Whether the glob takes the path: POSIX, relative, without a trailing slash."""
        return (self.regex.fullmatch(path if path.isascii() else folded(path)) is not None) != self.negated


def file_filter(pattern: str) -> Glob | Fault:
    """The glob that says which files to search. A leading `!` turns it around, a trailing slash means all below."""
    negated = pattern.startswith("!")
    flat = _alternatives(pattern.removeprefix("!"), below=True)
    if isinstance(flat, Fault):
        return flat
    return Glob(pattern, _regex(flat, below=negated), negated=negated, narrowing=() if negated else _narrowing(flat))


def name_finder(pattern: str, *, any_case: bool = False) -> Glob | Fault:
    """The glob that says which files and folders to list. A trailing slash takes folders only."""
    flat = _alternatives(pattern, below=False)
    if isinstance(flat, Fault):
        return flat
    return Glob(pattern, _regex(flat, any_case=any_case), folders_only=pattern.endswith("/"))


def _alternatives(pattern: str, *, below: bool) -> tuple[Components, ...] | Fault:
    """The patterns without braces that the glob stands for, each as components from the folder searched.

    `below` makes a trailing slash mean everything in the folder. A class as text comes after all the others.
    """
    expanded = expand_braces(folded(pattern))
    if isinstance(expanded, Fault):
        return expanded
    flat: list[Components] = []
    for text in expanded:
        parsed = _from_top(_without_dots(text), below=below)
        if isinstance(parsed, Fault):
            return parsed
        flat.append(parsed)
    if not all(flat):
        return Fault("The glob names nothing. Write a name such as *.py, or a path such as src/**.")
    as_text = itertools.chain.from_iterable(_with_class_text(parsed) for parsed in flat)
    return tuple(dict.fromkeys([*flat, *itertools.islice(as_text, _MOST_AS_TEXT)]))


def _from_top(text: str, *, below: bool) -> Components | Fault:
    """A pattern as components; one without a slash gets any number of folders before it."""
    parsed = components(text)
    if isinstance(parsed, Fault) or not parsed:
        return parsed
    anchored = "/" in text.rstrip("/")
    head = () if anchored or parsed[0] == DEEP else (DEEP,)
    tail = (DEEP,) if below and text.endswith("/") and parsed[-1] != DEEP else ()
    return (*head, *parsed, *tail)


def _without_dots(text: str) -> str:
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    return text


def expand_braces(pattern: str) -> tuple[str, ...] | Fault:
    """`a{b,c}` as `ab`, `ac`; braces nest. A Fault when one is not closed or there are too many."""
    queue, done = [pattern], []
    while queue:
        text = queue.pop()
        split = _first_braces(text)
        if isinstance(split, Fault):
            return split
        if split is None:
            done.append(text)
        else:
            head, options, tail = split
            queue += [head + option + tail for option in reversed(options)]
        if len(queue) + len(done) > MOST_ALTERNATIVES or sum(map(len, done)) > MOST_CHARACTERS:
            return Fault("The glob is too long, or its braces stand for too many patterns. Write a shorter one.")
    return tuple(dict.fromkeys(done))


def _first_braces(text: str) -> tuple[str, list[str], str] | Fault | None:
    """The text before the first braces, their options, the text after; None without braces."""
    depth, start, cuts = 0, 0, list[int]()
    for found in _BRACES.finditer(text):
        match found.group():
            case "{":
                depth += 1
                if depth == 1:
                    start, cuts = found.start(), [found.end()]
            case "," if depth == 1:
                cuts.append(found.end())
            case "}" if depth == 1:
                ends = [cut - 1 for cut in cuts[1:]] + [found.start()]
                options = [text[cut:end] for cut, end in zip(cuts, ends, strict=True)]
                return text[:start], options, text[found.end() :]
            case "}" if depth > 1:
                depth -= 1
            case _:
                pass
    if depth:
        return Fault(f"The glob {text!r} opens a brace that it does not close; write \\{{ for the character itself.")
    return None


def components(pattern: str) -> Components | Fault:
    """A pattern without braces as components; `.` and empty ones vanish, and `..` is a Fault."""
    found: list[Component] = []
    for part in pattern.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            return Fault("A glob cannot go up with `..`; give the folder to search as `path`.")
        if part == "**":
            if not found or found[-1] != DEEP:
                found.append(DEEP)
            continue
        tokens = _tokens(part)
        if isinstance(tokens, Fault):
            return tokens
        found.append(tokens)
    return tuple(found)


def _tokens(part: str) -> Component | Fault:
    tokens: list[Token] = []
    at = 0
    while at < len(part):
        token = _token(part, at)
        if isinstance(token, Fault):
            return token
        at += len(token.source)
        if token.kind is not Kind.STAR or not tokens or tokens[-1].kind is not Kind.STAR:
            tokens.append(token)
    return tuple(tokens)


def _token(part: str, at: int) -> Token | Fault:
    match part[at]:
        case "*":
            return _STAR
        case "?":
            return _ANY
        case "\\" if at + 1 < len(part):
            return Token(Kind.TEXT, part[at : at + 2], part[at + 1])
        case "[":
            return _class(part, at)
        case character:
            return Token(Kind.TEXT, character, character)


def _class(part: str, at: int) -> Token | Fault:
    """The class that opens at `at`; a bracket that is not closed is a character."""
    first = at + 1 + (part[at + 1 : at + 2] in ("!", "^"))
    end = part.find("]", first + 1)
    if end < 0:
        return Token(Kind.TEXT, "[", "[")
    inside = part[first:end]
    ranges = list[str]()
    while inside:
        if len(inside) > 2 and inside[1] == "-":
            if inside[0] > inside[2]:
                return Fault(f"The glob has the range {inside[:3]}, which runs backwards.")
            ranges.append(f"{re.escape(inside[0])}-{re.escape(inside[2])}")
            inside = inside[3:]
        else:
            ranges.append(re.escape(inside[0]))
            inside = inside[1:]
    sign = "^" if first > at + 1 else ""
    return Token(Kind.CLASS, part[at : end + 1], f"(?!/)[{sign}{''.join(ranges)}]")


def _with_class_text(pattern: Components) -> Iterator[Components]:
    """The pattern with each class taken as it is or as text, in every combination."""
    choices = [itertools.islice(itertools.product(*map(_readings, component)), _MOST_AS_TEXT) for component in pattern]
    for chosen in itertools.product(*choices):
        yield tuple(tuple(itertools.chain.from_iterable(tokens)) for tokens in chosen)


def _readings(token: Token) -> tuple[Component, ...]:
    """What a token can mean: a class also is its own text."""
    if token.kind is not Kind.CLASS:
        return ((token,),)
    return (token,), tuple(Token(Kind.TEXT, character, character) for character in token.source)


def _regex(flat: tuple[Components, ...], *, below: bool = False, any_case: bool = False) -> re.Pattern[str]:
    tail = "(?:/.+)?" if below else ""
    return re.compile(
        f"(?:{'|'.join(path_regex(pattern) for pattern in flat)}){tail}",
        re.DOTALL | (re.IGNORECASE if any_case else re.NOFLAG),
    )


def path_regex(pattern: Components) -> str:
    """The regular expression, for `fullmatch`, of a whole relative path."""
    runs: list[list[str]] = [[]]
    for component in pattern:
        if component == DEEP:
            runs.append([])
        else:
            runs[-1].append(component_regex(component))
    first, *others = ["/".join(run) for run in runs]
    if not others:
        return first
    head = f"{first}/" if first else ""
    middle = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in others[:-1])
    return head + middle + (f"(?:[^/]+/)*{others[-1]}" if others[-1] else ".+")


def component_regex(component: Component) -> str:
    """The regular expression of one component. Stars but the last take the first place that fits, for good."""
    runs = [""]
    for token in component:
        match token.kind:
            case Kind.STAR:
                runs.append("")
            case Kind.ANY_CHARACTER:
                runs[-1] += "[^/]"
            case Kind.CLASS:
                runs[-1] += token.value
            case Kind.TEXT:
                runs[-1] += re.escape(token.value)
    first, *others = runs
    if not others:
        return first
    whole = "(?=[^/])" if not any(runs) else ""
    return first + "".join(f"(?>[^/]*?{run})" for run in others[:-1]) + f"{whole}[^/]*{others[-1]}"


def _narrowing(flat: tuple[Components, ...]) -> tuple[str, ...]:
    if len(flat) > _MOST_NARROWING:
        return ()
    return tuple(dict.fromkeys(f"!/{'/'.join(map(_loose, pattern))}" for pattern in flat))


def narrowing_to(patterns: Iterable[Components]) -> tuple[str, ...]:
    """Lines as in `Glob.narrowing` for whatever the patterns name in any letter case, and all that is below it."""
    lines: list[str] = []
    for line in sorted(f"!/{'/'.join(_loose(part, any_case=True) for part in pattern)}" for pattern in patterns):
        lines = [kept for kept in lines if not _includes(line, kept)]
        if not any(_includes(kept, line) for kept in lines):
            lines.append(line)
    return tuple(line + tail for line in lines for tail in ("", "/**"))


def _includes(wider: str, line: str) -> bool:
    """Whether a line that ends in a star plainly takes all that the other takes; both name the same folders."""
    if wider == line:
        return True
    stem = wider[:-1]
    starred = wider.endswith("*") and not stem.endswith("\\")
    return starred and line.startswith(stem) and "/" not in line[len(stem) :]


def source(pattern: Components) -> str:
    """The pattern as it was written."""
    return "/".join("".join(token.source for token in component) for component in pattern)


def _loose(component: Component, *, any_case: bool = False) -> str:
    """One component for ripgrep, which compares bytes: whatever could be spelt otherwise is a wildcard."""
    if component == DEEP:
        return "**"
    return re.sub(r"\*+", "*", "".join(_loose_token(token, any_case=any_case) for token in component))


def _loose_token(token: Token, *, any_case: bool) -> str:
    character = token.value
    plain = token.kind is Kind.TEXT and character.isascii() and character != "'" and not character.isspace()
    if not plain:
        return "*"
    if any_case and character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    return f"\\{character}" if character in _GLOB_SPECIAL else character
