"""Locks: one holder at a time, in this process and others; a bounded number of files; never through a link."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp.faults import Fault
from mcp.workspace.locks import Busy, Held, try_lock
from mcp.workspace.opening import Place
from tests.support.environments import ROOT

HOLDER = """
import sys
from mcp.workspace.locks import try_lock
from mcp.workspace.opening import Place
print(type(try_lock(Place(sys.argv[1], sys.argv[2]))).__name__, flush=True)
sys.stdin.read()
"""


def held(place: Place) -> Held:
    lock = try_lock(place)
    assert isinstance(lock, Held)
    return lock


def test_a_lock_has_one_holder_until_it_is_released(tmp_path: Path) -> None:
    place = Place(str(tmp_path), "src/a.py")
    first = held(place)
    assert try_lock(place) == Busy()
    first.release()
    held(place).release()


def test_a_lock_holds_against_another_process_and_ends_with_it(tmp_path: Path) -> None:
    place = Place(str(tmp_path), "a")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path, "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"Held\n"
        assert try_lock(place) == Busy()
        other.kill()
        other.wait()
        held(place).release()


def test_the_lock_of_a_file_is_the_same_wherever_the_workspace_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    first = held(Place(str(tmp_path / "ws"), "a"))
    (tmp_path / "ws").rename(tmp_path / "elsewhere")
    assert try_lock(Place(str(tmp_path / "elsewhere"), "a")) == Busy()
    first.release()


def test_locks_of_any_number_of_files_are_a_bounded_number_of_files_that_git_ignores(tmp_path: Path) -> None:
    for number in range(200):
        held(Place(str(tmp_path), f"file{number}")).release()
    names = os.listdir(tmp_path / ".superpi" / "locks")
    assert {len(name) for name in names} == {3}
    assert (tmp_path / ".superpi" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("name", [".superpi", ".superpi/locks", ".superpi/locks/LOCK"])
def test_a_link_in_the_way_is_never_followed(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    place = Place(str(root), "a")
    held(place).release()
    (lock,) = os.listdir(root / ".superpi" / "locks")
    link = root / name.replace("LOCK", lock)
    link.rename(tmp_path / "aside")
    link.symlink_to(outside / "new" if name.endswith("LOCK") else outside)
    assert isinstance(try_lock(place), Fault)
    assert os.listdir(outside) == []


def test_a_workspace_that_cannot_have_locks_is_a_fault_in_words(tmp_path: Path) -> None:
    (tmp_path / ".superpi").write_text("mine")
    fault = try_lock(Place(str(tmp_path), "a"))
    assert isinstance(fault, Fault)
    assert "cannot be changed" in fault.message
    assert str(tmp_path) not in fault.message
    assert (tmp_path / ".superpi").read_text() == "mine"
