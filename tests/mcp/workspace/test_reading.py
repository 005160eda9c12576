"""Pages of text: together they are the file, each is within its bounds, and memory does not follow the file's size."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp.workspace.reading import HEAD, BeyondEnd, Binary, Bounds, LongLine, Page, Reading, Stopped, read_page


def reading(path: Path, first: int = 1, lines: int = 2000, size: int = 51_200) -> Reading:
    fd = os.open(path, os.O_RDONLY)
    try:
        return read_page(fd, os.read(fd, HEAD), path.stat().st_size, Bounds(first, lines, size))
    finally:
        os.close(fd)


def of(path: Path, content: bytes, first: int = 1, lines: int = 2000, size: int = 51_200) -> Reading:
    path.write_bytes(content)
    return reading(path, first, lines, size)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "f"


@pytest.mark.parametrize(
    ("content", "page"),
    [
        pytest.param(b"", Page("", 1, 0, 0, more=False), id="an empty file"),
        pytest.param(b"a", Page("a", 1, 1, 1, more=False), id="a line without its end"),
        pytest.param(b"a\n", Page("a\n", 1, 1, 1, more=False), id="a line"),
        pytest.param(b"\n", Page("\n", 1, 1, 1, more=False), id="an empty line"),
        pytest.param(b"a\r\nb\rc\x0bd\xc2\x85e", Page("a\r\nb\rc\x0bd\x85e", 1, 2, 2, more=False), id="only LF"),
        pytest.param(b"\xef\xbb\xbfa\n\xef\xbb\xbf", Page("a\n\ufeff", 1, 2, 2, more=False), id="the BOM, and another"),
        pytest.param(b"caf\xe9\nx", Page("caf\ufffd\nx", 1, 2, 2, more=False), id="a byte that is not UTF-8"),
        pytest.param(b"\xe2\x82\n\xac\n", Page("\ufffd\n\ufffd\n", 1, 2, 2, more=False), id="a cut character"),
    ],
)
def test_a_small_file_is_one_page(file: Path, content: bytes, page: Page) -> None:
    assert of(file, content) == page


@pytest.mark.parametrize(
    ("bounds", "page"),
    [
        pytest.param((1, 2, 100), Page("1\n2\n", 1, 2, 4, more=True), id="lines run out"),
        pytest.param((2, 2, 100), Page("2\n3\n", 2, 3, 4, more=True), id="from the middle"),
        pytest.param((3, 2, 100), Page("3\n4\n", 3, 4, 4, more=False), id="to the end"),
        pytest.param((1, 4, 100), Page("1\n2\n3\n4\n", 1, 4, 4, more=False), id="exactly all lines"),
        pytest.param((1, 4, 8), Page("1\n2\n3\n4\n", 1, 4, 4, more=False), id="exactly all bytes"),
        pytest.param((1, 4, 7), Page("1\n2\n3\n", 1, 3, 4, more=True), id="a byte too few"),
        pytest.param((4, 9, 2), Page("4\n", 4, 4, 4, more=False), id="the last line"),
        pytest.param((5, 9, 100), BeyondEnd(4), id="the line after the last"),
        pytest.param((9, 9, 100), BeyondEnd(4), id="far beyond the end"),
        pytest.param((2, 9, 1), LongLine(2), id="a first line that does not fit"),
    ],
)
def test_a_page_holds_what_its_bounds_let_in(file: Path, bounds: tuple[int, int, int], page: Reading) -> None:
    assert of(file, b"1\n2\n3\n4\n", *bounds) == page


def test_beyond_the_end_of_a_file_without_a_last_line_end_counts_that_line(file: Path) -> None:
    assert of(file, b"1\n2", 3) == BeyondEnd(2)
    assert of(file, b"", 2) == BeyondEnd(0)


def test_bounds_count_what_is_shown(file: Path) -> None:
    """A byte that is not UTF-8 is shown as three."""
    assert of(file, b"\xe9\xe9\n\xe9\n", size=11) == Page("\ufffd\ufffd\n\ufffd\n", 1, 2, 2, more=False)
    assert of(file, b"\xe9\xe9\n\xe9\n", size=10) == Page("\ufffd\ufffd\n", 1, 1, 2, more=True)
    assert of(file, b"\xe9\xe9\n\xe9\n", size=6) == LongLine(1)


@pytest.mark.parametrize("before", [HEAD - 3, HEAD - 2, HEAD - 1, HEAD, 2 * HEAD, HEAD + 1024 * 1024 - 1])
def test_no_character_breaks_where_blocks_meet(file: Path, before: int) -> None:
    content = b"x" * (before - 1) + b"\n" + "\u20ac\n".encode()
    assert of(file, content, first=2) == Page("\u20ac\n", 2, 2, 2, more=False)
    assert of(file, content, size=10_000_000) == Page(content.decode(), 1, 2, 2, more=False)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        pytest.param(b"\x7fELF\x02\x01\x01", "ELF executable", id="a program"),
        pytest.param(b"%PDF-1.7\n%\xe2\xe3\n", "PDF document", id="a document that begins with text"),
        pytest.param(b"PK\x03\x04\x14\x00", "ZIP archive", id="an archive"),
        pytest.param(b"\x1f\x8b\x08\x00", "gzip data", id="compressed data"),
        pytest.param(b"BM\x00\x00", "BMP image", id="an image that models cannot see"),
        pytest.param("a\n".encode("utf-16"), "UTF-16 text", id="UTF-16"),
        pytest.param(b"text\nand\x00NUL\n", "binary data", id="a NUL"),
        pytest.param(b"BM is a name.\n", None, id="a text that begins like an image"),
        pytest.param(b"ID3 tags, BZh, OggS\n", None, id="a text that begins like a sound"),
    ],
)
def test_binary_files_are_told_from_text(file: Path, content: bytes, kind: str | None) -> None:
    found = of(file, content)
    assert found == (Page(content.decode(), 1, 1, 1, more=False) if kind is None else Binary(kind))


def test_a_nul_after_the_lines_wanted_does_not_hide_them(file: Path) -> None:
    """A log that was preallocated, or a sparse file."""
    assert of(file, b"1\n2\n3\n" + bytes(9000), lines=2) == Page("1\n2\n", 1, 2, 4, more=True)
    assert of(file, b"1\n2\n3\n" + bytes(9000), first=5) == Binary("binary data")
    assert of(file, b"1\n2\n3\n\0", first=4) == Binary("binary data")


def test_a_nul_deep_in_a_text_is_shown_as_unknown(file: Path) -> None:
    found = of(file, b"text\n" * 2000 + b"a\0b\n", first=2001)
    assert found == Page("a\ufffdb\n", 2001, 2001, 2001, more=False)


LINES = st.lists(st.sampled_from(["", "a", "\u20ac", "x" * 40, "\ufeff", "\r", "caf\u00e9 "]), max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES.map("\n".join), st.integers(1, 9), st.integers(45, 200))
def test_pages_one_after_the_other_are_the_file(file: Path, text: str, lines: int, size: int) -> None:
    """And each says truly whether more follows, within its bounds."""
    text = text.removeprefix("\ufeff")
    file.write_bytes(text.encode())
    pages: list[Page] = []
    first = 1
    more = True
    while more:
        page = reading(file, first, lines, size)
        assert isinstance(page, Page)
        assert page.text.count("\n") <= lines
        assert len(page.text.encode()) <= size
        assert page.total == text.count("\n") + (not text.endswith("\n") and text != "")
        pages.append(page)
        first = page.last + 1
        more = page.more
    assert "".join(page.text for page in pages) == text


def test_memory_does_not_follow_the_size_of_file_or_line(file: Path) -> None:
    """64 MB: a line of 32 MB, then as many short ones."""
    with file.open("wb") as out:
        for _ in range(32):
            out.write(b"x" * 1_000_000)
        out.write(b"\n" * 32_000_000)
    tracemalloc.start()
    try:
        assert reading(file) == LongLine(1)
        page = reading(file, first=30_000_000, lines=1)
        assert page == Page("\n", 30_000_000, 30_000_000, 32_000_000, more=True)
        assert reading(file, first=40_000_000) == BeyondEnd(32_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_page_that_nobody_waits_for_is_not_read_on(file: Path) -> None:
    file.write_bytes(b"x\n" * HEAD)
    fd = os.open(file, os.O_RDONLY)
    try:
        bounds = Bounds(HEAD, 1, 100)
        assert read_page(fd, os.read(fd, HEAD), 2 * HEAD, bounds, lambda: True) == Stopped()
    finally:
        os.close(fd)
