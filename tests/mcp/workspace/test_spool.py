"""Spool files: where they lie, how much they hold, and what a hostile workspace cannot make of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp.workspace.spool import MOST_FILES, MOST_SECONDS, Spool


def spooled(root: Path, *pieces: bytes, most: int = 1000) -> tuple[Spool, bytes]:
    spool = Spool.create(root, most)
    assert spool is not None
    for piece in pieces:
        spool.write(piece)
    spool.close()
    return spool, (root / spool.path).read_bytes()


def test_a_spool_file_lies_in_the_workspace_and_out_of_git(tmp_path: Path):
    spool, data = spooled(tmp_path, b"a\n", b"b\n")
    assert (data, spool.capped) == (b"a\nb\n", False)
    assert spool.path.startswith(".superpi/spool/")
    assert (tmp_path / ".superpi/.gitignore").read_bytes() == b"*\n"


CAP_NOTE = b"\n[The output goes on; only its first 10 bytes are kept.]\n"


@pytest.mark.parametrize(
    ("pieces", "data"),
    [
        pytest.param([b"12345", b"67890"], b"1234567890", id="what fits exactly is kept"),
        pytest.param([b"1\n2\n3\n4\n", b"5\n6\n"], b"1\n2\n3\n4\n5\n" + CAP_NOTE, id="the cap falls between lines"),
        pytest.param([b"12345\n", "éé\n".encode(), b"7"], b"12345\n" + CAP_NOTE, id="no line is cut"),
        pytest.param([b"x" * 11], CAP_NOTE, id="a piece without a line is left out whole"),
        pytest.param([b"x" * 11, b"y\n"], CAP_NOTE, id="and nothing comes after it"),
    ],
)
def test_a_spool_file_is_capped(tmp_path: Path, pieces: list[bytes], data: bytes):
    spool, kept = spooled(tmp_path, *pieces, most=10)
    assert (kept, spool.capped) == (data, data.endswith(CAP_NOTE))


def test_an_existing_gitignore_is_left_alone(tmp_path: Path):
    (tmp_path / ".superpi").mkdir()
    (tmp_path / ".superpi/.gitignore").write_text("mine\n")
    spooled(tmp_path, b"a")
    assert (tmp_path / ".superpi/.gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("planted", [".superpi", ".superpi/spool"])
@pytest.mark.parametrize("kind", ["a link to a folder outside", "a link to nothing", "a file", "a FIFO"])
def test_what_a_command_planted_gets_no_spool_file(tmp_path: Path, planted: str, kind: str):
    outside, root = tmp_path / "outside", tmp_path / "ws"
    outside.mkdir()
    root.mkdir()
    path = root / planted
    path.parent.mkdir(exist_ok=True)
    match kind:
        case "a link to a folder outside":
            path.symlink_to(outside)
        case "a link to nothing":
            path.symlink_to(outside / "new")
        case "a file":
            path.write_text("a")
        case _:
            os.mkfifo(path)
    assert Spool.create(root, 1000) is None
    assert list(outside.iterdir()) == []


def test_a_planted_gitignore_link_is_not_followed(tmp_path: Path):
    (tmp_path / "ws/.superpi").mkdir(parents=True)
    (tmp_path / "ws/.superpi/.gitignore").symlink_to(tmp_path / "new")
    spooled(tmp_path / "ws", b"a")
    assert not (tmp_path / "new").exists()


def test_old_files_are_removed_and_only_ours(tmp_path: Path):
    old, _ = spooled(tmp_path, b"old")
    young, _ = spooled(tmp_path, b"young")
    folder = tmp_path / ".superpi/spool"
    (folder / "notes.txt").write_text("mine")
    (folder / f"{'0' * 32}.log").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").write_text("kept")
    age = young_age = (tmp_path / young.path).stat().st_mtime
    os.utime(tmp_path / old.path, (age - MOST_SECONDS - 60,) * 2)
    os.utime(folder / "notes.txt", (0, 0))
    os.utime(tmp_path / young.path, (young_age - MOST_SECONDS + 600,) * 2)
    newest, _ = spooled(tmp_path, b"new")
    assert {path.name for path in folder.iterdir()} == {
        "notes.txt",
        f"{'0' * 32}.log",
        Path(young.path).name,
        Path(newest.path).name,
    }
    assert (tmp_path / "kept").read_text() == "kept"


def test_only_so_many_files_are_kept_the_newest(tmp_path: Path):
    first, _ = spooled(tmp_path, b"first")
    folder = tmp_path / ".superpi/spool"
    written = (tmp_path / first.path).stat().st_mtime
    for number in range(MOST_FILES + 10):
        path = folder / f"{number:032x}.log"
        path.touch()
        os.utime(path, (written - 1000 + number,) * 2)
    newest, _ = spooled(tmp_path, b"new")
    left = {path.name for path in folder.iterdir()}
    assert len(left) == MOST_FILES
    assert {Path(first.path).name, Path(newest.path).name} <= left


def test_the_servers_files_belong_to_the_workspaces_owner(tmp_path: Path):
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12346)
    spool, _ = spooled(tmp_path, b"a")
    owner = tmp_path.stat()
    for name in (".superpi", ".superpi/.gitignore", ".superpi/spool", spool.path):
        status = (tmp_path / name).stat()
        assert (status.st_uid, status.st_gid) == (owner.st_uid, owner.st_gid)
