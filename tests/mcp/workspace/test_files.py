"""Replacing files in one step: what is kept, what is refused, and that failures leave nothing behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcp.faults import Fault
from mcp.workspace.changes import CANCELLED, Gate
from mcp.workspace.files import Written, read_whole, replace
from mcp.workspace.paths import Target, Workspace
from tests.support.environments import ROOT
from tests.support.files import allow, tree


def target_of(root: Path, path: str) -> Target:
    target = Workspace(root).target(path, allow)
    assert isinstance(target, Target), target
    return target


def put(root: Path, path: str, content: bytes, *, expected: bytes | None = None) -> Written | Fault:
    with target_of(root, path) as target:
        return replace(target, content, Gate(), expected=expected)


@pytest.mark.parametrize("content", [b"", b"x", b"\0\xff" * 3_000_000], ids=["nothing", "a byte", "megabytes"])
def test_a_new_file_holds_exactly_the_content(tmp_path: Path, content: bytes) -> None:
    assert put(tmp_path, "a/b/f", content) == Written(len(content), created=True)
    assert tree(tmp_path) == {"a": "/", "a/b": "/", "a/b/f": content}


def test_a_new_file_honours_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path, "d/f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "d" / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o750


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o777, 0o200])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(mode)
    assert put(tmp_path, "f", b"new") == Written(3, created=False)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_other_contents_do_not_inherit_set_id_bits(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(mode)
    put(tmp_path, "f", b"new")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o755


def test_extended_attributes_of_the_user_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    try:
        os.setxattr(file, "user.mark", b"kept")
    except OSError:
        pytest.skip("the file system of the tests has no extended attributes")
    put(tmp_path, "f", b"new")
    assert os.getxattr(file, "user.mark") == b"kept"


def test_a_read_only_file_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o444)
    assert put(tmp_path, "f", b"new") == Fault(
        "f is read-only (mode 0444), and was left as it is. Change its mode first."
    )
    assert tree(tmp_path) == {"f": b"old"}


def test_content_that_changed_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"theirs")
    assert put(tmp_path, "f", b"ours", expected=b"read before") == Fault(
        "f was changed by somebody else meanwhile, and was left as it is. Read it again."
    )
    assert tree(tmp_path) == {"f": b"theirs"}


@pytest.mark.parametrize("theirs", [b"", b"longer than what was read", b"ABC"])
def test_any_other_content_is_a_conflict(tmp_path: Path, theirs: bytes) -> None:
    (tmp_path / "f").write_bytes(theirs)
    assert isinstance(put(tmp_path, "f", b"ours", expected=b"abc"), Fault)
    assert tree(tmp_path) == {"f": theirs}


def test_a_file_that_is_gone_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with target_of(tmp_path, "f") as target:
        (tmp_path / "f").unlink()
        assert isinstance(replace(target, b"ours", Gate(), expected=b"abc"), Fault)
        assert isinstance(read_whole(target, limit=10), Fault)
    assert tree(tmp_path) == {}


def test_an_entry_that_became_a_link_is_a_conflict_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "other").write_bytes(b"abc")
    with target_of(tmp_path, "f") as target:
        (tmp_path / "f").unlink()
        (tmp_path / "f").symlink_to("other")
        assert isinstance(replace(target, b"ours", Gate()), Fault)
        assert isinstance(read_whole(target, limit=10), Fault)
    assert tree(tmp_path) == {"f": "-> other", "other": b"abc"}


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    with target_of(root, "new/f") as target:
        (root / "new").symlink_to(outside)
        assert isinstance(replace(target, b"ours", Gate()), Fault)
    assert tree(outside) == {}


def test_a_shut_gate_lets_nothing_through_and_leaves_no_folder(tmp_path: Path) -> None:
    gate = Gate()
    gate.shut()
    with target_of(tmp_path, "a/b/f") as target:
        assert replace(target, b"x", gate) == CANCELLED
    assert tree(tmp_path) == {}


def test_a_file_larger_than_the_limit_is_not_read_for_editing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 11)
    with target_of(tmp_path, "f") as target:
        assert read_whole(target, limit=11) == b"x" * 11
        assert read_whole(target, limit=10) == Fault(
            "f is too large to edit: 11 bytes, at most 10. Use bash (sed, for example) instead."
        )


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from mcp.workspace.changes import Gate
from mcp.workspace.files import replace
from mcp.workspace.paths import Workspace
from auth.permissions import Allow
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Workspace(Path(sys.argv[1])).target(sys.argv[2], lambda path: Allow()) as target:
    print(replace(target, b"x" * 5000, Gate()).message)
"""


@pytest.mark.parametrize("path", ["old", "new", "a/b/new"])
def test_a_write_that_fails_half_way_leaves_everything_as_it_was(tmp_path: Path, path: str) -> None:
    """The system refuses to write on after 1,000 bytes, as it does on a full disk."""
    (tmp_path / "old").write_bytes(b"old")
    said = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path, path], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert said.startswith(f"{path} cannot be written: ")
    assert said.endswith("Nothing was changed.\n")
    assert tree(tmp_path) == {"old": b"old"}


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_folder_without_permission_is_a_fault_in_words(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    folder.chmod(0o555)
    fault = put(tmp_path, "d/f", b"x")
    folder.chmod(0o755)
    assert fault == Fault(
        "d/f cannot be written: the server has no permission to write in its folder. Nothing was changed."
    )
