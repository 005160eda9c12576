"""What a person is shown of a caller's text: one line that stands for that text and no other."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.showing import MOST_SHOWN, Shown, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("git push origin main", "git push origin main", id="plain text stays"),
        pytest.param("größe/日本語/naïve.py", "größe/日本語/naïve.py", id="letters of other scripts stay"),
        pytest.param("cafe\u0301", "cafe\u0301", id="a letter with an accent of its own stays"),
        pytest.param("a\nb", r"a\nb", id="the end of a line"),
        pytest.param(r"a\nb", r"a\\nb", id="is told from a backslash and a letter"),
        pytest.param("a\rb\tc", r"a\rb\tc", id="what moves the cursor"),
        pytest.param("\x1b[2Krm", r"\x1b[2Krm", id="an escape sequence"),
        pytest.param("a\u202egpj.exe", r"a\u202egpj.exe", id="a direction override"),
        pytest.param("a\u2066b\u2069", r"a\u2066b\u2069", id="a direction isolate"),
        pytest.param("rm \u05d0 1", r"rm \u05d0 1", id="letters that reorder what is around them"),
        pytest.param("a\u2028b\u0085c", r"a\u2028b\x85c", id="other line separators"),
        pytest.param("a\u00a0b\u3000c", r"a\xa0b\u3000c", id="spaces of other widths"),
        pytest.param("a\u200bb\ufeffc", r"a\u200bb\ufeffc", id="characters without a width"),
        pytest.param("a\u3164b\u2800c\ufe0fd", r"a\u3164b\u2800c\ufe0fd", id="characters that print nothing"),
        pytest.param("\U000e0061", r"\U000e0061", id="tags"),
        pytest.param("r\u0336m\u0336", r"r\u0336m\u0336", id="marks that strike through"),
        pytest.param("a\u20dd", r"a\u20dd", id="marks that enclose"),
        pytest.param("a\u0301\u0301\u0301", "a\u0301\u0301" + r"\u0301", id="marks that pile up"),
        pytest.param("a\udcff", r"a\udcff", id="a byte that is not UTF-8"),
        pytest.param("a   b", "a   b", id="a few spaces stay"),
        pytest.param("a" + " " * 500 + "; rm x", r"a\x20{500}; rm x", id="many do not push the rest out of sight"),
        pytest.param(" a  ", r"\x20{1}a\x20{2}", id="spaces at the ends are seen"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_text_as_it_is_shown(text, shown):
    assert show(text) == Shown(shown)


def test_of_a_long_text_the_two_ends_are_shown_and_what_is_left_out_is_counted():
    text = "a" * 700 + "\n" * 300 + "b" * 700
    assert show(text) == Shown("a" * 600, 700, "b" * 400)
    assert show(text).line == f"{'a' * 600} [700 characters are left out] {'b' * 400}"


def test_escapes_take_the_room_that_they_need():
    assert show("\u202e" * 1000) == Shown(r"\u202e" * 100, 1000 - 166, r"\u202e" * 66)


@pytest.mark.parametrize("size", [MOST_SHOWN, MOST_SHOWN + 1])
def test_a_text_is_cut_only_when_it_is_too_long(size):
    assert (show("x" * size).left_out > 0) is (size > MOST_SHOWN)


def test_a_space_in_front_of_braces_is_told_from_two_spaces():
    assert [show(" {2}"), show("  ")] == [Shown(r"\x20{1}{2}"), Shown(r"\x20{2}")]


TEXTS = st.text(st.sampled_from("a \\nx20{}9\n\u202e\u0301\u05d0\x1b") | st.characters(), max_size=40)


@given(TEXTS)
def test_nothing_that_is_shown_can_break_out_of_its_line(text):
    shown = show(text).head
    assert all(char.isprintable() and unicodedata.bidirectional(char) not in {"R", "AL", "AN"} for char in shown)


@given(TEXTS, TEXTS)
def test_two_texts_are_never_shown_alike(one, other):
    assert one == other or show(one) != show(other)


@given(st.text(min_size=900))
def test_whatever_the_text_no_more_is_shown_than_fits(text):
    assert len(show(text).head) + len(show(text).tail) <= MOST_SHOWN
