"""grep: what it prints, where it stops, and what it says when nothing fits."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp.faults import Fault
from mcp.limits import Limits
from mcp.tools.grep import TOOL as GREP
from mcp.tools.grep_answer import Asked, Found, result
from mcp.workspace import kernel, search_process
from mcp.workspace.names import printable, valid
from mcp.workspace.search import Query, Searched
from mcp.workspace.search_globs import file_filter
from mcp.workspace.search_process import End, Ending
from mcp.workspace.search_records import FileLines, Line
from tests.support.files import call, context, refused, said, text_of


def laid(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A workspace with these files."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


TREE = {"a.txt": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n", "sub/b.py": "def two():\n    pass\n", "sub/c.md": "Two\n"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"pattern": "two"}, "a.txt:2: two\nsub/b.py:1: def two():", id="path, line, text, by path"),
        pytest.param(
            {"pattern": "two", "path": "sub"}, "sub/b.py:1: def two():", id="paths stay those of the workspace"
        ),
        pytest.param(
            {"pattern": "two", "path": "./sub/"}, "sub/b.py:1: def two():", id="however the folder is written"
        ),
        pytest.param({"pattern": "two", "path": "sub/b.py"}, "sub/b.py:1: def two():", id="one file"),
        pytest.param(
            {"pattern": "TWO", "ignore_case": True, "path": "sub"},
            "sub/b.py:1: def two():\nsub/c.md:1: Two",
            id="in any case",
        ),
        pytest.param({"pattern": "TWO", "ignoreCase": True, "path": "a.txt"}, "a.txt:2: two", id="the name others use"),
        pytest.param({"pattern": "two()", "literal": True}, "sub/b.py:1: def two():", id="plain text"),
        pytest.param({"pattern": "^t.*e$"}, "a.txt:3: three", id="a regular expression"),
        pytest.param({"pattern": "two", "glob": "*.py"}, "sub/b.py:1: def two():", id="only some files"),
        pytest.param({"pattern": "two", "glob": "!*.py"}, "a.txt:2: two", id="all but some files"),
        pytest.param(
            {"pattern": "two|six", "context": 1, "path": "a.txt"},
            "a.txt-1- one\na.txt:2: two\na.txt-3- three\n--\na.txt-5- five\na.txt:6: six\na.txt-7- seven",
            id="context, in groups",
        ),
        pytest.param(
            {"pattern": "three|four", "context": 1, "path": "a.txt"},
            "a.txt-2- two\na.txt:3: three\na.txt:4: four\na.txt-5- five",
            id="context that touches is one group",
        ),
        pytest.param(
            {"pattern": "two", "context": 1, "glob": "*.{txt,py}"},
            "a.txt-1- one\na.txt:2: two\na.txt-3- three\n--\nsub/b.py:1: def two():\nsub/b.py-2-     pass",
            id="a group a file",
        ),
        pytest.param({"pattern": "nine"}, "Nothing matches nine in the workspace.", id="nothing"),
        pytest.param(
            {"pattern": "nine", "path": "./sub", "glob": "*.py"},
            "Nothing matches nine in ./sub (files: *.py).",
            id="nothing in some files",
        ),
        pytest.param(
            {"pattern": "two", "path": "sub", "glob": "*.rs"},
            "No file in sub fits the glob *.rs, so nothing was searched.",
            id="no file that fits",
        ),
        pytest.param(
            {"pattern": "e", "limit": 1, "path": "a.txt"},
            "a.txt:1: one\n\n[Stopped at the limit of 1 match (at most 1000 can be asked for); there are more. "
            "Search a smaller path, only some files with glob, or a more exact pattern.]",
            id="more than the limit",
        ),
        pytest.param({"pattern": "two", "limit": 1, "path": "a.txt"}, "a.txt:2: two", id="exactly the limit"),
        pytest.param(
            {"pattern": "two", "limit": 1.0, "path": "a.txt"}, "a.txt:2: two", id="a limit with a fraction of 0"
        ),
    ],
)
async def test_grep_prints(tmp_path: Path, arguments: dict[str, object], text: str) -> None:
    assert await said(GREP, context(laid(tmp_path, TREE)), **arguments) == text


@pytest.mark.requirement("TL-6")
async def test_the_data_is_the_matches_without_context(tmp_path: Path) -> None:
    found = await call(GREP, context(laid(tmp_path, TREE)), pattern="two", context=1)
    assert found.structured == {
        "matches": [
            {"path": "a.txt", "line": 2, "text": "two", "cut": False},
            {"path": "sub/b.py", "line": 1, "text": "def two():", "cut": False},
        ],
        "truncated": False,
        "files_left_out": 0,
    }


@pytest.mark.parametrize(
    ("content", "pattern", "text"),
    [
        pytest.param(b"caf\xe9 x\n", "x", "f:1: caf\ufffd x", id="bytes that are not UTF-8 are replaced"),
        pytest.param("nöße\n", "öß", "f:1: nöße", id="UTF-8"),
        pytest.param("\ufeffone\n", "^one", "f:1: one", id="a BOM is not shown"),
        pytest.param("one\nx é\n".encode("utf-16"), "é", "f:2: x é", id="UTF-16 with a BOM"),
        pytest.param(b"end\r\nnext\r\n", "end$", "f:1: end", id="the end of a line before CRLF"),
        pytest.param(b"a\tb\x1b[31m\n", "a", "f:1: a\tb\x1b[31m", id="tabs and the like stay"),
        pytest.param(b"a\x00b\n", "a", "f is a binary file, which grep does not search.", id="a binary file"),
        pytest.param(b"", "a", "Nothing matches a in f.", id="an empty file"),
        pytest.param(b"no newline", "no", "f:1: no newline", id="a last line without a newline"),
    ],
)
async def test_grep_reads_files_of_any_kind(tmp_path: Path, content: bytes | str, pattern: str, text: str) -> None:
    assert await said(GREP, context(laid(tmp_path, {"f": content})), pattern=pattern, path="f") == text


async def test_binary_files_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    laid(tmp_path, {"bin": b"needle\n\0\n", "text": b"needle\n"})
    assert await said(GREP, context(tmp_path), pattern="needle") == "text:1: needle"


async def test_binary_data_deep_in_a_named_file_ends_the_search_of_it(tmp_path: Path) -> None:
    laid(tmp_path, {"f": b"needle\n" + b"x\n" * 100_000 + b"needle \0\n"})
    assert await said(GREP, context(tmp_path), pattern="needle", path="f") == (
        "f:1: needle\n\n[Binary data was met in a file; matches after it are not shown.]"
    )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("(foo", "The pattern is not a valid regular expression: regex parse error", id="what is wrong"),
        pytest.param("(foo", "error: unclosed group\nCorrect it, or set literal to true", id="what to do"),
        pytest.param("a(?=b)", "look-around, including look-ahead and look-behind, is not supported", id="look-ahead"),
        pytest.param("a\nb", "within one line, so it cannot contain a line break", id="a line break"),
        pytest.param("a\\nb", "within one line, so it cannot contain a line break", id="an escaped line break"),
        pytest.param("a\0", "NUL", id="a NUL"),
        pytest.param("\ud800", "half of a surrogate pair", id="half of a pair"),
        pytest.param("x{99999}{99999}", "The pattern is not a valid regular expression", id="an endless one"),
    ],
)
async def test_a_pattern_that_cannot_be_searched_for_is_an_error(tmp_path: Path, pattern: str, words: str) -> None:
    text = await refused(GREP, context(laid(tmp_path, TREE)), pattern=pattern)
    assert words in text
    assert "--" not in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"glob": "*.{ts"}, "opens a brace that it does not close", id="a bad glob"),
        pytest.param({"path": "none"}, "none does not exist.", id="a path that is not there"),
        pytest.param({"path": "../x"}, "../x is outside the workspace.", id="a path outside"),
    ],
)
async def test_what_is_wrong_with_the_other_arguments_is_said(
    tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    assert words in await refused(GREP, context(laid(tmp_path, TREE)), pattern="x", **arguments)


async def test_output_stops_at_the_limit_of_bytes(tmp_path: Path) -> None:
    laid(tmp_path, {"f": "x" * 400 + "\n" + "é" * 400 + "x\n" * 1000})
    found = await call(GREP, context(tmp_path, limits=Limits(output_bytes=4096)), pattern="x", limit=1000)
    assert "Stopped at 4 KiB; there are more." in text_of(found)
    assert len(text_of(found).encode()) <= 4096
    assert found.structured is not None
    assert found.structured["truncated"]


async def test_output_stops_at_the_limit_of_lines(tmp_path: Path) -> None:
    laid(tmp_path, {"f": "x\n" * 50})
    text = await said(GREP, context(tmp_path, limits=Limits(output_lines=10)), pattern="x")
    assert text.count("f:") == 10
    assert "Stopped at 10 lines; there are more." in text


async def test_the_default_limit_is_a_setting(tmp_path: Path) -> None:
    laid(tmp_path, {"f": "x\n" * 50})
    text = await said(GREP, context(tmp_path, limits=Limits(grep_matches=3)), pattern="x")
    assert (text.count("f:"), "the limit of 3 matches" in text) == (3, True)


async def test_names_of_any_kind_cannot_be_taken_for_something_else(tmp_path: Path) -> None:
    names = ["a:1: b", "new\nline:1: x", "café", os.fsdecode(b"\xff"), '"', "\x1b[31m"]
    for name in names:
        (tmp_path / name).write_text("needle\n")
    found = await call(GREP, context(tmp_path), pattern="needle")
    lines = text_of(found).split("\n")
    assert len(lines) == len(names)
    assert all(line.endswith(":1: needle") and printable(line) == line for line in lines)
    assert found.structured is not None
    paths = {match["path"] for match in found.structured["matches"]}
    assert paths == {valid(name) for name in names}


async def test_a_system_without_openat2_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(tmp_path, {**TREE, "sub/.gitignore": "c.md\n", ".gitignore": "/sub/b.py\n"})
    monkeypatch.setattr(kernel, "has_openat2", lambda: False)
    assert await said(GREP, context(tmp_path), pattern="two") == "a.txt:2: two"
    assert "Nothing matches" in await said(GREP, context(tmp_path), pattern="two", path="sub", ignore_case=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_files_that_cannot_be_read_are_mentioned(tmp_path: Path) -> None:
    laid(tmp_path, {"closed": "x\n", "open": "x\n"})
    (tmp_path / "closed").chmod(0)
    assert await said(GREP, context(tmp_path), pattern="x") == (
        "open:1: x\n\n[Some files or folders could not be read.]"
    )


async def test_a_search_without_time_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    text = await refused(GREP, context(laid(tmp_path, TREE), limits=Limits(tool_seconds=0.000_001)), pattern="two")
    assert text.startswith("Nothing was found in ")
    assert "Search a smaller path" in text


def found_in(ending: Ending) -> Found:
    """One match, and that ending."""
    return Found([FileLines("a", [Line(1, "x", True, False, 0, 2)])], None, None, Searched(ending))


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        pytest.param(
            Ending(End.OUT_OF_TIME, -9, ""),
            "The search was stopped after 57 s; partial results follow.\n\na:1: x",
            id="out of time",
        ),
        pytest.param(
            Ending(End.COMPLETE, -6, "memory allocation of 9 bytes failed"),
            "a:1: x\n\n[The search ran out of memory and ended early; there may be more matches. Search a smaller "
            "path, only some files with glob, or a more exact pattern.]",
            id="out of memory",
        ),
    ],
)
def test_partial_results_are_shown_and_said_to_be_partial(ending: Ending, text: str) -> None:
    asked = Asked(Query("x", literal=False, ignore_case=False, context=0, limit=9), None, "the workspace")
    answer = result(asked, found_in(ending), Limits())
    assert (text_of(answer), answer.is_error) == (text, False)
    assert answer.structured is not None
    assert answer.structured["truncated"]


@pytest.mark.skipif(sys.platform != "linux", reason="no limit can be put on another process")
async def test_13_a_line_too_large_for_memory_ends_the_search_and_not_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ripgrep holds a line whole; here it may use 48 MB, and the line has 100."""
    monkeypatch.setattr(search_process, "_MEMORY_BYTES", 48 * 1024 * 1024)
    (tmp_path / "f").write_bytes(b"x" * 100_000_000)
    text = await refused(GREP, context(tmp_path), pattern="xy", path="f")
    assert text.startswith("Nothing was found before the search ran out of memory")


NAMES = (
    "a.py",
    "b/a.py",
    "b/[id].py",
    "b/é.c",
    "b/e\u0301.c",
    "it\u2019s a.c",
    "-x",
    "#a",
    "!a",
    "c d",
    "c/.a",
    "a*",
    "b/c/a",
)
PIECES = st.sampled_from([*"abcdeé*?!# '-x./", "**", "/", "[id]", "[!a]", "{a,b}", "*.py", "\\*"])


@settings(max_examples=60, deadline=None)
@given(glob=st.lists(PIECES, min_size=1, max_size=5).map("".join))
def test_the_files_searched_are_those_that_the_glob_takes(odd_names: Path, glob: str) -> None:
    """ripgrep walks with rules that are wider than the glob; they must never be narrower."""
    compiled = file_filter(glob)
    if isinstance(compiled, Fault):
        return
    found = asyncio.run(call(GREP, context(odd_names), pattern="needle", glob=glob))
    assert found.structured is not None
    assert {match["path"] for match in found.structured["matches"]} == {n for n in NAMES if compiled.matches(n)}


@pytest.fixture(scope="module")
def odd_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose file names need care in a glob."""
    return laid(tmp_path_factory.mktemp("odd"), dict.fromkeys(NAMES, "needle\n"))


async def test_searches_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    for number in range(20):
        laid(tmp_path, {f"{number}/f": f"needle {number}\n"})
    ctx = context(tmp_path)
    answers = await asyncio.gather(
        *(said(GREP, ctx, pattern="needle", path=str(number)) for number in range(20)),
        *(said(GREP, ctx, pattern=f"needle {number}$") for number in range(20)),
    )
    assert answers == [f"{number}/f:1: needle {number}" for number in range(20)] * 2


async def test_a_cancelled_call_ends(tmp_path: Path) -> None:
    """Cancelled at once, before the search has a process, and again after; no file is left open."""
    laid(tmp_path, TREE)
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        task = asyncio.create_task(call(GREP, context(tmp_path), pattern="two"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await said(GREP, context(tmp_path), pattern="seven") == "a.txt:7: seven"
    assert len(os.listdir("/dev/fd")) <= before + 1


LINES = st.lists(st.text("ab*(\u00e9 \t", max_size=8), max_size=6)


@settings(max_examples=25, deadline=None)
@given(files=st.lists(LINES, min_size=1, max_size=3), literal=st.text("ab*(\u00e9", min_size=1, max_size=3))
def test_the_matches_are_the_lines_that_hold_the_text(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], literal: str
) -> None:
    root = tmp_path_factory.mktemp("ws")
    for number, lines in enumerate(files):
        (root / f"f{number}").write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
    found = asyncio.run(call(GREP, context(root), pattern=literal, literal=True))
    assert found.structured is not None
    assert [(match["path"], match["line"], match["text"]) for match in found.structured["matches"]] == [
        (f"f{number}", index, line)
        for number, lines in enumerate(files)
        for index, line in enumerate(lines, 1)
        if literal in line
    ]
