"""A unified diff from changes whose places are known, so that its cost follows the changes, not the file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from mcp.workspace.matching import Change, apply

_CONTEXT: Final = 3
#: Above this many lines a block is shown as replaced whole instead of being compared line by line.
_COMPARED: Final = 1000
_NO_NEWLINE: Final = "\\ No newline at end of file"

#: Tag, and the ranges of old and new lines, as `SequenceMatcher.get_opcodes` gives them.
Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff and the lines that it adds and removes; `cut` when the text does not hold all of them."""

    text: str
    added: int
    removed: int
    first_line: int
    cut: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring changes with the lines around them; `start` counts the old lines before, `shift` what was added."""

    old: Sequence[str]
    new: Sequence[str]
    start: int
    shift: int


def unified(path: str, text: str, changes: Sequence[Change], *, lines: int, size: int, width: int) -> Diff:
    """The diff that `changes` make to `text`, cut after `lines` lines or `size` bytes, each line after `width`.

    `path` goes into its head. `first_line` is the number of the first changed line in the new text.
    """
    shown = [f"--- a/{path}", f"+++ b/{path}"]
    added = removed = first_line = 0
    for block in _blocks(text, changes):
        for group in _groups(block.old, block.new):
            shown += _hunk(block, group, width)
            added += sum(new_end - new for tag, _, _, new, new_end in group if tag != "equal")
            removed += sum(old_end - old for tag, old, old_end, _, _ in group if tag != "equal")
            first = next(new for tag, _, _, new, _ in group if tag != "equal")
            first_line = first_line or block.start + block.shift + first + 1
    kept = _bounded(shown, lines, size)
    return Diff("\n".join(kept), added, removed, first_line, cut=len(kept) < len(shown))


def _blocks(text: str, changes: Sequence[Change]) -> Iterator[_Block]:
    """The blocks of whole lines that the changes touch, in order."""
    shift = counted = position = 0
    for start, end, inside in _clusters(text, changes):
        counted += text.count("\n", position, start)
        position = start
        moved = [Change(change.start - start, change.end - start, change.text) for change in inside]
        old = _split(text[start:end])
        new = _split(apply(text[start:end], moved))
        yield _Block(old, new, counted, shift)
        shift += len(new) - len(old)


def _clusters(text: str, changes: Sequence[Change]) -> list[tuple[int, int, list[Change]]]:
    """Changes whose lines, with the context around them, touch; with start and end of those lines."""
    clusters: list[tuple[int, int, list[Change]]] = []
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        start = _lines_before(text, change.start)
        end = _lines_after(text, change.end)
        if clusters and start <= clusters[-1][1]:
            first, _, inside = clusters[-1]
            clusters[-1] = (first, end, [*inside, change])
        else:
            clusters.append((start, end, [change]))
    return clusters


def _lines_before(text: str, position: int) -> int:
    """The start of the line that holds a position, and of the context before it."""
    for _ in range(_CONTEXT + 1):
        position = text.rfind("\n", 0, position)
        if position < 0:
            return 0
    return position + 1


def _lines_after(text: str, position: int) -> int:
    """The end of the line that holds a position, and of the context after it."""
    for _ in range(_CONTEXT + 1):
        position = text.find("\n", position) + 1
        if position == 0:
            return len(text)
    return position


def _split(text: str) -> list[str]:
    """Lines with their LF."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[Opcode]]:
    """The hunks of a block as opcodes with context."""
    if len(old) + len(new) <= _COMPARED:
        return list(SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT))
    least = min(len(old), len(new))
    head = next((index for index in range(least) if old[index] != new[index]), least)
    tail = next((index for index in range(least - head) if old[-1 - index] != new[-1 - index]), least - head)
    before = min(head, _CONTEXT)
    after = min(tail, _CONTEXT)
    old_end, new_end = len(old) - tail, len(new) - tail
    return [
        [
            ("equal", head - before, head, head - before, head),
            ("replace", head, old_end, head, new_end),
            ("equal", old_end, old_end + after, new_end, new_end + after),
        ]
    ]


def _hunk(block: _Block, group: Sequence[Opcode], width: int) -> list[str]:
    """The lines of one hunk."""
    old_start, old_end = group[0][1], group[-1][2]
    new_start, new_end = group[0][3], group[-1][4]
    before = _range(block.start + old_start, old_end - old_start)
    after = _range(block.start + block.shift + new_start, new_end - new_start)
    shown = [f"@@ -{before} +{after} @@"]
    for tag, old, old_stop, new, new_stop in group:
        if tag == "equal":
            shown += _marked(" ", block.old[old:old_stop], width)
        else:
            shown += _marked("-", block.old[old:old_stop], width)
            shown += _marked("+", block.new[new:new_stop], width)
    return shown


def _range(before: int, count: int) -> str:
    """A range of lines as diffs write it: `before` is how many lines come before it."""
    return f"{before + 1 if count else before},{count}"


def _marked(mark: str, lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines with their mark, printable and cut to `width` characters."""
    for line in lines:
        content = (
            line.removesuffix("\n").removesuffix("\r").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        content = content.replace("\0", "\N{REPLACEMENT CHARACTER}")
        yield f"{mark}{content if len(content) <= width else f'{content[:width]}…'}"
        if not line.endswith("\n"):
            yield _NO_NEWLINE


def _bounded(shown: Sequence[str], lines: int, size: int) -> list[str]:
    """The first lines that fit."""
    kept: list[str] = []
    for line in shown[:lines]:
        size -= len(line.encode()) + 1
        if size < 0:
            break
        kept.append(line)
    return kept
