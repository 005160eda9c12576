"""Contained paths: what is found, what is refused and in which words."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auth.permissions import Decision, Deny, Layer, Mode
from mcp.faults import Fault
from mcp.workspace import kernel
from mcp.workspace.paths import Workspace
from tests.support.files import allow, tree

CANARY = "canary"


@pytest.fixture(params=["openat2", "portable"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to open: what this kernel offers, and what a system without `openat2` does."""
    if request.param == "portable":
        monkeypatch.setattr(kernel, "has_openat2", lambda: False)
    yield request.param
    monkeypatch.undo()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace `ws` with a file, folders and links, beside things that are not its own."""
    root = tmp_path / "ws"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "file").write_text("file")
    (root / "sub" / "inner").write_text("inner")
    (root / "to_file").symlink_to("file")
    (root / "to_sub").symlink_to("sub")
    (root / "sub" / "up").symlink_to("../file")
    (root / "absolute").symlink_to(root / "file")
    (root / "circle").symlink_to("circle")
    (root / "broken").symlink_to("nothing")
    (root / ".env").write_text("secret")
    (root / "notes").symlink_to(".env")
    outside = tmp_path / "ws-evil"
    outside.mkdir()
    (outside / "secret").write_text(CANARY)
    (root / "out").symlink_to(outside)
    (root / "out_file").symlink_to(outside / "secret")
    (root / "out_new").symlink_to(outside / "new")
    return root


def located(workspace: Workspace, path: str, *, directory: bool | None = None) -> tuple[str, bool] | str:
    """The policy path and whether it is a folder, or the words of the refusal."""
    found = workspace.locate(path, allow, directory=directory)
    if isinstance(found, Fault):
        return found.message
    with found:
        assert os.path.samestat(os.fstat(found.fd), found.real.stat())
        return found.path, found.is_dir


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("file", ("file", False), id="a relative path"),
        pytest.param("./file", ("file", False), id="a leading dot"),
        pytest.param("@file", ("file", False), id="a mention"),
        pytest.param("@./sub//inner", ("sub/inner", False), id="a mention with dots and slashes"),
        pytest.param("file://{root}/file", ("file", False), id="a URL"),
        pytest.param("file://localhost{root}/file", ("file", False), id="a URL with a host"),
        pytest.param("FILE://{root}/sub/%69nner", ("sub/inner", False), id="an escaped URL"),
        pytest.param("@file://{root}/file", ("file", False), id="a mention of a URL"),
        pytest.param("{root}/file", ("file", False), id="an absolute path"),
        pytest.param("{root}", (".", True), id="the root by its absolute path"),
        pytest.param("{root}/", (".", True), id="the root by its absolute path and a slash"),
        pytest.param(".", (".", True), id="the root"),
        pytest.param("sub/", ("sub", True), id="a folder with a slash"),
        pytest.param("sub/deep/..", ("sub", True), id="dots that stay inside"),
        pytest.param("../ws/file", ("file", False), id="dots that come back"),
        pytest.param("{root}/../ws/file", ("file", False), id="an absolute path that comes back"),
        pytest.param("nothing/../file", ("file", False), id="dots out of a folder that does not exist"),
        pytest.param("to_file", ("file", False), id="a link"),
        pytest.param("to_sub/inner", ("sub/inner", False), id="a link to a folder"),
        pytest.param("to_sub/../file", ("file", False), id="dots after a link"),
        pytest.param("sub/up", ("file", False), id="a link with dots"),
        pytest.param("absolute", ("file", False), id="an absolute link"),
    ],
)
def test_everything_inside_is_found_by_its_real_path(root: Path, path: str, found: tuple[str, bool]) -> None:
    assert located(Workspace(root), path.format(root=root)) == found


OUTSIDE = "{path} is outside the workspace. Give a path below the workspace root."


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("..", OUTSIDE, id="the folder above"),
        pytest.param("../ws-evil/secret", OUTSIDE, id="a neighbour with the same prefix"),
        pytest.param("{root}-evil/secret", OUTSIDE, id="the same by its absolute path"),
        pytest.param("/", OUTSIDE, id="the root of the file system"),
        pytest.param("/nothing/at/all", OUTSIDE, id="nothing outside"),
        pytest.param("nothing/../../x", OUTSIDE, id="dots out of a folder that does not exist"),
        pytest.param("out/secret", OUTSIDE, id="below a link that leads out"),
        pytest.param("out/nothing", OUTSIDE, id="nothing below a link that leads out"),
        pytest.param("out_file", OUTSIDE, id="a link that leads out"),
        pytest.param("out_new", OUTSIDE, id="a broken link that leads out"),
        pytest.param("to_sub/../../ws-evil/secret", OUTSIDE, id="dots after a link"),
        pytest.param(
            "",
            "The path is empty. Give a path relative to the workspace root, or . for the root itself.",
            id="an empty path",
        ),
        pytest.param("a\0b", "The path contains a NUL character, which no file name can.", id="a NUL"),
        pytest.param("file://a%00b", "The path contains a NUL character, which no file name can.", id="an escaped NUL"),
        pytest.param(
            "\ud800", "The path is not valid Unicode: it contains half of a surrogate pair.", id="half a pair"
        ),
        pytest.param("x/" * 2048, "The path is too long: 4096 bytes, at most 4095 are possible.", id="a long path"),
        pytest.param(
            "n" * 256, "n" * 200 + "… is too long: a name holds at most 255 bytes, a path 4,095.", id="a long name"
        ),
        pytest.param("circle", "circle cannot be opened: its symbolic links lead in a circle.", id="a link to itself"),
        pytest.param("broken", "broken is a broken link: what it points to does not exist.", id="a link to nothing"),
        pytest.param(
            "file/x", "file/x does not exist: a part of it is a file, not a folder.", id="a file used as a folder"
        ),
        pytest.param("file/", "file/ is a file, not a folder.", id="a file with a slash"),
        pytest.param("flie", "flie does not exist.", id="nothing like it"),
        pytest.param("files", "files does not exist. Did you mean file?", id="a name that is nearly right"),
        pytest.param("FILE", "FILE does not exist. Did you mean file?", id="a name in another case"),
        pytest.param("sub/iner", "sub/iner does not exist. Did you mean sub/inner?", id="the same in a folder"),
        pytest.param(
            "a/b", "a/b does not exist. There is no a in the workspace root.", id="a folder that does not exist"
        ),
        pytest.param(
            "~/x",
            "~/x does not exist. There is no ~ in the workspace root."
            " ~ is not expanded: paths are relative to the workspace root.",
            id="a home folder",
        ),
        pytest.param("a\nb", "a\ufffdb does not exist.", id="a line break is not echoed"),
    ],
)
def test_everything_else_is_refused_in_words(root: Path, path: str, words: str) -> None:
    path = path.format(root=root)
    assert located(Workspace(root), path) == words.replace("{path}", path)


@pytest.mark.usefixtures("system")
def test_a_folder_where_a_file_is_wanted_is_refused_and_the_other_way_round(root: Path) -> None:
    assert located(Workspace(root), "sub", directory=False) == "sub is a folder, not a file. Use ls to list it."
    assert located(Workspace(root), "file", directory=True) == "file is a file, not a folder."
    assert located(Workspace(root), "sub", directory=True) == ("sub", True)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path.parent, os.O_RDONLY)
        try:
            # A socket's path is short; the descriptor stands for the folder.
            listener.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


@pytest.mark.parametrize(
    ("make", "words"),
    [pytest.param(_fifo, "a FIFO", id="a FIFO"), pytest.param(_socket, "a socket", id="a socket")],
)
def test_only_regular_files_and_folders_are_opened(root: Path, make: Callable[[Path], None], words: str) -> None:
    make(root / "special")
    assert located(Workspace(root), "special") == f"special is not a regular file: it is {words}."
    target = Workspace(root).target("special", allow)
    assert isinstance(target, Fault)
    assert target.message == f"special is not a regular file: it is {words}."


def test_without_openat2_a_fifo_is_not_even_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "has_openat2", lambda: False)
    _fifo(root / "special")
    assert located(Workspace(root), "special") == "special is not a regular file."


def test_a_name_that_starts_with_the_mention_sign_is_itself(root: Path) -> None:
    (root / "@types").mkdir()
    (root / "@types" / "x").touch()
    assert located(Workspace(root), "@types/x") == ("@types/x", False)
    assert located(Workspace(root), "@file") == ("file", False)


def test_a_workspace_reached_through_a_link_takes_both_names(root: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    for workspace in (Workspace(root), Workspace(alias)):
        assert located(workspace, f"{alias}/file") == ("file", False)
        assert located(workspace, f"{root}/file") == ("file", False)


def test_a_relative_root_is_a_mistake_of_the_wiring() -> None:
    with pytest.raises(ValueError, match="absolute"):
        Workspace(Path("somewhere"))


@pytest.mark.usefixtures("system")
def test_an_extra_root_is_addressed_and_judged_by_its_absolute_path(root: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "data").write_text("data")
    (root / "to_extra").symlink_to(extra)
    (extra / "back").symlink_to(root / "file")
    workspace = Workspace(root, (extra,))
    assert located(workspace, f"{extra}/data") == (f"{extra}/data", False)
    assert located(workspace, "to_extra/data") == (f"{extra}/data", False)
    assert located(workspace, f"{extra}/back") == ("file", False)
    assert located(workspace, f"{extra}-not/data") == f"{extra}-not/data" + OUTSIDE.removeprefix("{path}")


REFUSAL = Deny("no", Layer.RULE, Mode.FULL)


class Judge:
    """A permit that denies one path and remembers what it was asked."""

    def __init__(self, denied: str) -> None:
        self.denied = denied
        self.asked: list[str] = []

    def __call__(self, path: str) -> Decision:
        self.asked.append(path)
        return REFUSAL if path == self.denied else allow(path)


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("path", [".env", "notes", "sub/../notes", "{root}/.env"])
def test_the_policy_judges_the_real_path_once(root: Path, path: str) -> None:
    judge = Judge(".env")
    for act in (Workspace(root).locate, Workspace(root).target):
        assert act(path.format(root=root), judge) == Fault("no", REFUSAL)
    assert judge.asked == [".env", ".env"]


def test_a_target_is_judged_before_any_folder_is_made(root: Path) -> None:
    before = tree(root)
    assert Workspace(root).target("a/b/c", Judge("a/b/c")) == Fault("no", REFUSAL)
    assert tree(root) == before


def aimed(workspace: Workspace, path: str, *, create: bool = True) -> tuple[str, tuple[str, ...], str, bool] | str:
    """Where a write would go: policy path, folders to make, name, whether it exists; or the words of the refusal."""
    target = workspace.target(path, allow, create=create)
    if isinstance(target, Fault):
        return target.message
    with target:
        assert os.path.realpath(f"/proc/self/fd/{target.parent_fd}") == str(target.real.parents[len(target.missing)])
        return target.path, target.missing, target.name, target.exists


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize(
    ("path", "aim"),
    [
        pytest.param("file", ("file", (), "file", True), id="an existing file"),
        pytest.param("new", ("new", (), "new", False), id="a new file"),
        pytest.param("sub/new", ("sub/new", (), "new", False), id="a new file in a folder"),
        pytest.param("a/b/new", ("a/b/new", ("a", "b"), "new", False), id="a new file in new folders"),
        pytest.param("to_sub/new", ("sub/new", (), "new", False), id="a new file through a link"),
        pytest.param("to_file", ("file", (), "file", True), id="the file that a link leads to"),
        pytest.param("broken", ("nothing", (), "nothing", False), id="what a broken link leads to"),
        pytest.param("a/../file", ("file", (), "file", True), id="dots out of a folder that does not exist"),
        pytest.param("a/../new", ("new", (), "new", False), id="a new file by such dots"),
        pytest.param("../ws/new", ("new", (), "new", False), id="dots that come back"),
        pytest.param("out/new", OUTSIDE, id="through a link that leads out"),
        pytest.param("out/a/new", OUTSIDE, id="new folders through a link that leads out"),
        pytest.param("out_new", OUTSIDE, id="what a broken link outside leads to"),
        pytest.param("../new", OUTSIDE, id="a new file above"),
        pytest.param("a/../../new", OUTSIDE, id="a new file above, by dots"),
        pytest.param("sub", "sub is a folder, not a file. Use ls to list it.", id="a folder"),
        pytest.param("new/", "new/ names a folder. Give the path of a file.", id="a slash at the end"),
        pytest.param("sub/..", "sub/.. names a folder. Give the path of a file.", id="dots at the end"),
        pytest.param(
            "file/new", "file/new does not exist: a part of it is a file, not a folder.", id="a file used as a folder"
        ),
        pytest.param("circle", "circle cannot be opened: its symbolic links lead in a circle.", id="a circle"),
    ],
)
def test_a_write_goes_where_the_path_really_leads_or_nowhere(root: Path, path: str, aim: object) -> None:
    expected = aim.replace("{path}", path) if isinstance(aim, str) else aim
    assert aimed(Workspace(root), path) == expected


def test_without_create_a_missing_file_is_a_fault_that_suggests_one(root: Path) -> None:
    assert aimed(Workspace(root), "filee", create=False) == "filee does not exist. Did you mean file?"


def test_a_name_too_long_to_make_is_refused(root: Path) -> None:
    assert "is too long" in str(aimed(Workspace(root), "n" * 256))


def test_no_descriptor_is_left_open(root: Path) -> None:
    workspace = Workspace(root)

    def all_of_it() -> None:
        for path in ("file", "sub", "absolute", "out/secret", "circle", "a/b", "notes", "FILE", "file/x", "../ws/file"):
            for found in (workspace.locate(path, Judge(".env")), workspace.target(path, Judge(".env"))):
                if not isinstance(found, Fault):
                    found.close()

    all_of_it()
    before = os.listdir("/proc/self/fd")
    all_of_it()
    assert os.listdir("/proc/self/fd") == before
