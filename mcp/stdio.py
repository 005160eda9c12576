"""The stdio transport: the same engine over lines. One process is one connection.

stdout carries nothing but messages, one a line (STD-1, STD-2): whatever else writes to it lands on stderr. Calls
run side by side. At the end of input what still runs is cancelled after a short grace, and the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from auth.caller import Caller, Transport
from mcp.announcing import Announcer
from mcp.calls import Connection
from mcp.flight import Flight
from mcp.offering import Offering
from mcp.pending import Pending
from mcp.protocol import traces
from mcp.protocol.arrival import Arrival
from mcp.protocol.effects import Answered, CallRejected, CancelRequested, Effect, Fact, Opened, Value
from mcp.protocol.engine import Step
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.state import State
from mcp.protocol.wire import Reply, Request, RequestId, Response, parse
from mcp.settling import Settling
from mcp.speaking import Line, Speaker
from telemetry import tracing

_log: Final = logging.getLogger("superpi.stdio")

_CHUNK_BYTES: Final = 65_536
#: Lines that may wait to be taken; then the host is left to wait.
_MOST_WAITING: Final = 64
#: How long calls may still run after the end of input, in seconds: enough for a script that pipes a few requests.
_GRACE_SECONDS: Final = 1.0
_KILL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Lines:
    """Where messages come from and go to: `read` gives some bytes, none at the end; `longest` bounds a line's bytes."""

    read: Callable[[], bytes]
    write: Callable[[bytes], None]
    longest: int


def claim_stdout(longest: int) -> Lines:
    """Take stdin and stdout for messages; from here on fd 1 is stderr for everybody else."""
    private = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(private, rest) :]

    # The file descriptor itself: a buffered reader is locked while its thread waits, which ends Python badly.
    source = sys.stdin.fileno()
    return Lines(lambda: os.read(source, _CHUNK_BYTES), write, longest)


@dataclass(frozen=True, slots=True)
class StdioServices:
    """What the connection works with; `ask_seconds` is how long a call waits for an answer of the person."""

    offering: Offering
    announcer: Announcer
    ask_seconds: float


class Stdio:
    """The connection of one process. `harness` is the one chosen for its direct calls, empty for the default."""

    def __init__(self, services: StdioServices, lines: Lines, *, principal: str, harness: str) -> None:
        self._services = services
        self._lines = lines
        self._caller = Caller(principal, Transport.STDIO)
        self._state = State(principal=principal, harness=harness)
        # What this connection is called where its calls and its conversations are kept.
        self._name = secrets.token_urlsafe(16)
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._flight = Flight()
        self._answering: set[asyncio.Task[None]] = set()
        self._pending = Pending(lambda: datetime.now(UTC))
        self._announcing: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Answer lines until the end of input or of whoever reads the answers."""
        self._start_reader(asyncio.get_running_loop())
        try:
            while (line := await self._arrived.get()) is not None:
                self._room.release()
                self._guarded(line)
        except BrokenPipeError:
            _log.info("the host closed the pipe")
        await self._end()

    def stop(self) -> None:
        """End as at the end of input, once what arrived before is taken."""
        self._arrived.put_nowait(None)

    def _guarded(self, line: bytes) -> None:
        """Take a line; a bug in doing so costs that line its answer, and the host nothing else."""
        try:
            self._take(line)
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001 - logged, and answered without internals
            reference = secrets.token_hex(4)
            _log.exception("a line failed", extra={"reference": reference})
            refusal = Refusal(Reason.INTERNAL_ERROR, f"Internal error; the server's log has it under {reference}")
            self._write(Reply((Response(None, refusal),)))

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        if len(line) > self._lines.longest:
            refusal = Refusal(Reason.INVALID_REQUEST, f"Invalid request: a line is over {self._lines.longest} bytes")
            self._write(Reply((Response(None, refusal),)))
            return
        step = self._services.offering.current.engine.receive(parse(line), self._state, Arrival(time.time()))
        self._state = step.state
        for fact in step.facts:
            self._act(fact, step)
        if step.effects:
            self._soon(self._settle(step))
        elif step.reply is not None:
            self._write(step.reply)

    def _act(self, fact: Fact, step: Step) -> None:
        match fact:
            case Opened(requested, revision):
                _log.debug("initialize asked for %r, agreed on %s", requested[:64], revision.value)
                if self._announcing is None:
                    announce = self._services.announcer.announce(self._caller, self._name, self._say)
                    self._announcing = asyncio.get_running_loop().create_task(announce)
            case CancelRequested(request_id):
                self._flight.cancel(self._name, request_id)
            case Answered(id, body):
                self._soon(self._answer(id, body))
            case CallRejected(slot):
                around = self._connection(step, slot).circumstances()
                self._services.offering.current.performer.recorder.rejected(fact, around)

    def _connection(self, step: Step, slot: int) -> Connection:
        taken = step.slots[slot]
        return Connection(self._caller, taken.state or step.state, self._name, trace_id=_trace_id(taken.request))

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, id: RequestId, body: Mapping[str, Any]) -> None:
        await self._pending.answer(self._name, self._caller.principal, id, body)

    async def _settle(self, step: Step) -> None:
        engine, performer = self._services.offering.current.engine, self._services.offering.current.performer
        settling = Settling(engine, step, self._flight, self._name)
        line = Line(self._name, self._say, self._pending, self._services.ask_seconds)

        def perform(effect: Effect) -> Coroutine[Any, Any, Value]:
            connection = self._connection(step, effect.slot)
            speaker = Speaker(engine, step, effect, line)
            return speaker.while_running(performer.perform(effect, connection, speaker))

        settling.start(perform)
        while not settling.settled():
            await settling.wait()
        reply = settling.finish(owed=False).reply
        if reply is not None:
            with suppress(BrokenPipeError):
                self._write(reply)

    def _write(self, reply: Reply) -> None:
        self._lines.write(reply.encode() + b"\n")

    def _say(self, message: bytes) -> None:
        with suppress(BrokenPipeError):
            self._lines.write(message + b"\n")

    async def _end(self) -> None:
        # Whoever listens gets the result of that, instead of holding up the end (SUB-6).
        self._services.offering.current.performer.hub.close()
        if self._answering:
            await asyncio.wait(self._answering, timeout=_GRACE_SECONDS)
        if self._announcing is not None:
            self._announcing.cancel()
        self._flight.cancel_all()
        if self._answering:
            await asyncio.wait(self._answering, timeout=_KILL_SECONDS)

    def _start_reader(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read in a thread of its own: stdin may be a file, a pipe or a terminal, and only a thread reads all."""

        def read() -> None:
            # The loop is closed before this daemon thread ends when the process is told to stop first.
            with suppress(RuntimeError):
                for line in split_lines(self._lines.read, self._lines.longest):
                    self._room.acquire()
                    loop.call_soon_threadsafe(self._arrived.put_nowait, line)
                loop.call_soon_threadsafe(self._arrived.put_nowait, None)

        threading.Thread(target=read, name="stdin", daemon=True).start()


def _trace_id(request: Request | None) -> str | None:
    """The trace that a request names. There are no headers here, and no spans: it is for the audit log."""
    parent = traces.parent_of(request)
    return None if parent is None else tracing.trace_id(parent)


def split_lines(read: Callable[[], bytes], longest: int) -> Iterator[bytes]:
    """The lines of a stream, without their ends; the last one need not have an end.

    Of a line longer than `longest` bytes just one byte more is kept, so that memory stays bounded.
    """
    line = bytearray()
    while chunk := read():
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line += part[: longest + 1 - len(line)]
            yield bytes(line)
            line.clear()
        line += rest[: longest + 1 - len(line)]
    if line:
        yield bytes(line)
