"""The tool `write`, as the server calls it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from auth.permissions import Mode
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.tools.write import TOOL
from mcp.workspace.locks import Held, try_lock
from mcp.workspace.opening import Place
from tests.support.files import call, context, refused, said, tree


@pytest.mark.requirement("TL-6")
async def test_a_new_file_is_told_from_a_replaced_one_and_bytes_are_bytes(tmp_path: Path) -> None:
    assert await call(TOOL, context(tmp_path), path="a/f", content="\u20ac" * 1000) == ToolResult(
        (Text("Created a/f with 3,000 bytes."),), {"path": "a/f", "bytes": 3000, "created": True}
    )
    assert await call(TOOL, context(tmp_path), path="./a/f", content="x") == ToolResult(
        (Text("Replaced ./a/f with 1 byte."),), {"path": "a/f", "bytes": 1, "created": False}
    )
    assert tree(tmp_path) == {"a": "/", "a/f": b"x"}


async def test_content_is_written_as_it_is(tmp_path: Path) -> None:
    await said(TOOL, context(tmp_path), path="f", content="\ufeffa\r\nb\rc\x0b\u2028")
    assert (tmp_path / "f").read_bytes() == "\ufeffa\r\nb\rc\x0b\u2028".encode()


async def test_half_a_surrogate_pair_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    answer = await TOOL.run(context(tmp_path), {"path": "d/f", "content": "\ud800"})
    assert answer == ToolResult(
        (Text("content is not valid Unicode: it contains half of a surrogate pair."),), is_error=True
    )
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param("d", "d is a folder, not a file. Use ls to list it.", id="a folder"),
        pytest.param("f/x", "f/x does not exist: a part of it is a file, not a folder.", id="a file as a folder"),
        pytest.param("x/", "x/ names a folder. Give the path of a file.", id="a slash at the end"),
    ],
)
async def test_what_cannot_be_written_is_refused_in_words(tmp_path: Path, path: str, answer: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("f")
    before = tree(tmp_path)
    assert await refused(TOOL, context(tmp_path), path=path, content="x") == answer
    assert tree(tmp_path) == before


@pytest.mark.parametrize("path", [".git/hooks/x", ".superpi/x", "link/x"])
async def test_protected_folders_are_refused_before_anything_is_made(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to(".git")
    result = await call(TOOL, context(tmp_path), path=path, content="x")
    assert result.is_error
    assert result.meta is not None
    assert tree(tmp_path) == {".git": "/", "link": "-> .git"}


@pytest.mark.parametrize(
    ("mode", "inside", "outside"),
    [
        pytest.param(Mode.READ_ONLY, False, False, id="read_only writes nowhere"),
        pytest.param(Mode.WORKSPACE_WRITE, True, False, id="workspace_write writes in the workspace"),
        pytest.param(Mode.FULL, True, True, id="full writes in extra roots too"),
    ],
)
async def test_the_mode_bounds_where_writes_go(tmp_path: Path, mode: Mode, inside: bool, outside: bool) -> None:
    root, extra = tmp_path / "ws", tmp_path / "extra"
    root.mkdir()
    extra.mkdir()
    (root / "link").symlink_to(extra)
    ctx = context(root, extra, mode=mode)
    for path, allowed in (("f", inside), (f"{extra}/f", outside), ("link/g", outside)):
        assert (await call(TOOL, ctx, path=path, content="x")).is_error is not allowed
    assert tree(root) == {"link": f"-> {extra}", **({"f": b"x"} if inside else {})}
    assert tree(extra) == ({"f": b"x", "g": b"x"} if outside else {})


async def test_writes_of_one_file_at_the_same_time_leave_one_of_them_whole(tmp_path: Path) -> None:
    contents = [str(number) * 100_000 for number in range(8)]
    await asyncio.gather(*(said(TOOL, context(tmp_path), path="d/f", content=content) for content in contents))
    assert (tmp_path / "d" / "f").read_text() in contents
    assert tree(tmp_path).keys() == {"d", "d/f"}


async def test_a_write_that_waits_for_its_turn_can_be_cancelled_and_then_never_happens(tmp_path: Path) -> None:
    lock = try_lock(Place(str(tmp_path), "f"))
    assert isinstance(lock, Held)
    task = asyncio.create_task(call(TOOL, context(tmp_path), path="f", content="late"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    lock.release()
    await said(TOOL, context(tmp_path), path="f", content="next")
    assert tree(tmp_path) == {"f": b"next"}


async def test_a_lock_that_is_never_given_back_ends_in_words(tmp_path: Path) -> None:
    lock = try_lock(Place(str(tmp_path), "f"))
    assert isinstance(lock, Held)
    answer = await refused(TOOL, context(tmp_path, limits=Limits(tool_seconds=0.01)), path="f", content="x")
    lock.release()
    assert answer == "Another call is changing this file and does not finish. Nothing was changed; try again."
    assert tree(tmp_path) == {}
