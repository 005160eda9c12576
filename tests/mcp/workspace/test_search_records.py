"""ripgrep's output: records in any pieces, lines within bounds, excerpts that keep their match."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.search_records import Bounds, Collector, FileLines, Full, Line, Overlong, Splitter, excerpt

AMPLE = Bounds(matches=100, lines=1000, size=100_000, line_chars=500, context=1)


def text(value: str | bytes) -> Mapping[str, str]:
    """A string as ripgrep writes it."""
    return {"text": value} if isinstance(value, str) else {"bytes": base64.b64encode(value).decode()}


def record(kind: str, **data: Any) -> bytes:
    """A record as ripgrep writes it."""
    return json.dumps({"type": kind, "data": data}, separators=(",", ":")).encode() + b"\n"


def begin(path: str | bytes) -> bytes:
    return record("begin", path=text(path))


def end(binary: int | None = None) -> bytes:
    return record("end", path=text("x"), binary_offset=binary, stats={})


def line(kind: str, number: int, value: str | bytes, *, offset: int = 0, start: int = 0, stop: int = 1) -> bytes:
    spans = [{"match": text("x"), "start": start, "end": stop}] if kind == "match" else []
    return record(kind, path=text("x"), lines=text(value), line_number=number, absolute_offset=offset, submatches=spans)


def collected(data: bytes, bounds: Bounds = AMPLE) -> tuple[list[FileLines], Full | None]:
    """What a collector makes of the output; a file called `secret` is not admitted."""
    collector = Collector(lambda name: None if name == "secret" else name, bounds)
    collector.feed(data)
    return collector.files(), collector.full


def test_lines_come_by_file_in_the_order_of_paths() -> None:
    data = begin("b") + line("match", 2, "two\n") + end() + begin("a/x") + line("match", 1, "one\r\n") + end()
    assert collected(data) == (
        [
            FileLines("a/x", [Line(1, "one", True, False, 0, 5)]),
            FileLines("b", [Line(2, "two", True, False, 0, 4)]),
        ],
        None,
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(b"caf\xe9 x\n", "caf\ufffd x", id="bytes that are not UTF-8"),
        pytest.param("a\0b\n", "a\ufffdb", id="NUL"),
        pytest.param("no newline", "no newline", id="the last line without a newline"),
        pytest.param("\n", "", id="an empty line"),
        pytest.param("a\rb\r\n", "a\rb", id="only the line's own ending goes"),
    ],
)
def test_a_line_is_shown_as_text(value: str | bytes, shown: str) -> None:
    files, _ = collected(begin("f") + line("match", 1, value) + end())
    assert [one.text for one in files[0].lines] == [shown]


def test_a_file_name_in_bytes_that_are_not_utf_8_keeps_them() -> None:
    files, _ = collected(begin(b"caf\xe9") + line("match", 1, "x\n") + end())
    assert files[0].path == "caf\udce9"


def test_a_file_that_is_not_admitted_adds_nothing_and_takes_no_room() -> None:
    data = begin("secret") + line("match", 1, "x\n") * 5 + end() + begin("a") + line("match", 1, "x\n") + end()
    files, full = collected(data, Bounds(matches=1, lines=1, size=10, line_chars=9))
    assert ([file.path for file in files], full) == (["a"], None)


def test_the_bound_on_matches_is_reached_by_one_more() -> None:
    data = begin("a") + b"".join(line("match", number, "x\n") for number in (1, 2, 3))
    for matches, full in ((3, None), (2, Full.MATCHES)):
        files, reached = collected(data, Bounds(matches=matches, lines=9, size=999, line_chars=9))
        assert (len(files[0].lines), reached) == (matches, full)


def test_context_of_a_match_beyond_the_bound_is_left_out() -> None:
    data = (
        begin("a")
        + line("match", 1, "x\n")
        + line("context", 2, "after\n")
        + line("context", 8, "before\n")
        + line("match", 9, "x\n")
        + end()
    )
    files, full = collected(data, Bounds(matches=1, lines=9, size=999, line_chars=9, context=1))
    assert ([one.number for one in files[0].lines], full) == ([1, 2], Full.MATCHES)


def test_context_without_its_match_is_no_file() -> None:
    data = begin("a") + line("context", 1, "before\n") + line("match", 2, "x\n")
    assert collected(data, Bounds(matches=9, lines=1, size=999, line_chars=9, context=1)) == ([], Full.LINES)


def test_the_bound_on_bytes_lets_one_line_through() -> None:
    data = begin("a") + line("match", 1, "x" * 50 + "\n") + line("match", 2, "x\n")
    files, full = collected(data, Bounds(matches=9, lines=9, size=20, line_chars=99))
    assert ([one.number for one in files[0].lines], full) == ([1], Full.SIZE)


def test_lines_after_binary_data_are_dropped() -> None:
    data = begin("a") + line("match", 1, "x\n") + line("match", 2, "xy\n", offset=2) + end(binary=4)
    files, _ = collected(data)
    assert ([one.number for one in files[0].lines], files[0].binary) == ([1], True)


def test_a_long_line_is_cut_around_its_match() -> None:
    value = "é" * 1000 + "x" + "é" * 1000
    files, _ = collected(begin("a") + line("match", 1, value, start=2000, stop=2001) + end())
    shown = files[0].lines[0]
    assert (shown.cut, shown.text.strip("…")) == (True, "é" * 249 + "x" + "é" * 250)


def test_a_long_line_that_is_not_utf_8_is_cut_around_its_match() -> None:
    value = b"\xe9" * 2000 + b"needle" + b"\xe9" * 2000
    files, _ = collected(begin("a") + line("match", 1, value, start=2000, stop=2006) + end())
    assert "needle" in files[0].lines[0].text


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(1, 30))
def test_pieces_of_any_size_give_the_same_records(parts: list[bytes], size: int) -> None:
    data = b"\n".join(parts)
    whole = list(Splitter(most=5).feed(data))
    splitter = Splitter(most=5)
    pieces = [one for at in range(0, len(data), size) for one in splitter.feed(data[at : at + size])]
    assert [isinstance(one, Overlong) for one in pieces] == [isinstance(one, Overlong) for one in whole]
    assert [one for one in pieces if isinstance(one, bytes)] == [one for one in data.split(b"\n")[:-1] if len(one) <= 5]


@given(st.integers(1, 40))
def test_a_record_over_the_limit_keeps_its_kind_and_line_number(size: int) -> None:
    """The text of the line holds what looks like the end of the text, which JSON escapes."""
    data = line("match", 77, '"},"line_number":5,' * 30) + b"next\n"
    splitter = Splitter(most=100)
    found = [one for at in range(0, len(data), size) for one in splitter.feed(data[at : at + size])]
    head, following = found
    assert isinstance(head, Overlong)
    assert (head.head.startswith(b'{"type":"match"'), head.number, following) == (True, 77, b"next")


@given(st.text("ab\u0301", min_size=12, max_size=60), st.data())
def test_an_excerpt_holds_its_match_and_no_more_than_allowed(value: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(value) - 1))
    stop = data.draw(st.integers(start, min(len(value), start + 11)))
    shown = excerpt(value, start, stop, 11)
    body = shown.removeprefix("…").removesuffix("…")
    assert len(body) <= 11
    assert value[start:stop] in body
    assert body in value
    assert shown.startswith("…") == (not value.startswith(body)) or value.count(body) > 1


def test_an_excerpt_does_not_part_a_character_from_its_marks() -> None:
    """The window would begin at an accent and end before one."""
    value = "e\u0301" * 20
    assert excerpt(value, 20, 21, 9) == "…e\u0301e\u0301e\u0301e\u0301…"
