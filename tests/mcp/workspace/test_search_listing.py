"""Lists of files in pieces: files and their folders in order, the first ones when they are too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.search_globs import Glob, name_finder
from mcp.workspace.search_listing import Listing

NAMES = ("b/c/x", "a", "b-c", "b/a.py", "\udcff", "caf\u00e9/x")


def glob(pattern: str) -> Glob:
    found = name_finder(pattern)
    assert isinstance(found, Glob)
    return found


def output(names: tuple[str, ...]) -> bytes:
    """What ripgrep writes for these files."""
    return b"".join(b"./" + name.encode("utf-8", "surrogateescape") + b"\0" for name in names)


def test_folders_come_right_before_what_is_in_them() -> None:
    listing = Listing(glob("**"))
    assert listing.feed(output(NAMES))
    assert listing.found() == (
        ["a", "b/", "b/a.py", "b/c/", "b/c/x", "b-c", "caf\u00e9/", "caf\u00e9/x", "\udcff"],
        True,
    )


def test_a_trailing_slash_takes_folders_only() -> None:
    listing = Listing(glob("*/"))
    listing.feed(output(NAMES))
    assert listing.found() == (["b/", "b/c/", "caf\u00e9/"], True)


@given(st.integers(1, 40))
def test_pieces_of_any_size_give_the_same_list(size: int) -> None:
    whole, pieces = Listing(glob("**")), Listing(glob("**"))
    data = output(NAMES)
    whole.feed(data)
    for at in range(0, len(data), size):
        pieces.feed(data[at : at + size])
    assert pieces.found() == whole.found()


@given(st.permutations([f"{number:02}" for number in range(30)]), st.integers(1, 9))
def test_the_first_names_are_kept_when_they_are_too_many(names: list[str], most: int) -> None:
    listing = Listing(glob("*"), most=most)
    for name in names:
        listing.feed(output((name,)))
    assert listing.found() == (sorted(names)[:most], False)
