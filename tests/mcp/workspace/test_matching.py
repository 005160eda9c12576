"""Edits: what matches, what is put in its place, and in which words an edit that cannot be made is refused."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp.faults import Fault
from mcp.workspace.matching import Change, Edit, apply, plan
from mcp.workspace.views import Likeness, as_typed, tolerant


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text after the edits, or the words of the refusal."""
    changes = plan(text, [Edit(*edit) for edit in edits], "f")
    return changes.message if isinstance(changes, Fault) else apply(text, changes)


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        pytest.param("a b c", "b", "x", "a x c", id="in the middle of a line"),
        pytest.param("a", "a", "", "", id="to nothing"),
        pytest.param("a\nb\n", "b\n", "", "a\n", id="a line deleted"),
        pytest.param("a\nb", "b", "b\n", "a\nb\n", id="a line end added"),
        pytest.param("a\r\nb\r\n", "b\n", "", "a\r\n", id="a CRLF line deleted with an LF"),
        pytest.param("a\r\nb", "\nb", "\nx", "a\r\nx", id="a leading LF never cuts a CRLF"),
        pytest.param("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n", id="explicit CR: the line end itself is changed"),
        pytest.param("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n", id="an explicit CRLF is literal in an LF file"),
        pytest.param("a\r\nb\nc\nd", "c", "c\nx", "a\r\nb\nc\nx\nd", id="new lines as the line they are in"),
        pytest.param("a\r\nb\nc", "a", "a\nx", "a\r\nx\r\nb\nc", id="new lines as that line has it"),
        pytest.param("a\r\nb", "b", "b\nx", "a\r\nb\r\nx", id="new lines at the end as the line before"),
        pytest.param("a\rb\rc", "a\nb", "a\nx", "a\rx\rc", id="lines ended by CR"),
        pytest.param("a\r\nb\r\nc", "a\nb\nc", "a\nx\ny\nc", "a\r\nx\r\ny\r\nc", id="lines added"),
        pytest.param("a\r\nb\nc", "a\nb\nc", "a\nc", "a\r\nc", id="a line left out"),
        pytest.param("a\r\nb\nc", "a\nb\nc", "a\nb\nx\nc", "a\r\nb\nx\r\nc", id="a line added after kept ones"),
        pytest.param("\u201ca\u201d  \nb\n", '"a"\nb', '"a"\nx', "\u201ca\u201d  \nx\n", id="kept lines stay"),
        pytest.param("\u201ca\u201d\nb\n", '"a"', '"x"', '"x"\nb\n', id="changed lines are literal"),
        pytest.param("x = \u2018a\u2019 \u2013 1\n", "'a' - 1", "2", "x = 2\n", id="quotes and dashes"),
        pytest.param("a\u00a0b\u202fc\n", "a b c", "x", "x\n", id="spaces"),
        pytest.param("a  \nb\t\nc\n", "a\nb\nc", "x", "x\n", id="blanks at line ends of the file"),
        pytest.param("a\nb\nc\n", "a  \nb\t\nc", "x", "x\n", id="blanks at line ends of the edit"),
        pytest.param("bc\nab\n", "b ", "x ", "bc\nax \n", id="blanks at the end only match a line end"),
        pytest.param("cafe\u0301 x\n", "caf\u00e9 x", "tea x", "tea x\n", id="decomposed file"),
        pytest.param("caf\u00e9 x\n", "cafe\u0301 x", "tea x", "tea x\n", id="decomposed edit"),
        pytest.param("e\u0301e\u0301x\u0301y\n", "x\u0301y ", "z", "e\u0301e\u0301z\n", id="marks keep their letters"),
        pytest.param("\ud55c\uae00 a\n", "\u1112\u1161\u11ab\u1100\u1173\u11af", "x", "x a\n", id="Hangul"),
        pytest.param("\ufeffa\n", "a", "b", "\ufeffb\n", id="after a BOM"),
        pytest.param("a\udce9b\nc\n", "c", "d", "a\udce9b\nd\n", id="beside bytes that are not UTF-8"),
        pytest.param("a\udce9\nc\n", "a\ufffd\nc", "a\ufffd\nd", "a\udce9\nd\n", id="with such bytes in a kept line"),
        pytest.param("$1 \\1", "$1", "\\g<0>$&", "\\g<0>$& \\1", id="nothing is a pattern"),
        pytest.param("a" * 9 + "b", "ab", "x", "a" * 8 + "x", id="the one place in a repetition"),
    ],
)
def test_one_edit_replaces_one_match(text: str, old: str, new: str, after: str) -> None:
    assert edited(text, (old, new)) == after


def test_all_edits_are_matched_against_the_original() -> None:
    assert edited("a b c", ("a", "b"), ("c", "a"), ("b", "c")) == "b c a"


def test_edits_may_touch_but_not_overlap() -> None:
    assert edited("abcd", ("ab", "x"), ("cd", "y")) == "xy"
    assert edited("1\n2\nabcd", ("bc", "x"), ("z", "y"), ("cd", "y")).startswith("edits[1].old_text was not found")
    assert edited("1\n2\nabcd", ("1", "0"), ("cd", "x"), ("bc", "y")) == (
        "edits[1] and edits[2] overlap at line 3. Make one edit of them."
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        pytest.param(
            "a", "", "b", "edits[0].old_text must not be empty. Give the text to replace; use write to make a file.",
            id="nothing to replace",
        ),
        pytest.param(
            "a", "a", "a", "edits[0] would change nothing: old_text and new_text are the same.", id="the same text"
        ),
        pytest.param(
            "a\nb", "a\r\nb", "a\nb", "edits[0] would change nothing in f: it has that text already.",
            id="the same but for line ends that the file does not have",
        ),
        pytest.param(
            "a b\na c\n", "a", "x",
            "edits[0].old_text occurs 2 times in f, at lines 1, 2. Add lines around it to make it unique.",
            id="twice",
        ),
        pytest.param(
            "aaa", "aa", "x",
            "edits[0].old_text occurs 2 times in f, at line 1. Add lines around it to make it unique.",
            id="twice in itself",
        ),
        pytest.param(
            "a\r\nb\r\n1\na\nb\na\rb", "a\nb", "x\ny", "a\r\nb\r\n1\nx\ny\na\rb", id="the literal one of several"
        ),
        pytest.param(
            "a\r\nb\r\n\r\na\r\nb\r\n", "a\nb", "x",
            "edits[0].old_text occurs 2 times in f, at lines 1, 4. Add lines around it to make it unique.",
            id="twice with other line ends",
        ),
        pytest.param(
            "\u2018a\u2019\n\n\u2019a\u2018\n", "'a'", "x",
            "edits[0].old_text occurs 2 times in f, at lines 1, 3. Add lines around it to make it unique.",
            id="twice in other typography",
        ),
        pytest.param(
            "x\n" * 30, "x", "y",
            "edits[0].old_text occurs 30 times in f, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 20 more."
            " Add lines around it to make it unique.",
            id="often",
        ),
        pytest.param(
            "if a:\n    b\n", "if a:\n  b", "x",
            "edits[0].old_text was not found in f. A line like its first is at line 1, but indentation or the lines"
            " after it differ.",
            id="other indentation after the first line",
        ),
        pytest.param(
            "a\n", "b", "x",
            "edits[0].old_text was not found in f. Read the file again and copy the text with its indentation.",
            id="not at all",
        ),
        pytest.param(
            "a\n", "  ", "x",
            "edits[0].old_text was not found in f. Read the file again and copy the text with its indentation.",
            id="blanks alone never match tolerantly",
        ),
        pytest.param(
            "a\nb\udce9\n", "b\ufffd", "c\ufffd",
            "edits[0] is about line 2 of f, which has bytes that are not UTF-8, shown as \ufffd."
            " Leave them out of old_text and new_text, so that they can stay.",
            id="what is shown for a foreign byte",
        ),
    ],
)  # fmt: skip
def test_an_edit_that_is_not_clear_is_refused_in_words(text: str, old: str, new: str, words: str) -> None:
    assert edited(text, (old, new)) == words


def test_messages_name_the_edit_by_its_index() -> None:
    assert edited("a", ("a", "b"), ("c", "d")).startswith("edits[1].old_text was not found")


def test_a_change_says_how_it_matched() -> None:
    assert plan("a\r\nb \u2019\n", [Edit("a", "x"), Edit("\nb", "\ny"), Edit("'", "z")], "f") == (
        Change(0, 1, "x", Likeness.EXACT),
        Change(1, 4, "\r\ny", Likeness.LINE_ENDINGS),
        Change(5, 6, "z", Likeness.TOLERANT),
    )


ENDS = st.sampled_from(["\n", "\r\n", "\r"])
ALPHABET = "ab \t'\u2019\u201c\u2013\u00a0\u202fe\u0301\u00e9\udce9\ufeff\u1112\u1161"
CONTENT = st.text(st.sampled_from(ALPHABET), max_size=6)
TEXTS = st.lists(st.tuples(CONTENT, ENDS), max_size=6).map(lambda rows: "".join(a + b for a, b in rows))
LITERAL = st.text(st.sampled_from(ALPHABET.replace("\udce9", "") + "$\\1"), max_size=5)


@given(TEXTS, TEXTS, LITERAL)
def test_a_literal_edit_replaces_exactly_its_match(before: str, after: str, new: str) -> None:
    """A marker that occurs once is replaced; every byte before and after it stays."""
    text = f"{before}MARK{after}"
    result = edited(text, ("MARK", new))
    assert result.encode("utf-8", "surrogateescape") == b"".join(
        part.encode("utf-8", "surrogateescape") for part in (before, new, after)
    )


@given(TEXTS, CONTENT, CONTENT, TEXTS)
def test_a_tolerant_edit_touches_only_the_lines_it_matches(before: str, left: str, right: str, after: str) -> None:
    """A line asked for as it would be typed is found, and the lines around it stay as they were."""
    line = f"{left}MARK{right}"
    assume("\udce9" not in line)
    text = f"{before}\n{line}\n{after}"
    old = tolerant(unicodedata.normalize("NFD", line))
    assume(old != line)
    result = edited(text, (old, "new"))
    assert result.startswith(f"{before}\n")
    assert result.endswith(f"\n{after}")
    middle = result[len(before) + 1 : len(result) - len(after) - 1]
    assert as_typed(middle).rstrip(" \t") == "new"


@given(TEXTS, st.lists(st.tuples(CONTENT.filter(bool), LITERAL), min_size=1, max_size=4))
def test_a_plan_is_a_fault_or_changes_that_do_not_overlap(text: str, edits: list[tuple[str, str]]) -> None:
    changes = plan(text, [Edit(*edit) for edit in edits], "f")
    if isinstance(changes, Fault):
        assert changes.message.startswith("edits[")
        return
    spans = sorted((change.start, change.end) for change in changes)
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert len(changes) == len(edits)


@given(TEXTS, CONTENT.filter(lambda text: text.strip() != ""))
def test_a_match_reads_as_what_was_asked_for(text: str, old: str) -> None:
    """Whatever matched, it is what was asked for when both are compared tolerantly."""
    changes = plan(text, [Edit(old, "\u2603")], "f")
    if not isinstance(changes, Fault):
        (change,) = changes
        assert tolerant(text[change.start : change.end]) == tolerant(old)
