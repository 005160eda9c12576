"""The tool `read`, as the server calls it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from auth.permissions import Effect, Layer, Mode, Rule
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.tools.read import TEXT_RESULT, TOOL
from tests.support.files import call, context, problems_with, refused, said


async def test_a_file_comes_back_as_it_is_with_its_place_beside_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb")
    structured = {
        "path": "f", "content": "a\r\nb", "first_line": 1, "last_line": 2, "truncated": False, "total_lines": 2,
    }  # fmt: skip
    assert await call(TOOL, context(tmp_path), path="f") == ToolResult((Text("a\r\nb"),), structured)
    assert problems_with(TEXT_RESULT, structured) == []


async def test_left_off_lines_are_announced_with_the_way_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(1, 5401)))
    result = await call(TOOL, context(tmp_path), path="f")
    first = result.content[0]
    assert isinstance(first, Text)
    assert first.text.endswith("\n2000\n\n[Lines 1-2000 of 5400 shown. Continue with offset=2001.]")
    assert result.structured is not None
    assert problems_with(TEXT_RESULT, result.structured) == []
    assert {**result.structured, "content": ""} == {
        "path": "f", "content": "", "first_line": 1, "last_line": 2000, "truncated": True,
        "total_lines": 5400, "next_offset": 2001,
    }  # fmt: skip


async def test_following_the_notices_reads_the_whole_file(tmp_path: Path) -> None:
    text = "".join(f"line {number} {'x' * (number % 90)}\n" for number in range(1, 4000))
    (tmp_path / "f").write_text(text)
    pages = []
    offset: int | None = 1
    while offset is not None:
        result = await call(TOOL, context(tmp_path), path="f", offset=offset)
        assert result.structured is not None
        pages.append(result.structured["content"])
        offset = result.structured.get("next_offset")
    assert "".join(pages) == text
    assert len(pages) == 5


@pytest.mark.parametrize("lines", [1, 1999, 2000])
async def test_nothing_is_announced_when_nothing_is_left_off(tmp_path: Path, lines: int) -> None:
    (tmp_path / "f").write_text("x\n" * lines)
    assert await said(TOOL, context(tmp_path), path="f") == "x\n" * lines


async def test_a_line_is_never_cut_by_the_byte_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("\u20ac\u20ac\n" * 3)
    answer = await said(TOOL, context(tmp_path, limits=Limits(output_bytes=20)), path="f")
    assert answer == "\u20ac\u20ac\n\u20ac\u20ac\n\n[Lines 1-2 of 3 shown. Continue with offset=3.]"


@pytest.mark.parametrize(
    ("content", "arguments", "answer"),
    [
        pytest.param("", {}, "f is empty.", id="an empty file"),
        pytest.param("a\nb\n", {"offset": 2}, "b\n", id="from the second line"),
        pytest.param(
            "a\nb\n", {"limit": 1}, "a\n\n[Lines 1-1 of 2 shown. Continue with offset=2.]", id="one line of two"
        ),
        pytest.param("a\nb\n", {"offset": 2, "limit": 1}, "b\n", id="the last line"),
    ],
)
async def test_offset_and_limit_choose_lines(
    tmp_path: Path, content: str, arguments: dict[str, int], answer: str
) -> None:
    (tmp_path / "f").write_text(content)
    assert await said(TOOL, context(tmp_path), path="f", **arguments) == answer


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        pytest.param("", "offset 9 is beyond the end of f, which has 0 lines.", id="no line"),
        pytest.param("a", "offset 9 is beyond the end of f, which has 1 line.", id="one line"),
        pytest.param("a\nb\n", "offset 9 is beyond the end of f, which has 2 lines.", id="two lines"),
    ],
)
async def test_an_offset_beyond_the_end_names_the_number_of_lines(tmp_path: Path, content: str, answer: str) -> None:
    (tmp_path / "f").write_text(content)
    assert await refused(TOOL, context(tmp_path), path="f", offset=9) == answer


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(b"it's.js", "./it's.js", id="an apostrophe"),
        pytest.param(b"\xff '\n1.js", "\ufffd '\ufffd1.js", id="what cannot be shown"),
    ],
)
async def test_the_command_for_a_long_line_is_quoted_and_runs_in_the_workspace(
    tmp_path: Path, name: bytes, given: str
) -> None:
    (tmp_path / os.fsdecode(name)).write_text("\n" + "x" * 60_000)
    answer = await refused(TOOL, context(tmp_path), path=given, offset=2)
    command = answer.partition("bash: ")[2]
    process = await asyncio.create_subprocess_exec("bash", "-c", command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert output == b"x" * 51_200


async def test_a_folder_is_refused_with_the_tool_for_it(tmp_path: Path) -> None:
    assert await refused(TOOL, context(tmp_path), path=".") == ". is a folder, not a file. Use ls to list it."


async def test_the_policy_judges_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("canary")
    (tmp_path / "notes").symlink_to(".env")
    (tmp_path / ".env.example").write_text("example")
    for path in (".env", "notes"):
        result = await call(TOOL, context(tmp_path), path=path)
        assert result.is_error
        assert "canary" not in str(result)
        assert result.meta is not None
    assert await said(TOOL, context(tmp_path), path=".env.example") == "example"


async def test_a_rule_that_denies_a_folder_denies_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "k").write_text("canary")
    ctx = context(tmp_path, rules=(Rule("read", "secrets/**", Effect.DENY, Layer.RULE),))
    assert "canary" not in await refused(TOOL, ctx, path="secrets/k")


async def test_reading_needs_no_more_than_the_lowest_mode(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    assert await said(TOOL, context(tmp_path, mode=Mode.READ_ONLY), path="f") == "a"
