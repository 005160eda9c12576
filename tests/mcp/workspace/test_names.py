"""Which names count as the same and which as a slip."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.names import folded, has_other_spellings, printable, same_name, shown_as, similar_name, valid

NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("asked", "entries", "found"),
    [
        pytest.param("it's", ["it\u2019s"], "it\u2019s", id="a curly apostrophe"),
        pytest.param("a b", ["a\u202fb"], "a\u202fb", id="a narrow no-break space"),
        pytest.param("a b", ["a\u00a0b", "a\u202fb"], None, id="two that fit"),
        pytest.param("a b", ["a b", "a\u202fb"], "a\u202fb", id="the name itself is no other spelling"),
        pytest.param("a-b", ["a\u2013b"], None, id="a dash is a different name"),
        pytest.param("A", ["a"], None, id="case is a different name"),
    ],
)
def test_one_entry_in_another_spelling_is_found(asked: str, entries: list[str], found: str | None) -> None:
    assert same_name(asked, entries) == found


@given(NAMES)
def test_composed_and_decomposed_names_are_the_same(name: str) -> None:
    assert folded(unicodedata.normalize("NFD", name)) == folded(unicodedata.normalize("NFC", name))


@given(NAMES, NAMES)
def test_a_name_without_other_spellings_is_found_in_no_other_typed_name(asked: str, entry: str) -> None:
    if asked.isascii() and entry.isascii() and not has_other_spellings(asked):
        assert same_name(asked, [entry]) is None


@pytest.mark.parametrize(
    ("asked", "entries", "found"),
    [
        pytest.param("readme.md", ["README.md", "read.md"], "README.md", id="another case"),
        pytest.param("utils.py", ["util.py", "main.py"], "util.py", id="a letter too many"),
        pytest.param("mian.py", ["main.py"], "main.py", id="two letters swapped"),
        pytest.param("c.py", ["b.py"], None, id="short names that only look alike"),
        pytest.param("x", [], None, id="nothing there"),
    ],
)
def test_a_slip_gets_a_suggestion(asked: str, entries: list[str], found: str | None) -> None:
    assert similar_name(asked, entries) == found


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\u202fb\u00a0c\u3000d", "a\u202fb\u00a0c\u3000d", id="spaces of any width stay"),
        pytest.param("\U0001f468\u200d\U0001f4bb", "\U0001f468\u200d\U0001f4bb", id="a joiner stays"),
        pytest.param("\u05d0\u200fb", "\u05d0\u200fb", id="a mark of direction stays"),
        pytest.param("a\nb\x1b[1m\x7f\x9b", "a\ufffdb\ufffd[1m\ufffd\ufffd", id="control characters go"),
        pytest.param("a\u2028b\u2029", "a\ufffdb\ufffd", id="line and paragraph separators go"),
        pytest.param("a\u202etxt.\u2066b", "a\ufffdtxt.\ufffdb", id="what turns text around goes"),
        pytest.param(os.fsdecode(b"\xe2\x82x\xff"), "\ufffd\ufffdx\ufffd", id="bytes that are no UTF-8 go one by one"),
    ],
)
def test_a_name_is_shown_as_it_is_but_for_what_disguises_it(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(st.binary().map(os.fsdecode) | st.text())
def test_a_shown_name_is_one_line_of_valid_unicode_of_the_same_length(name: str) -> None:
    for text in (printable(name), valid(name)):
        assert text.encode().decode() == text
        assert len(text) == len(name)
    assert len(f"{printable(name)}.".splitlines()) == 1


@given(st.binary(min_size=1, max_size=6).map(os.fsdecode))
def test_what_is_shown_leads_to_the_name(name: str) -> None:
    for shown in (printable(name), valid(name), os.fsencode(name).decode("utf-8", "replace")):
        assert shown == name or same_name(shown, [name, "other"]) == name


@pytest.mark.parametrize(
    ("asked", "entries", "found"),
    [
        pytest.param("a\ufffd", ["a\udcff"], ["a\udcff"], id="a byte"),
        pytest.param("a\ufffd", ["a\udce2\udc82"], ["a\udce2\udc82"], id="a broken sequence that is replaced once"),
        pytest.param("a\ufffd", ["a\n"], ["a\n"], id="a control character"),
        pytest.param("a\ufffd", ["a\udcff", "a\n"], ["a\udcff", "a\n"], id="two that fit"),
        pytest.param("a\ufffd", ["ab", "a"], [], id="no other character"),
        pytest.param("a\n", ["a\udcff", "a\x1b"], [], id="nothing was replaced in what is asked"),
        pytest.param("a\ufffd b", ["a\udcff\u202fb"], ["a\udcff\u202fb"], id="in another spelling besides"),
    ],
)
def test_the_names_that_are_shown_so(asked: str, entries: list[str], found: list[str]) -> None:
    assert shown_as(asked, entries) == found
