"""find: what it lists, in which order, where it stops, and what it says when nothing fits."""

from __future__ import annotations

import asyncio
import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auth.permissions import Effect, Rule
from mcp.limits import Limits
from mcp.tools.find import TOOL as FIND
from tests.support.files import call, context, refused, said, text_of

FILES = (
    "README.md",
    "src/app.py",
    "src/app/main.py",
    "src/app-x/main.py",
    "src/app/data/a.json",
    ".github/ci.yml",
    ".env",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to look into; no test changes it."""
    root = tmp_path_factory.mktemp("find") / "ws"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "empty").mkdir()
    (root / "link.py").symlink_to("src/app.py")
    (root / "out").symlink_to(root.parent)
    return root


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"pattern": "*.py"}, "src/app/main.py\nsrc/app-x/main.py\nsrc/app.py", id="names at any depth"),
        pytest.param({"pattern": "*.py", "path": "src/app"}, "src/app/main.py", id="paths stay those of the workspace"),
        pytest.param({"pattern": "src/*"}, "src/app/\nsrc/app-x/\nsrc/app.py", id="files and folders"),
        pytest.param({"pattern": "app*/"}, "src/app/\nsrc/app-x/", id="folders only"),
        pytest.param({"pattern": "**/data/**"}, "src/app/data/a.json", id="all below a folder"),
        pytest.param(
            {"pattern": "src/app/**"},
            "src/app/data/\nsrc/app/data/a.json\nsrc/app/main.py",
            id="a folder comes right before what is in it",
        ),
        pytest.param({"pattern": ".e*"}, ".env", id="hidden files, also those that may not be read"),
        pytest.param({"pattern": "*.yml"}, ".github/ci.yml", id="files in hidden folders"),
        pytest.param({"pattern": "link*"}, "Nothing in the workspace fits the pattern link*.", id="no links"),
        pytest.param({"pattern": "empty"}, "Nothing in the workspace fits the pattern empty.", id="no empty folders"),
        pytest.param(
            {"pattern": "readme.MD"},
            "Nothing in the workspace fits the pattern readme.MD. In another letter case there is: README.md.",
            id="another letter case",
        ),
        pytest.param(
            {"pattern": "x", "path": "./src"}, "Nothing in ./src fits the pattern x.", id="nothing in a folder"
        ),
        pytest.param({"pattern": "x", "path": "empty"}, "Nothing in empty fits the pattern x.", id="an empty folder"),
        pytest.param(
            {"pattern": "*.py", "limit": 2},
            "src/app/main.py\nsrc/app-x/main.py\n\n[Stopped at the limit of 2 results; there are more. "
            "Search a smaller path or a more exact pattern.]",
            id="more than the limit",
        ),
        pytest.param({"pattern": "*.py", "limit": 3}, "src/app/main.py\nsrc/app-x/main.py\nsrc/app.py", id="the limit"),
    ],
)
async def test_find_lists(root: Path, arguments: dict[str, object], text: str) -> None:
    assert await said(FIND, context(root), **arguments) == text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"pattern": "{a"}, "opens a brace that it does not close", id="a bad glob"),
        pytest.param({"pattern": "../*"}, "give the folder to search as `path`", id="a way up"),
        pytest.param({"pattern": "*", "path": "README.md"}, "README.md is a file, not a folder.", id="a file"),
        pytest.param({"pattern": "*", "path": "none"}, "none does not exist.", id="a folder that is not there"),
        pytest.param({"pattern": "*", "path": "out"}, "out is outside the workspace.", id="a link out"),
        pytest.param({"pattern": "*", "path": "../.."}, "../.. is outside the workspace.", id="a folder outside"),
    ],
)
async def test_what_is_wrong_is_said(root: Path, arguments: dict[str, object], words: str) -> None:
    text = await refused(FIND, context(root), **arguments)
    assert words in text
    assert str(root) not in text


@pytest.mark.requirement("TL-6")
async def test_the_data_is_the_paths(root: Path) -> None:
    found = await call(FIND, context(root), pattern="app*")
    assert found.structured == {"files": ["src/app/", "src/app-x/", "src/app.py"], "truncated": False}
    found = await call(FIND, context(root, limits=Limits(find_results=1)), pattern="app*")
    assert found.structured == {"files": ["src/app/"], "truncated": True}


async def test_output_stops_at_the_limit_of_bytes(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:02}{'x' * 50}").touch()
    found = await call(FIND, context(tmp_path, limits=Limits(output_bytes=2048)), pattern="*")
    assert "[Stopped at 2 KiB; there are more results." in text_of(found)
    assert len(text_of(found).encode()) <= 2048
    assert found.structured is not None
    assert (len(found.structured["files"]), found.structured["truncated"]) == (28, True)


async def test_names_of_any_kind_are_one_line_each(tmp_path: Path) -> None:
    names = ["a\nb", os.fsdecode(b"\xff"), "\x1b[31m", "plain"]
    for name in names:
        (tmp_path / name).touch()
    found = await call(FIND, context(tmp_path), pattern="*")
    assert len(text_of(found).split("\n")) == len(names)
    assert found.structured is not None
    assert set(found.structured["files"]) == {"a\nb", "\ufffd", "\x1b[31m", "plain"}


async def test_what_a_rule_denies_is_not_listed_and_takes_no_room(root: Path) -> None:
    ctx = context(root, rules=(Rule("find", "src/app/**", Effect.DENY),))
    assert await said(FIND, ctx, pattern="*.py", limit=2) == (
        "src/app-x/main.py\nsrc/app.py\n\n[What the permission policy keeps back is not listed.]"
    )
    assert "find was refused by the rule" in await refused(FIND, ctx, pattern="*", path="src/app")


async def test_a_denied_name_cannot_be_told_from_one_that_is_not_there(root: Path) -> None:
    ctx = context(root, rules=(Rule("find", "src/app/**", Effect.DENY),))
    answers = [await said(FIND, ctx, pattern=pattern) for pattern in ("a.json", "b.json", "A.JSON")]
    assert answers == [f"Nothing in the workspace fits the pattern {p}." for p in ("a.json", "b.json", "A.JSON")]


async def test_files_of_an_extra_root_have_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "extra/sub").mkdir(parents=True)
    (tmp_path / "extra/sub/x").touch()
    ctx = context(tmp_path / "ws", tmp_path / "extra")
    assert await said(FIND, ctx, pattern="*", path=str(tmp_path / "extra")) == (
        f"{tmp_path}/extra/sub/\n{tmp_path}/extra/sub/x"
    )


async def test_a_search_without_time_is_an_error_that_says_how_to_go_on(root: Path) -> None:
    text = await refused(FIND, context(root, limits=Limits(tool_seconds=0.000_001)), pattern="*")
    assert text.startswith("Nothing was found in ")
    assert text.endswith("Search a smaller path or a more exact pattern.")


PARTS = st.sampled_from(["*", "**", "src", "app", "app*", "*.py", "?pp", "[a-s]*", "{src,app}", "data", "."])
FOLDERS = st.sampled_from([".", "src", "./src/", "src/app", "src/app/data", "src/../src", ".github", "empty"])


@settings(max_examples=40, deadline=None)
@given(pattern=st.lists(PARTS, min_size=1, max_size=3).map("/".join), path=FOLDERS)
def test_every_result_lies_below_the_searched_folder(root: Path, pattern: str, path: str) -> None:
    if not pattern.strip("./"):
        return
    found = asyncio.run(call(FIND, context(root), pattern=pattern, path=path))
    assert found.structured is not None
    top = posixpath.normpath(path)
    for name in found.structured["files"]:
        assert top == "." or name.startswith(f"{top}/")
        assert (root / name).exists()
        assert name.endswith("/") == (root / name).is_dir()
    assert found.structured["files"] == sorted(found.structured["files"], key=lambda name: name.rstrip("/").split("/"))
