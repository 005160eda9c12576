"""Running one process tree to its end: bytes out of a pipe, a deadline, and nobody left behind.

It knows nothing of sandboxes: a `Launch` says what to start and which signal makes it end everything it started.
The work is done in a thread of its own, which starts the process and outlives it, since the kernel ties a child's
parent-death signal (bubblewrap's `--die-with-parent`) to the thread that made it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from mcp.faults import Fault

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

_CHUNK: Final = 65_536
#: How long output may still come after the process has ended, in seconds: in all, and without a byte.
_DRAIN_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 0.1
#: How long a process may take to end its tree before it is killed itself, in seconds.
_ENDING_SECONDS: Final = 1.6
#: How often to look where the kernel cannot tell that a process has ended, in seconds.
_LOOK_SECONDS: Final = 0.05

_TOO_LONG: Final = "The command is too long to be started. Write it to a file in the workspace and run the file."
NOT_STARTED: Final = "The command could not be started, and nothing of it ran. The server's log says why."


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, and how it is ended: `ending`, sent to the process, makes it end all that it started.

    `fds` are handed on to the process. `status` is read after its end: the process writes to it JSON with
    `child-pid` when it has started something and `exit-code` when that has ended. `cleanup` runs when everything
    is over. Whoever runs the launch closes its descriptors and cleans up.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str = "/"
    ending: signal.Signals = signal.SIGKILL
    fds: tuple[int, ...] = ()
    status: int | None = None
    cleanup: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: `exit_code` is 128+N after signal N, `duration` is in seconds."""

    exit_code: int
    duration: float
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class NeverRan:
    """The launcher ended before the command began; its own complaint is the output."""

    exit_code: int


class Stop:
    """A switch that one thread throws and another one's poll waits for."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()

    def fileno(self) -> int:
        """A descriptor that is readable once the switch is thrown."""
        return self._out

    def throw(self) -> None:
        """Ask for the end; more than once is fine."""
        os.write(self._in, b"x")

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._out)
        os.close(self._in)


def run_to_end(launch: Launch, feed: Callable[[bytes], None], timeout: float, stop: Stop) -> Ended | NeverRan | Fault:
    """Start the launch, and return when its first process has ended, its output is read and its tree is gone.

    Every piece of output goes to `feed`. After `timeout` seconds, or when `stop` is thrown, the tree is ended. A
    child that goes on in the background and holds the pipe is not waited for.
    """
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        if launch.cleanup is not None:
            stack.callback(launch.cleanup)
        if launch.status is not None:
            stack.callback(os.close, launch.status)
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        try:
            process = _start(launch, writing)
        except OSError as error:
            return _no_start(error)
        finally:
            for fd in (writing, *launch.fds):
                os.close(fd)
        run = _Run(process, reading, feed, launch.ending)
        try:
            run.follow(begun + timeout, stop)
        finally:
            code = process.wait()
        status = _status(launch)
        _reap_orphan(status)
    code = -signal.SIGKILL if run.ended_here else code
    if status is not None and b'"exit-code"' not in status and code >= 0:
        return NeverRan(code)
    return Ended(128 - code if code < 0 else code, time.monotonic() - begun, timed_out=run.timed_out)


def _start(launch: Launch, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - running commands is what this is for
        launch.argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=launch.env,
        cwd=launch.cwd,
        start_new_session=True,
        pass_fds=launch.fds,
    )


def _no_start(error: OSError) -> Fault:
    _log.error("a command could not be started: %s", error)
    return Fault(_TOO_LONG if error.errno == errno.E2BIG else NOT_STARTED)


def _status(launch: Launch) -> bytes | None:
    """What the process said about the command; its end of the pipe is closed by now or never will be."""
    if launch.status is None:
        return None
    os.set_blocking(launch.status, False)
    said = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(launch.status, _CHUNK):
            said += piece
    return said


def _reap_orphan(status: bytes | None) -> None:
    """Reap the killed child of a process that did not wait for it, where this process is the one that inherits it.

    It does when it is the first of its container. Anywhere else the pid is none of its children.
    """
    found = re.search(rb'"child-pid": *(\d+)', status or b"")
    until = time.monotonic() + _DRAIN_SECONDS
    with contextlib.suppress(ChildProcessError):
        while found and time.monotonic() < until and not os.waitpid(int(found[1]), os.WNOHANG)[0]:
            time.sleep(_LOOK_SECONDS)


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Run blocking work in a thread of its own. Cancelling throws its switch and waits for it before it raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop = Stop()

    def settle(how: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(how)

    def main() -> None:
        try:
            result = work(stop)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
            failure = error
            settle(lambda: done.set_exception(failure))
        else:
            settle(lambda: done.set_result(result))

    threading.Thread(target=main, name="superpi-command", daemon=True).start()
    try:
        return await _finished(done, stop)
    finally:
        stop.close()


async def _finished(done: asyncio.Future[T], stop: Stop) -> T:
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
            stop.throw()
    if cancelled is None:
        return done.result()
    if (failure := done.exception()) is not None:
        _log.error("a cancelled command failed", exc_info=failure)
    raise cancelled


class _Run:
    """One running process: its pipe, its end, its deadline."""

    def __init__(
        self, process: subprocess.Popen[bytes], pipe: int, feed: Callable[[bytes], None], ending: signal.Signals
    ) -> None:
        self._process, self._pipe, self._feed, self._ending = process, pipe, feed, ending
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)
        self._open = True
        self.ended_here = self.timed_out = False

    def follow(self, deadline: float, stop: Stop) -> None:
        """Read until the process has ended, ending it at the deadline or when `stop` is thrown."""
        try:
            with _end_of(self._process) as end:
                self._until_ended(end, deadline, stop)
        finally:
            self._end_group()
        self._drain()

    def _until_ended(self, end: int | None, deadline: float, stop: Stop) -> None:
        watched = [fd for fd in (end, stop.fileno()) if fd is not None]
        for fd in watched:
            self._poll.register(fd, select.POLLIN)
        while not self._has_ended(end, ready := self._step(deadline - time.monotonic(), blind=end is None)):
            stopped = stop.fileno() in ready
            if time.monotonic() < deadline and not stopped:
                continue
            os.kill(self._process.pid, signal.SIGKILL if self.ended_here else self._ending)
            if not self.ended_here:
                self.ended_here, self.timed_out = True, not stopped
                self._poll.unregister(watched.pop())
            deadline = time.monotonic() + _ENDING_SECONDS
        for fd in watched:
            self._poll.unregister(fd)

    def _has_ended(self, end: int | None, ready: set[int]) -> bool:
        return self._process.poll() is not None if end is None else end in ready

    def _step(self, seconds: float, *, blind: bool) -> set[int]:
        """Wait for anything to happen, read what has come, and answer which descriptors are ready."""
        most = min(seconds, _LOOK_SECONDS) if blind else seconds
        ready = {fd for fd, _ in self._poll.poll(max(0, math.ceil(most * 1000)))}
        if self._pipe in ready:
            self._read()
        return ready

    def _read(self) -> None:
        piece = os.read(self._pipe, _CHUNK)
        if piece:
            self._feed(piece)
        else:
            self._open = False
            self._poll.unregister(self._pipe)

    def _drain(self) -> None:
        """Read what is still in the pipe. Whoever holds it open without writing is not waited for."""
        until = time.monotonic() + _DRAIN_SECONDS
        while self._open and time.monotonic() < until and self._step(_IDLE_SECONDS, blind=False):
            pass

    def _end_group(self) -> None:
        """Kill what is left in the process's group; its leader is reaped only later, so the number is still its own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A descriptor that is readable when the process has ended, and which leaves it to be reaped; None without one."""
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)
