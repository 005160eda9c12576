"""Running one process tree: its end, its output, its deadline, and what is given back afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from mcp.faults import Fault
from mcp.workspace.processes import NOT_STARTED, Ended, Launch, NeverRan, Stop, in_thread, run_to_end
from mcp.workspace.shell import SandboxStep
from tests.support.shells import SANDBOXES, Bench, shell, workspace
from tests.support.unprivileged import as_caller

ENV = {"PATH": os.defpath}


def run(*argv: str, timeout: float = 10, **fields: object) -> tuple[Ended | NeverRan | Fault, bytes]:
    said: list[bytes] = []
    stop = Stop()
    try:
        return run_to_end(Launch(argv, ENV, **fields), said.append, timeout, stop), b"".join(said)
    finally:
        stop.close()


def sh(script: str, **fields: object) -> tuple[Ended | NeverRan | Fault, bytes]:
    return run("/bin/sh", "-c", script, **fields)


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        pytest.param("echo a; echo b >&2; echo c", 0, b"a\nb\nc\n", id="both streams in order"),
        pytest.param("exit 7", 7, b"", id="an exit code"),
        pytest.param("kill -TERM $$", 143, b"", id="death by a signal"),
        pytest.param("exec >&- 2>&-; exit 3", 3, b"", id="an end after the end of its output"),
        pytest.param("cat; echo end", 0, b"end\n", id="stdin is at its end"),
        pytest.param("pwd", 0, b"/\n", id="the folder is the one asked for"),
        pytest.param("head -c 300000 /dev/zero | tr '\\0' x", 0, b"x" * 300_000, id="more than a pipe holds"),
    ],
)
def test_a_process_that_ends_by_itself(script: str, code: int, output: bytes):
    ended, said = sh(script)
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.timed_out, said) == (code, False, output)


def test_a_deadline_ends_the_group_and_keeps_the_output():
    begun = time.monotonic()
    ended, said = sh("trap '' TERM; echo a; sleep 300; echo b", timeout=0.3)
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.timed_out, said) == (137, True, b"a\n")
    assert 0.3 <= time.monotonic() - begun < 2


def test_a_process_that_ignores_its_ending_is_killed():
    ended, _ = sh("trap '' TERM; while :; do sleep 300; done", timeout=0.1, ending=signal.SIGTERM)
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.timed_out) == (137, True)


def test_a_child_that_holds_the_pipe_is_not_waited_for():
    begun = time.monotonic()
    ended, said = sh("setsid sleep 2 & echo hi")
    assert isinstance(ended, Ended)
    assert said == b"hi\n"
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        pytest.param(("/no/such/program",), NOT_STARTED, id="no such program"),
        pytest.param(("/bin/true", "x" * 200_000), "too long", id="an argument too long for the kernel"),
    ],
)
def test_what_cannot_be_started_is_a_fault(argv: tuple[str, ...], words: str):
    fault, said = run(*argv)
    assert isinstance(fault, Fault)
    assert words in fault.message
    assert said == b""


def status_pipe(said: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, said)
    os.close(writing)
    return reading


@pytest.mark.parametrize(
    ("status", "script", "kind"),
    [
        pytest.param(b'{"exit-code": 1}', "exit 1", Ended, id="the command's end was reported"),
        pytest.param(b"", "exit 1", NeverRan, id="no command was reported"),
        pytest.param(b"", "kill -9 $$", Ended, id="somebody killed the launcher"),
        pytest.param(b"", "sleep 300", Ended, id="the deadline came first"),
    ],
)
def test_a_launchers_failure_is_not_taken_for_the_commands(status: bytes, script: str, kind: type):
    ended, _ = sh(script, status=status_pipe(status), timeout=0.5)
    assert type(ended) is kind


def test_a_launcher_that_is_told_to_stop_is_not_taken_for_one_that_failed():
    stop = Stop()
    stop.throw()
    launch = Launch(
        ("/bin/sh", "-c", "trap 'exit 125' TERM; sleep 300 & wait"), ENV, ending=signal.SIGTERM, status=status_pipe(b"")
    )
    ended = run_to_end(launch, lambda piece: None, 10, stop)
    stop.close()
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.timed_out) == (137, False)


def test_everything_is_given_back(tmp_path: Path):
    cleaned: list[int] = []

    def descriptors() -> list[str]:
        return sorted(os.listdir("/proc/self/fd"))

    before = descriptors()
    for argv in (("/bin/true",), ("/no/such/program",)):
        read, write = os.pipe()
        run(*argv, status=status_pipe(b""), fds=(read, write), cleanup=lambda: cleaned.append(1))
    assert descriptors() == before
    assert cleaned == [1, 1]


def test_a_bug_in_the_reader_is_raised_and_ends_the_process():
    def broken(_piece: bytes) -> None:
        raise RuntimeError("broken")

    seconds = f"{300 + int.from_bytes(os.urandom(3)) / 2**24:.9f}"
    stop = Stop()
    with pytest.raises(RuntimeError, match="broken"):
        run_to_end(Launch(("/bin/sh", "-c", f"echo a; sleep {seconds}"), ENV), broken, 10, stop)
    stop.close()
    assert not [process for process in psutil.process_iter(["cmdline"]) if seconds in (process.info["cmdline"] or [])]


async def test_work_in_a_thread_answers_or_raises():
    assert await in_thread(lambda stop: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda stop: 1 // 0)


async def test_cancelled_work_is_told_to_stop_and_waited_for():
    begun, ended = threading.Event(), threading.Event()

    def work(stop: Stop) -> None:
        begun.set()
        os.read(stop.fileno(), 1)
        ended.set()

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


SERVER = """
import asyncio, ctypes, json, sys
from pathlib import Path
from auth.permissions import Mode
from mcp.limits import Limits
from mcp.workspace.shell import Command, SandboxStep, probe_shell
step, root, script, heir = SandboxStep(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
if heir == "heir":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
shell = probe_shell(Limits(), allow_unsandboxed=True, local=False, only=step)
result = asyncio.run(shell.run(Command(("bash", "-c", script), root, Mode.FULL, 60)))
children = Path("/proc/self/task/%d/children" % __import__("os").getpid())
print(json.dumps({"code": result.exit_code, "left": children.read_text().split()}))
"""


def server(step: SandboxStep, root: Path, script: str, *, heir: bool = False) -> subprocess.Popen[str]:
    """A process that runs one command as the server does; as `heir` it inherits orphans, like a container's first."""
    shell(step)
    launcher = as_caller()
    argv = [*launcher.interpreter, "-c", SERVER, step, str(root), script, "heir" if heir else ""]
    return subprocess.Popen(argv, env={**launcher.env, "TMPDIR": str(root.parent)}, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("step", SANDBOXES)
def test_a_server_that_inherits_orphans_is_left_no_zombies(step: SandboxStep):
    with workspace() as root, server(step, root, "sleep 300 & setsid sleep 300 & exit 3", heir=True) as process:
        assert json.loads(process.communicate(timeout=30)[0]) == {"code": 3, "left": []}


@pytest.mark.parametrize("step", [*SANDBOXES, SandboxStep.UNSANDBOXED])
def test_commands_do_not_outlive_a_server_that_is_killed(step: SandboxStep):
    with workspace() as root:
        os.mkfifo(root / "started")
        Bench(shell(step), root).put({})
        with server(step, root, "setsid sleep 300 & (echo go >started; sleep 300)") as process:
            assert (root / "started").read_text() == "go\n"
            below = psutil.Process(process.pid).children(recursive=True)
            assert len(below) >= 3
            process.kill()
            process.communicate(timeout=30)
            assert psutil.wait_procs(below, timeout=5)[1] == []
