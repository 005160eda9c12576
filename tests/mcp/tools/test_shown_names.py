"""Names as they are shown are names that can be given (case 21)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auth.permissions import Effect, Layer, Rule
from mcp.protocol.content import ToolResult
from mcp.tools.edit import TOOL as EDIT
from mcp.tools.find import TOOL as FIND
from mcp.tools.grep import TOOL as GREP
from mcp.tools.ls import TOOL as LS
from mcp.tools.read import TOOL as READ
from mcp.tools.write import TOOL as WRITE
from tests.support.files import call, context, refused, said, text_of, tree


def data(result: ToolResult) -> Mapping[str, Any]:
    """The structured part of a success."""
    assert result.structured is not None
    return result.structured


#: Names that text alone cannot hold, or that would not stay on their line.
ODD = [
    pytest.param(b"caf\xe9.txt", id="21 a name that is not UTF-8"),
    pytest.param(b"\xff\xfe", id="21 bytes without any character"),
    pytest.param(b"\xe2\x82.txt", id="21 a cut character"),
    pytest.param(b"a\nb", id="21 a line break"),
    pytest.param("\u202etxt.exe".encode(), id="21 a name written backwards"),
    pytest.param("9.41\u202fAM\u3000\U0001f468\u200d\U0001f4bb".encode(), id="21 spaces and a joiner"),
    pytest.param(b"d\xff/f\x1b", id="21 in a folder too"),
]


@pytest.mark.parametrize("name", ODD)
async def test_a_name_is_of_use_as_it_is_shown(tmp_path: Path, name: bytes) -> None:
    """What find, ls, grep and the results of the others show, as text and as data, can be given back."""
    file = tmp_path / os.fsdecode(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("one\n")
    ctx = context(tmp_path)
    found, matched = await call(FIND, ctx, pattern="*"), await call(GREP, ctx, pattern="one")
    read = await call(READ, ctx, path=text_of(found).rpartition("\n")[2])
    assert text_of(read) == "one\n"
    paths = {
        text_of(matched).removesuffix(":1: one"),
        data(found)["files"][-1],
        data(matched)["matches"][0]["path"],
        data(read)["path"],
        *([(await said(LS, ctx)).split("\n")[-1]] if file.parent == tmp_path else []),
    }
    for path in paths:
        assert await said(READ, ctx, path=path) == "one\n"
        edited = await call(EDIT, ctx, path=path, edits=[{"old_text": "one", "new_text": "two"}])
        written = await call(WRITE, ctx, path=path, content="one\n")
        assert {data(edited)["path"], data(written)["path"]} == {data(read)["path"]}
        assert await said(GREP, ctx, pattern="one", path=path) == text_of(matched)
    assert [found for found in tmp_path.rglob("*") if found.is_file() and ".superpi" not in found.parts] == [file]


async def test_21_two_names_that_are_shown_alike_are_no_match_and_nothing_is_made(tmp_path: Path) -> None:
    for name in (b"a\xff", b"a\xfe"):
        (tmp_path / os.fsdecode(name)).write_text("x")
    before = tree(tmp_path)
    answer = "a\ufffd does not exist. More than one name there is shown like that. Rename one of them with bash."
    assert await refused(READ, context(tmp_path), path="a\ufffd") == answer
    assert await refused(WRITE, context(tmp_path), path="a\ufffd", content="y") == answer
    assert tree(tmp_path) == before
    (tmp_path / "a\ufffd").write_text("exact")
    assert await said(READ, context(tmp_path), path="a\ufffd") == "exact"


async def test_21_the_policy_judges_the_file_that_is_shown_so(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.key")).write_text("canary")
    ctx = context(tmp_path, rules=(Rule("read", "*.key", Effect.DENY, Layer.RULE),))
    assert "denies *.key" in await refused(READ, ctx, path="a\ufffd.key")


async def test_21_a_long_path_is_given_in_full_where_it_is_to_be_used(tmp_path: Path) -> None:
    path = "/".join(["folder" * 20] * 3) + "/f"
    written = await call(WRITE, context(tmp_path), path=path, content="one")
    edited = await call(EDIT, context(tmp_path), path=path, edits=[{"old_text": "one", "new_text": "two"}])
    read = await call(READ, context(tmp_path), path=path)
    assert {data(result)["path"] for result in (written, edited, read)} == {path}
    assert f"Did you mean {path}?" in await refused(READ, context(tmp_path), path=f"{path[:-1]}F")
