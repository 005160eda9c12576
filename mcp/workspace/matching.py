"""Where edits apply and what they put there. Pure.

Every edit is matched against the original text and must match exactly once: literally if it can, else with any
line endings, else as `views.tolerant` compares. Whatever an edit leaves as it was stays as it was in the file, to the
byte: text outside the match, and lines of the match that are the same in `old` and `new`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from mcp.faults import Fault
from mcp.workspace.views import Likeness, Source, ends_in_blanks, tolerant, with_plain_line_ends

_POSITIONS_NAMED: Final = 10
_HINTS: Final = 3
_FOREIGN: Final = re.compile("[\udc80-\udcff]")
_SHOWN_FOR_FOREIGN: Final = "\N{REPLACEMENT CHARACTER}"
_BARE_LF: Final = re.compile(r"(?<!\r)\n")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the one occurrence of `old` by `new`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Change:
    """Put `text` in place of the characters from `start` to `end` of the original."""

    start: int
    end: int
    text: str
    likeness: Likeness = Likeness.EXACT


def plan(text: str, edits: Sequence[Edit], name: str) -> tuple[Change, ...] | Fault:
    """The changes that the edits make to a text, in the order of the edits; `name` is what messages call it.

    A Fault names the edit by its index and the lines (from 1, ended by LF) it is about: old text that is empty, missing
    or not unique; edits that overlap or change nothing.
    """
    source = Source(text)
    changes = []
    for index, edit in enumerate(edits):
        change = _change(source, edit, f"edits[{index}]", name)
        if isinstance(change, Fault):
            return change
        changes.append(change)
    return _overlap(text, changes) or tuple(changes)


def apply(text: str, changes: Sequence[Change]) -> str:
    """The text with the changes made; they must not overlap."""
    pieces = []
    position = 0
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        pieces += [text[position : change.start], change.text]
        position = change.end
    return "".join([*pieces, text[position:]])


def _change(source: Source, edit: Edit, label: str, name: str) -> Change | Fault:
    """The change that one edit makes."""
    if not edit.old:
        return Fault(f"{label}.old_text must not be empty. Give the text to replace; use write to make a file.")
    if edit.old == edit.new:
        return Fault(f"{label} would change nothing: old_text and new_text are the same.")
    for likeness in Likeness:
        found, count = _occurrences(source, edit.old, likeness)
        if count > 1:
            return _ambiguous(source, found, count, likeness, label, name)
        if count == 1:
            change = _replacement(source, edit, found[0], likeness)
            return _useless(source.text, change, label, name) or change
    return _not_found(source, edit.old, label, name)


def _occurrences(source: Source, old: str, likeness: Likeness) -> tuple[list[int], int]:
    """The first positions of `old` in the view, overlapping ones too, and how many there are."""
    view = source.view(likeness)
    wanted = _wanted(old, likeness)
    if not wanted or (likeness is Likeness.EXACT and old[0] == "\n" and "\r\n" in view):
        # The LF that begins `old` must not match the second half of a CRLF.
        return [], 0
    to_line_end = likeness is Likeness.TOLERANT and ends_in_blanks(old)
    found = list(islice(_positions(view, wanted, to_line_end=to_line_end), _POSITIONS_NAMED + 1))
    count = len(found) if to_line_end or len(found) < 2 else max(len(found), view.count(wanted))
    return found, count


def _wanted(old: str, likeness: Likeness) -> str:
    """The text to look for in a view."""
    match likeness:
        case Likeness.EXACT:
            return old
        case Likeness.LINE_ENDINGS:
            return with_plain_line_ends(old)
        case Likeness.TOLERANT:
            return tolerant(old)


def _positions(view: str, wanted: str, *, to_line_end: bool) -> Iterator[int]:
    """Every position of `wanted`; with `to_line_end` only those where a line ends after it."""
    position = view.find(wanted)
    while position >= 0:
        end = position + len(wanted)
        if not to_line_end or end == len(view) or view[end] == "\n":
            yield position
        position = view.find(wanted, position + 1)


def _replacement(source: Source, edit: Edit, position: int, likeness: Likeness) -> Change:
    """The change for a match at a position of the view."""
    if likeness is Likeness.EXACT:
        end = position + len(edit.old)
        new = edit.new
        if "\r" not in edit.old and _line_end_near(source.text, position, end) == "\r\n":
            new = _BARE_LF.sub("\r\n", new)
        return Change(position, end, new)
    view = source.view(likeness)
    first, column = source.find_line(view, position)
    last, end_column = source.find_line(view, position + len(_wanted(edit.old, likeness)))
    start = source.back(first, column, likeness)
    end = source.back(last, end_column, likeness)
    if likeness is Likeness.TOLERANT and ends_in_blanks(edit.old):
        end = source.lines[last][1]
    return Change(start, end, _merged(source, edit, (first, last), (start, end)), likeness)


def _line_end_near(text: str, start: int, end: int) -> str:
    """The line ending that a replacement of a literal match takes: of the match, else of the line it is in."""
    at = text.find("\n", start, end)
    if at < 0:
        at = text.find("\n", end)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _merged(source: Source, edit: Edit, rows: tuple[int, int], span: tuple[int, int]) -> str:
    """The new text for a match that is not literal: lines that the edit keeps come from the file as they are."""
    first, last = rows
    lines = [source.text[slice(*source.lines[row])] for row in range(first, last + 1)]
    lines[-1] = source.text[source.lines[last][0] : span[1]]
    lines[0] = source.text[span[0] : min(source.lines[first][1], span[1])]
    ends = [source.line_end(row) for row in range(first, last)]
    ending = ends[0] if ends else (source.line_end(last) or (source.line_end(first - 1) if first else "") or "\n")
    kept = list(zip(lines, [*ends, ""], strict=True))
    old = with_plain_line_ends(edit.old).split("\n")
    new = with_plain_line_ends(edit.new).split("\n")
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    ends_of_middle = [*(end for _, end in kept[head : len(kept) - tail]), *[""] * len(new)]
    middle = list(zip(new[head : len(new) - tail], ends_of_middle, strict=False))
    merged = [*kept[:head], *middle, *kept[len(kept) - tail :]]
    return "".join(line + (end or ending) for line, end in merged[:-1]) + merged[-1][0]


def _useless(text: str, change: Change, label: str, name: str) -> Fault | None:
    """The fault of a change that changes nothing, or that would write what readers are shown for a foreign byte."""
    before = text[change.start : change.end]
    if change.text == before:
        return Fault(f"{label} would change nothing in {name}: it has that text already.")
    foreign = _FOREIGN.search(before) if _SHOWN_FOR_FOREIGN in change.text else None
    if foreign is not None:
        line = _line_number(text, change.start + foreign.start())
        return Fault(
            f"{label} is about line {line} of {name}, which has bytes that are not UTF-8, shown as"
            f" {_SHOWN_FOR_FOREIGN}. Leave them out of old_text and new_text, so that they can stay."
        )
    return None


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two sequences begin with in common."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _overlap(text: str, changes: Sequence[Change]) -> Fault | None:
    """The fault of two edits that want the same text, if there are two."""
    ordered = sorted(range(len(changes)), key=lambda index: (changes[index].start, changes[index].end))
    for one, other in pairwise(ordered):
        if changes[other].start < changes[one].end:
            line = _line_number(text, changes[other].start)
            low, high = sorted((one, other))
            return Fault(f"edits[{low}] and edits[{high}] overlap at line {line}. Make one edit of them.")
    return None


def _ambiguous(source: Source, found: Sequence[int], count: int, likeness: Likeness, label: str, name: str) -> Fault:
    """Old text that occurs more than once."""
    view = source.view(likeness)
    rows = []
    for position in found[:_POSITIONS_NAMED]:
        line, _ = source.find_line(view, position) if likeness is not Likeness.EXACT else (0, 0)
        at = position if likeness is Likeness.EXACT else source.lines[line][0]
        rows.append(str(_line_number(source.text, at)))
    more = f" and {count - len(rows)} more" if count > len(rows) else ""
    rows = list(dict.fromkeys(rows))
    where = f"{'line' if len(rows) == 1 else 'lines'} {', '.join(rows)}{more}"
    return Fault(f"{label}.old_text occurs {count} times in {name}, at {where}. Add lines around it to make it unique.")


def _not_found(source: Source, old: str, label: str, name: str) -> Fault:
    """Old text that does not occur, with the lines where it might have been meant to."""
    first = next((line.strip() for line in tolerant(old).split("\n") if line.strip()), "")
    rows = [row for row, line in enumerate(source.view(Likeness.TOLERANT).split("\n")) if line.strip() == first]
    hint = "Read the file again and copy the text with its indentation."
    if first and rows:
        numbers = [str(_line_number(source.text, source.lines[row][0])) for row in rows[:_HINTS]]
        hint = f"A line like its first is at line {', '.join(numbers)}, but indentation or the lines after it differ."
    return Fault(f"{label}.old_text was not found in {name}. {hint}")


def _line_number(text: str, position: int) -> int:
    """The number of the line that holds a position, as read and grep count: from 1, ended by LF."""
    return text.count("\n", 0, position) + 1
