"""Programs that run another program: where in their arguments it stands. A table and the walk over it. Pure.

A flag that a row does not name makes the place uncertain; the walk then says so instead of guessing.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from auth.shellwords import Doubt, Word

Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one program names the program it runs.

    Flags are listed by name, blanks between them: `valued` ones take a value, `lone` ones none, `attached` ones
    at most one in the same word, `text` ones a command line, and with `prints` nothing is run. `operands` stand
    before the program, with `assigns` `NAME=value` too. `appends` adds arguments of its own at the end, and with
    `evaluates` the words are joined and read by a shell.
    """

    valued: str = ""
    lone: str = ""
    attached: str = ""
    text: str = ""
    prints: str = ""
    operands: int = 0
    assigns: bool = False
    appends: bool = False
    evaluates: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The wrapper runs these words; empty when it runs nothing."""

    words: Words


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The wrapper runs this text with a shell's splitting."""

    text: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The program is one of these words, or none."""

    words: Words


Inside = Program | CommandLine | Uncertain

#: An argument that is known only when the command runs.
UNKNOWN: Final = Word("...", Doubt.UNKNOWN, plain=False)
ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=")

_ANY: Final = Wrapper()
WRAPPERS: Final = {
    "builtin": _ANY,
    "busybox": _ANY,
    "chronic": _ANY,
    "chroot": Wrapper(lone="skip-chdir", operands=1),
    "command": Wrapper(lone="p", prints="v V"),
    "doas": Wrapper(valued="u C", lone="n s L"),
    "env": Wrapper(
        valued="u C a unset chdir argv0",
        lone="i 0 v ignore-environment null debug",
        text="S split-string",
        assigns=True,
    ),
    "exec": Wrapper(valued="a", lone="c l"),
    "flock": Wrapper(valued="w E timeout wait", lone="s x n e u o F v", text="c command", operands=1),
    "ionice": Wrapper(valued="c n class classdata", lone="t ignore"),
    "nice": Wrapper(valued="n adjustment", lone="0 1 2 3 4 5 6 7 8 9"),
    "nohup": _ANY,
    "parallel": Wrapper(valued="j jobs", evaluates=True),
    "setsid": Wrapper(lone="c f w ctty fork wait"),
    "stdbuf": Wrapper(valued="i o e input output error"),
    "strace": Wrapper(valued="e o p s a E u", lone="f q v t d y i"),
    "sudo": Wrapper(
        valued="u g p C r h T U D R t user group prompt close-from role host command-timeout other-user chroot chdir",
        lone="A b E H i k n P S s B preserve-env set-home non-interactive stdin background login shell",
        assigns=True,
    ),
    "taskset": Wrapper(lone="a all-tasks", operands=1),
    "time": Wrapper(valued="f o format output", lone="p a q v portability append quiet verbose"),
    "timeout": Wrapper(valued="k s kill-after signal", lone="v f p foreground preserve-status verbose", operands=1),
    "toybox": _ANY,
    "unbuffer": Wrapper(lone="p"),
    "watch": Wrapper(valued="n interval", lone="b c d e g p t w x differences errexit", evaluates=True),
    "xargs": Wrapper(
        valued="a d E I L n P s arg-file delimiter max-lines max-args max-procs max-chars replace",
        lone="0 o r t p x null open-tty no-run-if-empty interactive verbose exit",
        attached="e i l",
        appends=True,
    ),
}


class _Kind(enum.Enum):
    LONE = enum.auto()
    VALUED = enum.auto()
    TEXT = enum.auto()
    PRINTS = enum.auto()
    UNKNOWN = enum.auto()


def look_inside(wrapper: Wrapper, arguments: Words) -> Inside:
    """What the wrapper runs when it gets these arguments."""
    at, operands, flags = 0, wrapper.operands, True
    while at < len(arguments):
        text = arguments[at].text
        if arguments[at].doubt is Doubt.UNKNOWN:
            return Uncertain(arguments[at:])
        if flags and text.startswith("-") and (len(text) > 1 or wrapper.assigns):
            kind, value = (_Kind.LONE, None) if text == "--" else _flag(wrapper, text)
            flags = text != "--"
            if kind in _LAST:
                return _last(kind, value, arguments[at + 1 :])
            at += 2 if kind is _Kind.VALUED and value is None else 1
        elif wrapper.assigns and ASSIGNMENT.match(text):
            at += 1
        elif operands:
            at, operands = at + 1, operands - 1
        else:
            break
    words = arguments[at:]
    if words and wrapper.evaluates:
        return CommandLine(" ".join(word.text for word in words))
    return Program((*words, UNKNOWN) if words and wrapper.appends else words)


_LAST: Final = frozenset({_Kind.TEXT, _Kind.PRINTS, _Kind.UNKNOWN})


def _last(kind: _Kind, value: str | None, rest: Words) -> Inside:
    """What is run when this flag decides it; `rest` follows the flag."""
    if kind is _Kind.PRINTS:
        return Program(())
    if kind is _Kind.UNKNOWN:
        return Uncertain(rest)
    return CommandLine(" ".join(([] if value is None else [value]) + [word.text for word in rest]))


def _flag(wrapper: Wrapper, text: str) -> tuple[_Kind, str | None]:
    """The kind of a flag, and its value when that stands in the same word."""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        return _kind(wrapper, name), value if equals else None
    for at, letter in enumerate(text[1:], start=2):
        if letter in wrapper.attached.split():
            return _Kind.LONE, None
        if (kind := _kind(wrapper, letter)) is not _Kind.LONE:
            return kind, text[at:] or None
    return _Kind.LONE, None


def _kind(wrapper: Wrapper, name: str) -> _Kind:
    listed = {
        _Kind.LONE: wrapper.lone,
        _Kind.VALUED: wrapper.valued,
        _Kind.TEXT: wrapper.text,
        _Kind.PRINTS: wrapper.prints,
    }
    return next((kind for kind, names in listed.items() if name in names.split()), _Kind.UNKNOWN)
