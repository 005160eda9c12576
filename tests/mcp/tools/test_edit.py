"""The tool `edit`, as the server calls it: its result, its atomicity, and that concurrent edits lose nothing."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import Mode
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.tools.arguments import normalize_edit
from mcp.tools.edit import TOOL
from mcp.workspace.locks import Held, try_lock
from mcp.workspace.opening import Place
from tests.support.environments import ROOT
from tests.support.files import call, context, problems_with, refused, said, tree


@pytest.mark.requirement("TL-6")
async def test_the_result_shows_the_change(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n")
    edits = [{"old_text": "2", "new_text": "two"}, {"old_text": "3\n", "new_text": ""}]
    diff = "--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n 1\n-2\n-3\n+two"
    assert await call(TOOL, context(tmp_path), path="./f", edits=edits) == ToolResult(
        (Text(f"Made 2 edits in ./f (+1 -2 lines).\n\n{diff}"),),
        {
            "path": "f", "edits": 2, "added": 1, "removed": 2, "first_line": 2, "diff": diff,
            "diff_truncated": False, "inexact": [],
        },
    )  # fmt: skip
    assert (tmp_path / "f").read_text() == "1\ntwo\n"


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        pytest.param("a", "b", "@@ -1,2 +1,2 @@\n-a\n+b\n c", id="a change right after it"),
        pytest.param("c", "d", "@@ -1,2 +1,2 @@\n a\n-c\n+d", id="a change further on"),
        pytest.param("\ufeffa", "\ufeffb", "@@ -1,2 +1,2 @@\n-a\n+b\n c", id="a change that repeats it"),
        pytest.param("\ufeffa", "a", "@@ -1,2 +1,2 @@\n-\ufeffa\n+a\n c", id="a change that removes it"),
    ],
)
async def test_the_diff_does_not_show_a_byte_order_mark_that_stays(
    tmp_path: Path, old: str, new: str, diff: str
) -> None:
    (tmp_path / "f").write_text("\ufeffa\nc\n")
    result = await call(TOOL, context(tmp_path), path="f", edits=[{"old_text": old, "new_text": new}])
    assert result.structured is not None
    assert result.structured["diff"] == f"--- a/f\n+++ b/f\n{diff}"
    assert (tmp_path / "f").read_text() == "\ufeffa\nc\n".replace(old, new)


async def test_an_inexact_match_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("it\u2019s\n")
    result = await call(TOOL, context(tmp_path), path="f", edits=[{"old_text": "it's", "new_text": "it is"}])
    assert result.structured is not None
    assert result.structured["inexact"] == [0]
    assert "edits[0] matched with blanks or typography ignored." in str(result.content)


async def test_a_long_diff_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n" * 3000 + "end\n")
    edits = [{"old_text": "a\n" * 3000 + "end", "new_text": "b\n" * 3000}]
    result = await call(TOOL, context(tmp_path), path="f", edits=edits)
    assert result.structured is not None
    assert result.structured["diff_truncated"]
    assert "[The diff is cut here." in str(result.content)


async def test_one_edit_that_fails_fails_all(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a b\n")
    edits = [{"old_text": "a", "new_text": "x"}, {"old_text": "nothing", "new_text": "y"}]
    assert (await refused(TOOL, context(tmp_path), path="f", edits=edits)).startswith("edits[1].old_text was not found")
    assert tree(tmp_path) == {"f": b"a b\n"}


async def test_mode_and_link_stay(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    (tmp_path / "f").chmod(0o751)
    (tmp_path / "link").symlink_to("f")
    await said(TOOL, context(tmp_path), path="link", edits=[{"old_text": "a", "new_text": "b"}])
    assert tree(tmp_path) == {"f": b"b", "link": "-> f"}
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o751


@pytest.mark.parametrize(
    ("content", "limits", "answer"),
    [
        pytest.param(
            b"x" * 20, Limits(edit_file_bytes=10),
            "f is too large to edit: 20 bytes, at most 10. Use bash (sed, for example) instead.", id="a large file",
        ),
        pytest.param(
            "a".encode("utf-16"), Limits(),
            "f is UTF-16 text, and edit changes UTF-8. Use bash to change or convert it.", id="UTF-16",
        ),
    ],
)  # fmt: skip
async def test_files_that_it_cannot_edit_are_left_alone(
    tmp_path: Path, content: bytes, limits: Limits, answer: str
) -> None:
    (tmp_path / "f").write_bytes(content)
    edits = [{"old_text": "a", "new_text": "b"}]
    assert await refused(TOOL, context(tmp_path, limits=limits), path="f", edits=edits) == answer
    assert tree(tmp_path) == {"f": content}


async def test_a_missing_file_is_not_made_and_a_similar_one_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    edits = [{"old_text": "a", "new_text": "b"}]
    answer = await refused(TOOL, context(tmp_path), path="mian.py", edits=edits)
    assert answer == "mian.py does not exist. Did you mean main.py?"


async def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    result = await TOOL.run(context(tmp_path), {"path": "f", "edits": [{"old_text": "a", "new_text": "\ud800"}]})
    assert result.is_error
    assert tree(tmp_path) == {"f": b"a"}


@pytest.mark.parametrize("path", [".env", "link", ".git/config"])
async def test_what_may_not_be_read_or_written_may_not_be_edited(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("canary")
    (tmp_path / ".env").write_text("canary")
    (tmp_path / "link").symlink_to(".env")
    before = tree(tmp_path)
    result = await call(TOOL, context(tmp_path), path=path, edits=[{"old_text": "canary", "new_text": "x"}])
    assert result.is_error
    assert result.meta is not None
    assert tree(tmp_path) == before


async def test_read_only_edits_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    ctx = context(tmp_path, mode=Mode.READ_ONLY)
    assert "read_only" in await refused(TOOL, ctx, path="f", edits=[{"old_text": "a", "new_text": "b"}])
    assert tree(tmp_path) == {"f": b"a"}


async def test_a_workspace_without_room_for_locks_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    (tmp_path / ".superpi").write_text("mine")
    answer = await refused(TOOL, context(tmp_path), path="f", edits=[{"old_text": "a", "new_text": "b"}])
    assert answer.startswith("The workspace cannot be changed: the server cannot keep its locks")
    assert (tmp_path / "f").read_text() == "a"


async def test_edits_of_one_file_at_the_same_time_are_all_made(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"<{number}>\n" for number in range(30)))
    await asyncio.gather(
        *(
            said(TOOL, context(tmp_path), path="f", edits=[{"old_text": f"<{number}>", "new_text": f"[{number}]"}])
            for number in range(30)
        )
    )
    assert (tmp_path / "f").read_text() == "".join(f"[{number}]\n" for number in range(30))


EDITOR = """
import asyncio, sys
from pathlib import Path
from mcp.tools.edit import TOOL
from tests.support.files import context, said

async def main(root, mark):
    sys.stdin.readline()
    for number in range(20):
        edits = [{"old_text": f"<{mark}{number}>", "new_text": f"[{mark}{number}]"}]
        await said(TOOL, context(Path(root)), path="f", edits=edits)

print("ready", flush=True)
asyncio.run(main(*sys.argv[1:]))
"""


def test_edits_of_one_file_by_two_processes_are_all_made(tmp_path: Path) -> None:
    """Each process changes its own lines of the file, as fast as it can; a lost update would bring an old line back."""
    file = tmp_path / "f"
    lines = [f"{mark}{number}" for number in range(20) for mark in "ab"]
    file.write_text("".join(f"<{line}>\n" for line in lines))
    editors = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, tmp_path, mark], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for mark in "ab"
    ]
    for editor in editors:
        assert editor.stdout is not None
        assert editor.stdout.readline() == b"ready\n"
    for editor in editors:
        assert editor.stdin is not None
        editor.stdin.write(b"go\n")
        editor.stdin.flush()
    for editor in editors:
        editor.communicate()
        assert editor.returncode == 0
    assert file.read_text() == "".join(f"[{line}]\n" for line in lines)


async def test_an_edit_that_waits_for_its_turn_can_be_cancelled_and_then_never_happens(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")
    lock = try_lock(Place(str(tmp_path), "f"))
    assert isinstance(lock, Held)
    edits = [{"old_text": "a", "new_text": "late"}]
    task = asyncio.create_task(call(TOOL, context(tmp_path), path="f", edits=edits))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    lock.release()
    await said(TOOL, context(tmp_path), path="f", edits=[{"old_text": "a", "new_text": "next"}])
    assert tree(tmp_path) == {"f": b"next"}


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a")

    async def there_and_back() -> None:
        for old, new in (("a", "b"), ("b", "a")):
            await said(TOOL, context(tmp_path), path="f", edits=[{"old_text": old, "new_text": new}])
        await refused(TOOL, context(tmp_path), path="f", edits=[{"old_text": "x", "new_text": "y"}])

    await there_and_back()
    before = os.listdir("/proc/self/fd")
    await there_and_back()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"path": "f"}, id="no edits"),
        pytest.param({"path": "f", "edits": []}, id="an empty list"),
        pytest.param({"path": "f", "edits": "not JSON"}, id="a string that is no JSON"),
        pytest.param({"path": "f", "edits": "1"}, id="a string that is a number in JSON"),
        pytest.param({"path": "f", "edits": 1}, id="a number"),
        pytest.param({"path": "f", "edits": [{"old_text": "a"}]}, id="no new text"),
        pytest.param({"path": "f", "edits": [{"old_text": "a", "new_text": 1}]}, id="a number as text"),
        pytest.param({"path": "f", "edits": ["a"]}, id="a string as an edit"),
        pytest.param({"edits": [{"old_text": "a", "new_text": "b"}]}, id="no path"),
        pytest.param({"path": "f", "old_text": "a", "new_text": "b", "extra": 1}, id="an unknown argument"),
    ],
)
def test_what_cannot_be_understood_is_left_for_the_schema_to_refuse(arguments: dict[str, object]) -> None:
    assert problems_with(TOOL.spec.input_schema, normalize_edit(arguments)) != []


def test_what_is_in_shape_stays_as_it_is() -> None:
    arguments = {"path": "f", "edits": [{"old_text": "a", "new_text": ""}, {"old_text": "[1]", "new_text": "{}"}]}
    assert normalize_edit(arguments) == arguments


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["old_text", "newText", "x"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["path", "edits", "old_text", "newText", "old_string"]), JSON))
def test_normalization_never_fails_and_is_done_after_once(arguments: dict[str, object]) -> None:
    once = normalize_edit(arguments)
    if problems_with(TOOL.spec.input_schema, once) == []:
        assert normalize_edit(once) == once
