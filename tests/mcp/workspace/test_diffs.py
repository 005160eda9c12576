"""Unified diffs: a patch program would make the new text of the old one, and they are cut when they are long."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.diffs import Diff, unified
from mcp.workspace.matching import Change, apply


def diff(text: str, *changes: Change, lines: int = 10_000, size: int = 1_000_000, width: int = 500) -> Diff:
    return unified("f", text, changes, lines=lines, size=size, width=width)


def patched(old: str, patch: str) -> str:
    """What a patch makes of a text; fails when a context or removed line is not where it says."""
    source = old.split("\n")
    source = [f"{line}\n" for line in source[:-1]] + ([source[-1]] if source[-1] else [])
    made: list[str] = []
    position = 0
    for hunk in re.split(r"(?m)^@@ ", patch)[1:]:
        head, *rows = hunk.rstrip("\n").split("\n") if not hunk.endswith(" @@\n") else [hunk]
        found = re.match(r"-(\d+),(\d+) \+(\d+),(\d+) @@", head)
        assert found is not None
        start, count, new_start, new_count = map(int, found.groups())
        start -= count > 0
        made += source[position:start]
        assert len(made) == new_start - (new_count > 0)
        position = start
        for index, row in enumerate(rows):
            bare = index + 1 < len(rows) and rows[index + 1].startswith("\\")
            line = row[1:] + ("" if bare else "\n")
            if row[0] in " -":
                assert source[position] == line
                position += 1
            if row[0] in " +":
                made.append(line)
    return "".join(made + source[position:])


def test_a_change_is_shown_with_three_lines_around_it() -> None:
    text = "".join(f"{number}\n" for number in range(1, 21))
    change = Change(text.index("10\n"), text.index("11\n"), "ten\nand more\n")
    assert diff(text, change) == Diff(
        "--- a/f\n+++ b/f\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+and more\n 11\n 12\n 13",
        added=2,
        removed=1,
        first_line=10,
        cut=False,
    )


@pytest.mark.parametrize(
    ("text", "change", "shown"),
    [
        pytest.param("a", Change(0, 1, "b"), ["@@ -1,1 +1,1 @@", "-a", "\\ No newline at end of file", "+b",
                     "\\ No newline at end of file"], id="no line end"),
        pytest.param("a\n", Change(0, 2, ""), ["@@ -1,1 +0,0 @@", "-a"], id="everything deleted"),
        pytest.param("a\nb\n", Change(0, 0, "x\n"), ["@@ -1,2 +1,3 @@", "+x", " a", " b"], id="inserted first"),
        pytest.param("a\r\n", Change(0, 1, "b"), ["@@ -1,1 +1,1 @@", "-a", "+b"], id="CR is not shown"),
        pytest.param("\udce9\0a\n", Change(2, 3, "b"),
                     ["@@ -1,1 +1,1 @@", "-\ufffd\ufffda", "+\ufffd\ufffdb"], id="odd bytes"),
    ],
)  # fmt: skip
def test_the_edges_of_a_file_are_shown_right(text: str, change: Change, shown: Sequence[str]) -> None:
    assert diff(text, change).text.split("\n")[2:] == shown


def test_far_changes_are_hunks_of_their_own_and_lines_are_numbered_in_both_files() -> None:
    text = "".join(f"{number}\n" for number in range(1, 101))
    first = Change(text.index("10\n"), text.index("11\n"), "a\nb\n")
    second = Change(text.index("90\n"), text.index("91\n"), "")
    heads = [line for line in diff(text, second, first).text.split("\n") if line.startswith("@@")]
    assert heads == ["@@ -7,7 +7,8 @@", "@@ -87,7 +88,6 @@"]


@pytest.mark.parametrize(("lines", "size"), [(5, 10_000), (1000, 40)])
def test_a_long_diff_is_cut_between_lines_and_says_so(lines: int, size: int) -> None:
    text = "old line\n" * 100
    whole = diff(text, Change(0, len(text), "new line\n" * 100))
    cut = diff(text, Change(0, len(text), "new line\n" * 100), lines=lines, size=size)
    assert (cut.cut, cut.added, cut.removed) == (True, whole.added, whole.removed)
    assert whole.text.startswith(cut.text + "\n")
    assert len(cut.text) <= size


def test_a_long_line_is_cut() -> None:
    shown = diff("x" * 1000, Change(0, 1000, "y" * 1000), width=10)
    assert "-xxxxxxxxxx…" in shown.text.split("\n")


def test_a_large_block_is_shown_as_replaced() -> None:
    text = "".join(f"{number}\n" for number in range(5000))
    shown = diff(text, Change(0, len(text), text.replace("0\n", "x\n")))
    assert patched(text, shown.text) == text.replace("0\n", "x\n")


LINE = st.sampled_from(["a\n", "b\n", "\n", "c", "d\n"])
TEXTS = st.lists(LINE, max_size=40).map("".join)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80), TEXTS), max_size=3))
def test_the_new_text_can_be_made_from_the_diff(text: str, wanted: list[tuple[int, int, str]]) -> None:
    changes = []
    position = 0
    for start, length, new in sorted(wanted):
        begin = max(position, min(start, len(text)))
        end = min(begin + length, len(text))
        if text[begin:end] != new and (not changes or begin > position):
            changes.append(Change(begin, end, new))
            position = end
    after = apply(text, changes)
    shown = diff(text, *changes)
    assert patched(text, shown.text) == after
    assert shown.added - shown.removed == len(after.splitlines()) - len(text.splitlines())
