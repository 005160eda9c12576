"""Markdown with YAML front matter, read so that every complaint names the file and the line.

Knows nothing of harnesses: it gives the fields as typed values, or raises `HarnessError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

import yaml

_FENCE: Final = re.compile(r"---[ \t]*\Z")
_TEXT: Final = "tag:yaml.org,2002:str"
_FLAG: Final = "tag:yaml.org,2002:bool"
#: The words of YAML 1.1 for true; the resolver has already seen that it is one of its booleans.
_TRUE: Final = frozenset({"true", "yes", "on"})


class HarnessError(ValueError):
    """A harness file, or the folder of them, cannot be used. The message names the file and, where known, the line."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        super().__init__(f"{file}: {problem}" if line is None else f"{file}:{line}: {problem}")
        self.file = file
        self.line = line


@dataclass(frozen=True, slots=True)
class Field:
    """One value of the front matter: its YAML node, and the name by which complaints call it."""

    file: str
    name: str
    node: yaml.Node

    def fail(self, problem: str) -> NoReturn:
        """Raise `HarnessError` about this value."""
        raise HarnessError(self.file, _line(self.node), problem)

    def text(self) -> str:
        """The value as text that is not blank."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag != _TEXT:
            self.fail(f"{self.name} must be text{_hint(self.node)}")
        if not self.node.value.strip():
            self.fail(f"{self.name} is empty")
        return str(self.node.value).strip()

    def flag(self) -> bool:
        """The value as true or false."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag != _FLAG:
            self.fail(f"{self.name} must be true or false")
        return self.node.value.lower() in _TRUE

    def items(self) -> tuple[Field, ...]:
        """The entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"{self.name} must be a list")
        return tuple(Field(self.file, f"each entry of {self.name}", node) for node in self.node.value)

    def fields(self, known: Collection[str], required: Collection[str]) -> Mapping[str, Field]:
        """The entries of a mapping by key; unknown, repeated and missing keys are complained about."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"{self.name} must be a mapping of {', '.join(known)}")
        found: dict[str, Field] = {}
        for key, value in self.node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "of another kind than text"
            if name not in known:
                raise HarnessError(self.file, _line(key), f"unknown key {name!r}; known keys are {', '.join(known)}")
            if name in found:
                raise HarnessError(self.file, _line(key), f"the key {name!r} stands here twice")
            found[name] = Field(self.file, name, value)
        if missing := [name for name in known if name in required and name not in found]:
            self.fail(f"{self.name} lacks {', '.join(missing)}")
        return found


@dataclass(frozen=True, slots=True)
class Document:
    """A file taken apart: the whole front matter as one field, and the body with the line it begins on."""

    front: Field
    body: str
    body_line: int


def read_document(content: bytes, file: str) -> Document:
    """Take a file apart. Raises `HarnessError`. A byte order mark and CRLF line ends are accepted."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise HarnessError(file, line, "the file is not UTF-8 text") from None
    lines = text.replace("\r\n", "\n").split("\n")
    if not _FENCE.match(lines[0]):
        raise HarnessError(file, 1, "no front matter; the first line must be ---")
    end = next((at for at, line in enumerate(lines[1:], start=1) if _FENCE.match(line)), None)
    if end is None:
        raise HarnessError(file, 1, "the front matter has no end; a line --- must follow it")
    front = _compose("\n".join(lines[1:end]) + "\n", file)
    return Document(front, "\n".join(lines[end + 1 :]).strip("\n"), _first_line(lines, end + 1))


def _first_line(lines: list[str], start: int) -> int:
    """The number of the first line from `start` that is not empty, counted from 1."""
    return next((at for at in range(start, len(lines)) if lines[at]), start) + 1


def _compose(text: str, file: str) -> Field:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = " ".join(part for part in (error.context, error.problem) if part)
        raise HarnessError(file, None if mark is None else mark.line + 2, f"invalid YAML: {words}") from None
    except RecursionError:
        raise HarnessError(file, 2, "the front matter is nested too deeply") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 2
        raise HarnessError(file, line, "invalid YAML: a character that YAML does not allow") from None
    if node is None:
        raise HarnessError(file, 2, "the front matter is empty")
    return Field(file, "the front matter", node)


def _line(node: yaml.Node) -> int:
    """The line of the file: YAML counts from 0 and does not see the opening fence."""
    return int(node.start_mark.line) + 2


def _hint(node: yaml.Node) -> str:
    """What to do about a scalar that YAML takes for something other than text."""
    if isinstance(node, yaml.ScalarNode) and node.value:
        return f"; put quotes around {node.value}"
    return ""
