"""The cases of public trackers about files, each with the right answer; the numbers are those of the report's case."""

from __future__ import annotations

import base64
import io
import os
import random
import time
import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path

import PIL.Image
import pytest

from mcp.limits import Limits
from mcp.protocol.content import Image
from mcp.tools.edit import TOOL as EDIT
from mcp.tools.read import TOOL as READ
from mcp.tools.write import TOOL as WRITE
from tests.support.files import call, context, refused, said, text_of, tree

LITERAL = r"$& $1 $$ \1 \g<0> C:\new"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", "a\nb", "a\nB", b"a\r\nB\r\nc\r\n", id="1 LF text matches a CRLF file"),
        pytest.param(b"a\r\nb\r\n", "b", "B\nC", b"a\r\nB\r\nC\r\n", id="1 new lines in a CRLF file get CRLF"),
        pytest.param(b"a\nb\nc\n", "a\r\nb", "a\r\nB", b"a\nB\nc\n", id="1 CRLF text matches an LF file"),
        pytest.param(b"a\r\nb\nc\rd\n", "b", "B", b"a\r\nB\nc\rd\n", id="2 mixed endings stay"),
        pytest.param(
            b"a\r\nb\nc\rd\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\rd\n", id="2 mixed endings stay inside the match"
        ),
        pytest.param(b"\xef\xbb\xbfx=1\n", "x=1", "x=2", b"\xef\xbb\xbfx=2\n", id="3 the BOM stays first"),
        pytest.param(
            b"const x = 1;\n// caf\xe9\n", "x = 1", "x = 2", b"const x = 2;\n// caf\xe9\n", id="4 Latin-1 bytes stay"
        ),
        pytest.param(
            b"const x = 1;\n// caf\xe9\n",
            "const x = 1;\n// caf\ufffd",
            "const x = 2;\n// caf\ufffd",
            b"const x = 2;\n// caf\xe9\n",
            id="4 Latin-1 bytes stay in a line that the edit repeats as it was shown",
        ),
        pytest.param(b"a X b\n", "X", LITERAL, f"a {LITERAL} b\n".encode(), id="5 replacement patterns are literal"),
        pytest.param(
            "say \u201chi\u201d  \n2\n3\nit\u2019s\n".encode(),
            "it's",
            "it is",
            "say \u201chi\u201d  \n2\n3\nit is\n".encode(),
            id="6 a tolerant match leaves other lines alone",
        ),
        pytest.param(
            b"all: x\n\tcc x.c\n\nx:\n\ttouch x\n",
            "all: x\n",
            "most: x\n",
            b"most: x\n\tcc x.c\n\nx:\n\ttouch x\n",
            id="8 tabs stay tabs",
        ),
    ],
)
async def test_an_edit_changes_only_what_it_names(
    tmp_path: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    file = tmp_path / "f"
    file.write_bytes(before)
    await said(EDIT, context(tmp_path), path="f", edits=[{"old_text": old, "new_text": new}])
    assert file.read_bytes() == after


async def test_3_a_byte_order_mark_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfx=1\n")
    assert await said(READ, context(tmp_path), path="f") == "x=1\n"


async def test_4_what_is_shown_for_a_foreign_byte_is_never_written_over_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"caf\xe9 = 1\n")
    edits = [{"old_text": "caf\ufffd = 1", "new_text": "caf\ufffd = 2"}]
    answer = await refused(EDIT, context(tmp_path), path="f", edits=edits)
    assert "line 1" in answer
    assert "not UTF-8" in answer
    assert (tmp_path / "f").read_bytes() == b"caf\xe9 = 1\n"


@pytest.mark.parametrize(
    ("old", "answer"),
    [
        pytest.param(
            "x\ny",
            "edits[0].old_text occurs 2 times in f, at lines 2, 5. Add lines around it to make it unique.",
            id="8 duplicates of several lines are named by their real lines",
        ),
        pytest.param(
            "",
            "edits[0].old_text must not be empty. Give the text to replace; use write to make a file.",
            id="8 empty text is refused in words",
        ),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why(tmp_path: Path, old: str, answer: str) -> None:
    (tmp_path / "f").write_text("1\nx\ny\n4\nx\ny\n")
    assert await refused(EDIT, context(tmp_path), path="f", edits=[{"old_text": old, "new_text": "z"}]) == answer


Escape = Callable[[Path, Path], str]


def _leaking_link(workspace: Path, outside: Path) -> str:
    (workspace / "leak").symlink_to(outside / "secret")
    return "leak"


def _leaking_folder(workspace: Path, outside: Path) -> str:
    (workspace / "d").symlink_to(outside)
    return "d/secret"


def _relative_link(workspace: Path, outside: Path) -> str:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "leak").symlink_to(f"../../{outside.name}/secret")
    return "sub/leak"


def _chain_of_links(workspace: Path, outside: Path) -> str:
    (workspace / "one").symlink_to("two")
    (workspace / "two").symlink_to(outside / "secret")
    return "one"


ESCAPES = [
    pytest.param(_leaking_link, id="9 through a link to a file outside"),
    pytest.param(_leaking_folder, id="9 through a link to a folder outside"),
    pytest.param(_relative_link, id="9 through a relative link"),
    pytest.param(_chain_of_links, id="9 through a chain of links"),
    pytest.param(lambda _, outside: str(outside / "secret"), id="10 by an absolute path with the root as prefix"),
    pytest.param(lambda _, outside: f"../{outside.name}/secret", id="10 by a relative path with the root as prefix"),
    pytest.param(lambda _, outside: f"file://{outside}/secret", id="10 by a URL"),
    pytest.param(lambda _, outside: f"@../{outside.name}/secret", id="11 by a mention"),
    pytest.param(lambda _, outside: f"sub/../../{outside.name}/secret", id="11 by dots in the middle"),
]


@pytest.mark.parametrize("escape", ESCAPES)
async def test_nothing_outside_is_read_written_or_told(tmp_path: Path, escape: Escape) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "ws-evil"
    workspace.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("canary")
    given = escape(workspace, outside)
    ctx = context(workspace)
    edits = [{"old_text": "canary", "new_text": "x"}]
    answer = f"{given} is outside the workspace. Give a path below the workspace root."
    assert await refused(READ, ctx, path=given) == answer
    assert await refused(WRITE, ctx, path=given, content="x") == answer
    assert await refused(EDIT, ctx, path=given, edits=edits) == answer
    assert tree(outside) == {"secret": b"canary"}


async def test_9_a_write_below_a_link_to_a_folder_outside_makes_nothing(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "out"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "d").symlink_to(outside)
    assert "outside the workspace" in await refused(WRITE, context(workspace), path="d/new", content="x")
    assert "outside the workspace" in await refused(WRITE, context(workspace), path="d/deep/new", content="x")
    assert tree(outside) == {}


@pytest.mark.parametrize("aim", ["file", "{root}/file", "../ws/file", "sub/../file"])
async def test_9_a_link_to_a_file_inside_works_however_it_is_written(tmp_path: Path, aim: str) -> None:
    workspace = tmp_path / "ws"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "file").write_text("hello\n")
    aim = aim.format(root=workspace)
    (workspace / "link").symlink_to(aim)
    assert await said(READ, context(workspace), path="link") == "hello\n"
    await said(EDIT, context(workspace), path="link", edits=[{"old_text": "hello", "new_text": "bye"}])
    await said(WRITE, context(workspace), path="link", content="new\n")
    assert tree(workspace) == {"file": b"new\n", "link": f"-> {aim}", "sub": "/"}


@pytest.mark.parametrize("given", ["../../x", "missing", "a/missing", "~/x", "/nowhere/x", "d", "f/x"])
async def test_11_errors_never_name_a_folder_of_the_server(tmp_path: Path, given: str) -> None:
    workspace = tmp_path / "ws"
    (workspace / "d").mkdir(parents=True)
    (workspace / "f").touch()
    for answer in (
        await refused(READ, context(workspace), path=given),
        await refused(EDIT, context(workspace), path=given, edits=[{"old_text": "a", "new_text": "b"}]),
    ):
        assert given in answer
        assert str(tmp_path) not in answer


async def test_13_the_first_lines_of_a_huge_file_come_at_once(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1, 101)))
        file.truncate(2 * 1024**3)
    started = time.monotonic()
    answer = await said(READ, context(tmp_path), path="huge", offset=10, limit=5)
    assert time.monotonic() - started < 1
    assert answer == ("line 10\nline 11\nline 12\nline 13\nline 14\n\n[Lines 10-14 shown. Continue with offset=15.]")


async def test_14_one_giant_line_is_explained_with_a_way_to_see_it(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_bytes(b"x" * 5_000_000)
    answer = await refused(READ, context(tmp_path), path="min.js")
    assert answer == (
        "Line 1 of min.js is longer than 51,200 bytes, the most that read shows."
        " See its beginning with bash: sed -n '1p' min.js | head -c 51200"
    )


def _png(width: int, height: int, *, noise: bool = False) -> bytes:
    content = random.Random(1).randbytes(width * height * 3) if noise else bytes(width * height * 3)
    out = io.BytesIO()
    PIL.Image.frombytes("RGB", (width, height), content).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _bmp() -> bytes:
    out = io.BytesIO()
    PIL.Image.new("RGB", (9, 9)).save(out, "BMP")
    return out.getvalue()


async def test_16_a_text_that_begins_like_an_image_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("GIF is a format.\n")
    (tmp_path / "b.md").write_text("GIF89a is a format.\n")
    assert await said(READ, context(tmp_path), path="a.md") == "GIF is a format.\n"
    assert await said(READ, context(tmp_path), path="b.md") == "GIF89a is a format.\n"


async def test_16_an_image_is_told_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    content = _png(30, 20)
    (tmp_path / "picture.txt").write_bytes(content)
    result = await call(READ, context(tmp_path), path="picture.txt")
    assert result.content[1:] == (Image(base64.b64encode(content).decode(), "image/png"),)
    assert text_of(result) == f"picture.txt: PNG image, {len(content):,} bytes, 30 x 20 pixels."


async def test_16_a_large_image_is_scaled_below_both_limits(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(_png(2100, 1950, noise=True))
    assert (tmp_path / "big.png").stat().st_size > 12_000_000
    result = await call(READ, context(tmp_path), path="big.png")
    block = result.content[1]
    assert isinstance(block, Image)
    assert len(block.data) <= Limits().image_bytes
    with PIL.Image.open(io.BytesIO(base64.b64decode(block.data))) as image:
        assert max(image.size) <= 2000
        assert PIL.Image.MIME[image.format or ""] == block.mime_type


async def test_16_an_image_that_cannot_be_made_to_fit_is_a_note_in_text(tmp_path: Path) -> None:
    (tmp_path / "noise.png").write_bytes(_png(300, 300, noise=True))
    result = await call(READ, context(tmp_path, limits=Limits(image_bytes=100)), path="noise.png")
    assert not result.is_error
    assert len(result.content) == 1
    assert "noise.png is not shown (PNG image" in text_of(result)


async def test_16_other_binary_files_are_refused_with_type_and_size(tmp_path: Path) -> None:
    content = _bmp()
    (tmp_path / "x.png").write_bytes(content)
    answer = await refused(READ, context(tmp_path), path="x.png")
    assert answer == f"x.png is not a text file (BMP image, {len(content)} bytes). Use bash to look into it."


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda ctx: refused(READ, ctx, path="notes.md"), id="17 read"),
        pytest.param(lambda ctx: refused(WRITE, ctx, path="notes.md", content="x"), id="17 write"),
        pytest.param(
            lambda ctx: refused(EDIT, ctx, path="notes.md", edits=[{"old_text": "a", "new_text": "b"}]), id="17 edit"
        ),
    ],
)
@pytest.mark.parametrize("through_link", [False, True], ids=["itself", "through a link"])
async def test_a_fifo_is_refused_at_once(
    tmp_path: Path, act: Callable[[object], Awaitable[str]], through_link: bool
) -> None:
    os.mkfifo(tmp_path / ("pipe" if through_link else "notes.md"))
    if through_link:
        (tmp_path / "notes.md").symlink_to("pipe")
    assert await act(context(tmp_path)) == "notes.md is not a regular file: it is a FIFO."


async def test_17_a_link_to_a_device_is_outside(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert "outside the workspace" in await refused(READ, context(tmp_path), path="zero")
    assert "outside the workspace" in await refused(READ, context(tmp_path), path="/dev/zero")


NFC, NFD = (unicodedata.normalize(form, "caf\u00e9.txt") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("on_disk", "asked"),
    [
        pytest.param(NFD, NFC, id="21 NFD on disk, asked in NFC"),
        pytest.param(NFC, NFD, id="21 NFC on disk, asked in NFD"),
        pytest.param("Screenshot 1.23\u202fPM.txt", "Screenshot 1.23 PM.txt", id="21 the space of a screenshot"),
        pytest.param("it\u2019s.txt", "it's.txt", id="21 a curly apostrophe"),
        pytest.param(f"{NFD}.d/it\u2019s", f"{NFC}.d/it's", id="21 in a folder too"),
    ],
)
async def test_a_file_is_found_in_another_spelling_and_keeps_its_name(tmp_path: Path, on_disk: str, asked: str) -> None:
    file = tmp_path / on_disk
    file.parent.mkdir(exist_ok=True)
    file.write_text("one\n")
    assert await said(READ, context(tmp_path), path=asked) == "one\n"
    await said(EDIT, context(tmp_path), path=asked, edits=[{"old_text": "one", "new_text": "two"}])
    assert file.read_text() == "two\n"
    await said(WRITE, context(tmp_path), path=asked, content="three\n")
    assert file.read_text() == "three\n"
    assert len(list(file.parent.glob("[!.]*"))) == 1


async def test_21_two_names_that_fit_are_no_match_and_an_exact_one_wins(tmp_path: Path) -> None:
    (tmp_path / "a\u00a0b").write_text("no-break")
    (tmp_path / "a\u202fb").write_text("narrow")
    assert "does not exist" in await refused(READ, context(tmp_path), path="a b")
    assert await said(READ, context(tmp_path), path="a\u202fb") == "narrow"
    (tmp_path / "a b").write_text("plain")
    assert await said(READ, context(tmp_path), path="a b") == "plain"


@pytest.mark.parametrize("name", [NFD, NFC, "a\u202fb", "it\u2019s"])
async def test_21_a_new_file_gets_exactly_the_name_given(tmp_path: Path, name: str) -> None:
    await said(WRITE, context(tmp_path), path=name, content="x")
    assert tree(tmp_path) == {name: b"x"}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"edits": '[{"old_text": "a", "new_text": "b"}]'}, id="38 edits as a JSON string"),
        pytest.param({"edits": {"old_text": "a", "new_text": "b"}}, id="38 one object"),
        pytest.param({"edits": ['{"oldText": "a", "newText": "b"}']}, id="38 an edit as a JSON string"),
        pytest.param({"edits": [{"oldText": "a", "newText": "b"}]}, id="38 camelCase"),
        pytest.param({"edits": [{"old_text": "a", "new_text": "b", "reason": "why", "x": None}]}, id="38 extra keys"),
        pytest.param({"edits": [{"old_text": "a", "new_text": "b", "oldText": None}]}, id="38 null for absent"),
        pytest.param({"old_text": "a", "new_text": "b"}, id="38 the pair beside the path"),
        pytest.param({"oldText": "a", "newText": "b", "edits": None}, id="38 the pair beside the path in camelCase"),
    ],
)
async def test_tolerated_shapes_of_edit_mean_the_same(tmp_path: Path, arguments: dict[str, object]) -> None:
    (tmp_path / "f").write_text("a\n")
    await said(EDIT, context(tmp_path), path="f", **arguments)
    assert (tmp_path / "f").read_text() == "b\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"offset": None, "limit": None}, id="38 null for optional numbers"),
        pytest.param({"offset": "1", "limit": " 5 "}, id="38 numbers as strings"),
        pytest.param({"offset": 1.0, "limit": 5.0}, id="38 whole numbers with a point"),
    ],
)
async def test_tolerated_shapes_of_read_mean_the_same(tmp_path: Path, arguments: dict[str, object]) -> None:
    (tmp_path / "f").write_text("a\n")
    assert await said(READ, context(tmp_path), path="f", **arguments) == "a\n"
