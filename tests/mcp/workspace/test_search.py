"""Searching a folder: what is held against the files again after ripgrep read them, and how names are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp.workspace.paths import Located, Workspace
from mcp.workspace.search import Folder, as_folder, confirmed
from mcp.workspace.search_records import FileLines, Line
from tests.support.files import allow


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """The open folder `sub` of a workspace."""
    (tmp_path / "sub").mkdir()
    workspace = Workspace(tmp_path)
    located = workspace.locate("sub", allow)
    assert isinstance(located, Located)
    with located:
        yield as_folder(workspace, located)


def line(text: str, start: int, *, cut: bool = False, size: int | None = None) -> Line:
    """A matching line at that place; its size in bytes is that of its text and a newline unless given."""
    length = len(text.encode()) + 1 if size is None else size
    return Line(1, text, matched=True, cut=cut, start=start, end=start + length)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param(b"one\ntwo\n", [line("one", 0), line("two", 4)], id="the lines are there"),
        pytest.param(b"one\ntwo", [line("two", 4)], id="the last without a newline"),
        pytest.param(b"\xef\xbb\xbfone\ntwo\n", [line("one", 0), line("two", 4)], id="after a BOM"),
        pytest.param("one\ntwo\n".encode("utf-16"), [line("two", 4)], id="in UTF-16"),
        pytest.param(b"caf\xe9 x\n", [line("caf\ufffd x", 0, size=7)], id="not in UTF-8"),
        pytest.param(b"a" * 90 + b"x" + b"b" * 90, [line("…axb…", 0, cut=True, size=181)], id="an excerpt"),
        pytest.param(b"", [line("[not shown]", 0, size=0)], id="a line that was not kept"),
    ],
)
def test_lines_that_are_in_the_file_are_confirmed(
    tmp_path: Path, folder: Folder, content: bytes, lines: list[Line]
) -> None:
    (tmp_path / "sub/f").write_bytes(content)
    files = [FileLines("sub/f", lines)]
    assert confirmed(folder, files) == files


def replaced_by_link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


def folder_replaced_by_link(file: Path) -> None:
    file.parent.rename(file.parent.with_name("other"))
    file.parent.symlink_to("other")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda file: file.write_text("else\n"), id="other content"),
        pytest.param(lambda file: file.write_text("\ncanary\n"), id="the line elsewhere"),
        pytest.param(lambda file: file.unlink(), id="gone"),
        pytest.param(replaced_by_link, id="a link in its place"),
        pytest.param(folder_replaced_by_link, id="a link in the place of its folder"),
    ],
)
def test_lines_that_are_not_in_the_file_of_that_path_are_dropped(
    tmp_path: Path, folder: Folder, change: Callable[[Path], object]
) -> None:
    file = tmp_path / "sub/deep/f"
    file.parent.mkdir()
    file.write_text("x" * 40 + "\ncanary\n")
    files = [FileLines("sub/deep/f", [line("canary", 41)])]
    assert confirmed(folder, files) == files
    change(file)
    assert confirmed(folder, files) == []


def test_names_and_policy_paths_go_back_and_forth(tmp_path: Path) -> None:
    (tmp_path / "ws/sub").mkdir(parents=True)
    (tmp_path / "extra").mkdir()
    workspace = Workspace(tmp_path / "ws", (tmp_path / "extra",))
    for given_path, path in ((".", "a/b"), ("sub", "sub/a/b"), (str(tmp_path / "extra"), f"{tmp_path}/extra/a/b")):
        located = workspace.locate(given_path, allow)
        assert isinstance(located, Located)
        with located:
            folder = as_folder(workspace, located)
            assert (folder.path_of("a/b"), folder.name_of(path)) == (path, "a/b")
