"""Which names count as the same and which as a slip."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.names import folded, has_other_spellings, same_name, similar_name

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
