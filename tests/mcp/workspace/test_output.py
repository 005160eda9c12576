"""Cleaning and counting the output of commands (cases 14, 32 and 34)."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.output import LINE_IN_HAND, Cleaner, Tail, TailKeeper


def clean(*pieces: bytes) -> str:
    cleaner = Cleaner()
    return "".join([*(cleaner.feed(piece) for piece in pieces), cleaner.finish()])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


#: Streams made of what terminals speak, so that chance finds the seams.
NOISE = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.text(max_size=6).map(str.encode),
        st.sampled_from(
            [b"\x1b", b"[", b"\x1b[31m", b"\x1b]0;t\x07", b"\x1b]8;;u\x1b\\", b"\x1bP", b"\xc2\x9b", b"\xc2\x9d", b"\\"]
        ),
        st.sampled_from(
            [b"\x1b[K", b"\x1b[1K", b"\x1b[2K", b"\x1b[J", b"\x1b[3G", b"\x1b[4C", b"\x1b[2D", b"\x1b[9999C"]
        ),
        st.sampled_from([b"\t", b"a\tb", b"\t" * 1500, b"y" * 300]),
        st.sampled_from([b"\r", b"\n", b"\r\n", b"\b", b"\x00", b"\x18", b"abc", b"\xe2\x82", b"\xac", b"x" * 5000]),
    ),
    max_size=12,
).map(b"".join)


@given(NOISE, st.lists(st.integers(min_value=0), max_size=8))
def test_any_chunks_give_what_the_whole_gives(data: bytes, places: list[int]):
    assert clean(*cut(data, places)) == clean(data)


@given(NOISE)
def test_byte_by_byte_gives_what_the_whole_gives(data: bytes):
    assert clean(*(data[at : at + 1] for at in range(len(data)))) == clean(data)


@given(NOISE)
def test_no_control_character_but_tab_and_newline_comes_out(data: bytes):
    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", clean(data)) == []


@given(NOISE)
def test_what_is_clean_stays_as_it_is(data: bytes):
    once = clean(data)
    assert clean(once.encode()) == once


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t\n")))
def test_plain_text_is_not_changed(text: str):
    assert clean(text.encode()) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"a\x00b", "a\ufffdb", id="NUL is replaced"),
        pytest.param(b"\x1b[31mred\x1b[0m", "red", id="a colour is removed"),
        pytest.param(b"\x1b[38;2;1;2;3mx\x1b[?25l\x1b[>4;1my", "xy", id="long and private CSI sequences are removed"),
        pytest.param(b"\xc2\x9b31mred", "red", id="the C1 introducer of CSI counts like ESC ["),
        pytest.param(b"\x1b]0;title\x07text", "text", id="a window title ended by BEL is removed"),
        pytest.param(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", id="a hyperlink leaves its text"),
        pytest.param(b"\x1bPq#0\x1b\\after", "after", id="a device control string is removed"),
        pytest.param(b"\x1b]0;never closed\nnext", "\nnext", id="an open string ends with the line"),
        pytest.param(b"\x1b(Bx\x1b=y\x1b7z", "xyz", id="two and three character sequences are removed"),
        pytest.param(b"\x1b[3\x1b[1mx", "x", id="a sequence broken off by another is removed"),
        pytest.param(b"\x1b[3\nx", "\nx", id="a sequence broken off by a newline is removed"),
        pytest.param(b"\x1b\xc3\xa9", "é", id="ESC before a letter beyond ASCII takes only itself away"),
        pytest.param(b"\x07a\x0b\x0c\x7f\xc2\x85b", "ab", id="bells and other controls are removed"),
        pytest.param(b"one\r\ntwo\r\n", "one\ntwo\n", id="CRLF is a newline"),
        pytest.param(b"one\r\r\ntwo", "one\ntwo", id="CR CR LF is a newline"),
        pytest.param(b" 10%\r 50%\r100%\n", "100%\n", id="a progress bar leaves its last state"),
        pytest.param(b"important line\rX\n", "Xmportant line\n", id="text after a return is written over the line"),
        pytest.param(b"important line\r", "important line", id="a return that nothing follows takes nothing away"),
        pytest.param(b"important line\r\x1b[0m\n", "important line\n", id="nor does one before a colour"),
        pytest.param(b"one\rtwo three\n", "two three\n", id="longer text goes on beyond the line"),
        pytest.param(b"100 of 100\rdone\x1b[K\n", "done\n", id="the rest of a line is erased"),
        pytest.param(b"12345\x1b[2D\x1b[1Kx\n", "   x5\n", id="the beginning of a line is erased"),
        pytest.param(b"old\x1b[2K\x1b[1Gnew\n", "new\n", id="a line is erased and written anew"),
        pytest.param(b"old line\r\x1b[Jnew\n", "new\n", id="what is below is erased with the rest of the line"),
        pytest.param(b"kept\x1b[2J\x1b[Hmore", "keptmore", id="a cleared screen takes nothing away"),
        pytest.param(b" 10%\r\x1b[K", "", id="a bar that is erased is gone"),
        pytest.param(b"a\x1b[3Cb\x1b[2Gc", "ac  b", id="columns are moved to and passed over"),
        pytest.param(b"a\x1b[99999999999999999999Cb", "ab", id="a move without end is none"),
        pytest.param(b"a\tb\rxyz\n", "xyz     b\n", id="a tab is as wide as it looks"),
        pytest.param(b"abcdefghij\rx\ty\n", "xbcdefghyj\n", id="a tab passes over what is there"),
        pytest.param(b"a\tb\r\nc\td\r\n", "a\tb\nc\td\n", id="CRLF leaves tabs as they are"),
        pytest.param(b"N\bNA\bAM\bM", "NAM", id="overstriking leaves the letter"),
        pytest.param(b"|\b/\b-\b \b", " ", id="a spinner leaves nothing to see"),
        pytest.param(b"abc\b\b", "abc", id="a backspace that nothing follows takes nothing away"),
        pytest.param(b"caf\xe9 \xe2\x82", "caf\ufffd \ufffd", id="bytes that are no UTF-8 are replaced"),
        pytest.param(b"x" * 20_000 + b"\ry", "x" * 20_000 + "\ny", id="what already went out is not taken back"),
        pytest.param(b"x" * 20_000 + b"\b\by", "x" * 19_998 + "yx", id="but its end can be written over"),
        pytest.param(b"x" * 20_000 + b"\r\n", "x" * 20_000 + "\n", id="a CRLF ends a long line too"),
        pytest.param(
            b"x" * LINE_IN_HAND + b"\ry", "y" + "x" * (LINE_IN_HAND - 1), id="what is in hand is written over"
        ),
    ],
)
def test_cleaning(data: bytes, text: str):
    assert clean(data) == text


@given(st.text(st.sampled_from("ab \t\r\b"), max_size=30), st.text("xy", min_size=31, max_size=31))
def test_a_return_drops_nothing_that_is_not_written_over(written: str, line: str):
    """What is longer than all that follows it shows its end."""
    shown = clean(f"{line}\r{written.replace(chr(9), '')}".encode())
    assert shown[len(written) :] == line[len(written) :]


def test_memory_stays_bounded_under_an_endless_line_that_is_written_over():
    cleaner = Cleaner()
    out = sum(len(cleaner.feed(b"y" * 3000 + b"\r" + b"\tz\x1b[9999C\b")) for _ in range(100))
    assert out <= 300_000 + 100 * 2 * LINE_IN_HAND
    assert len(cleaner.finish()) <= LINE_IN_HAND


def keep(*pieces: bytes, lines: int = 3, size: int = 20) -> Tail:
    keeper = TailKeeper(lines, size)
    for piece in pieces:
        keeper.feed(piece)
    return keeper.tail()


@pytest.mark.parametrize(
    ("data", "tail"),
    [
        pytest.param(b"", Tail("", 0, 0, 0, 0), id="no output has no lines"),
        pytest.param(b"a\nb", Tail("a\nb", 2, 3, 1, 2), id="what fits is whole"),
        pytest.param(b"a\nb\nc\n", Tail("a\nb\nc\n", 3, 6, 1, 3), id="a final newline is no line of its own"),
        pytest.param(b"a\nb\nc\nd", Tail("b\nc\nd", 4, 7, 2, 4), id="the last lines are kept"),
        pytest.param(b"a\nb\nc\nd\n", Tail("b\nc\nd\n", 4, 8, 2, 4), id="also with a final newline"),
        pytest.param(
            b"x" * 15 + b"\n" + b"y" * 10, Tail("y" * 10, 2, 26, 2, 2), id="a line that does not fit is not cut"
        ),
        pytest.param(b"a\n" + b"y" * 30, Tail("y" * 20, 2, 32, 2, 2, 30), id="the end of a giant last line is shown"),
        pytest.param(b"y" * 30 + b"\n", Tail("y" * 19 + "\n", 1, 31, 1, 1, 30), id="also when a newline follows it"),
        pytest.param("é".encode() * 15 + b"z", Tail("é" * 9 + "z", 1, 31, 1, 1, 31), id="no character is cut in half"),
        pytest.param(b"\n\n\n\n", Tail("\n\n\n", 4, 4, 2, 4), id="empty lines count"),
    ],
)
def test_the_tail(data: bytes, tail: Tail):
    assert keep(data) == tail
    assert tail.truncated is (len(tail.text.encode()) < len(data))


TEXT = st.lists(st.sampled_from(["a", "é", "\U0001f600", "\n", "word", "x" * 25]), max_size=40)


@given(TEXT, st.integers(1, 5), st.integers(4, 40))
def test_the_tail_is_whole_lines_within_the_limits_or_the_end_of_one(words: list[str], lines: int, size: int):
    whole = "".join(words)
    tail = keep(*(word.encode() for word in words), lines=lines, size=size)
    assert whole.endswith(tail.text)
    assert tail.total_bytes == len(whole.encode())
    assert tail.total_lines == whole.count("\n") + (not whole.endswith("\n") and whole != "")
    assert len(tail.text.encode()) <= size
    if tail.cut_line_bytes:
        assert tail.first_line == tail.last_line == tail.total_lines
        assert tail.cut_line_bytes == len(whole.removesuffix("\n").rpartition("\n")[2].encode()) > size - 2
    else:
        shown = whole.split("\n")[tail.first_line - 1 :] if whole else [""]
        assert tail.text == "\n".join(shown)
        assert tail.last_line - tail.first_line < lines


@given(TEXT, st.integers(1, 5), st.integers(4, 40))
def test_a_piece_fits_exactly_when_nothing_is_left_off_after_it(words: list[str], lines: int, size: int):
    keeper = TailKeeper(lines, size)
    for word in words:
        before = not keeper.tail().truncated
        fits = keeper.fits(word.encode())
        keeper.feed(word.encode())
        assert (before and fits) is not keeper.tail().truncated or not before


def test_memory_stays_bounded_under_an_endless_line():
    keeper = TailKeeper(10, 1000)
    for _ in range(1000):
        keeper.feed(b"y" * 500)
    assert len(keeper.kept()) <= 1500
    assert keeper.tail() == Tail("y" * 1000, 1, 500_000, 1, 1, 500_000)
