"""Running commands in a sandbox: a place in the queue, a thread, a result."""

from __future__ import annotations

import logging
from typing import Final, assert_never

from mcp.faults import Fault
from mcp.limits import Limits
from mcp.workspace.processes import NOT_STARTED, Ended, NeverRan, Stop, in_thread, run_to_end
from mcp.workspace.sandbox import Sandbox
from mcp.workspace.shell_capture import Capture
from mcp.workspace.shell_command import WORKSPACE_GONE, Command, CommandResult, is_gone
from mcp.workspace.shell_gate import Gate

_log: Final = logging.getLogger(__name__)

#: How long a command waits for others to end before it is refused, in seconds.
QUEUE_SECONDS: Final = 5.0

_MOST_LOGGED: Final = 500

_BUSY: Final = "Too many commands are running already, and this one was not run. Wait until one ends and try again."


class CommandRunner:
    """The commands of one process, in one kind of sandbox."""

    def __init__(self, sandbox: Sandbox, limits: Limits, queue_seconds: float = QUEUE_SECONDS) -> None:
        self._sandbox, self._limits, self._queue_seconds = sandbox, limits, queue_seconds
        self._gate = Gate(limits.shells, limits.shells_per_principal)

    async def run(self, command: Command) -> CommandResult | Fault:
        """Run a command to its end. Cancelling ends every process of it before it returns."""
        if not await self._gate.enter(command.principal, self._queue_seconds):
            return Fault(_BUSY)
        try:
            return await in_thread(lambda stop: self._run(command, stop))
        finally:
            self._gate.leave(command.principal)

    def _run(self, command: Command, stop: Stop) -> CommandResult | Fault:
        capture = Capture(self._limits, command.root if command.spool else None)
        try:
            launch = self._sandbox.plan(command)
            if isinstance(launch, Fault):
                return launch
            ended = run_to_end(launch, capture.feed, command.timeout, stop)
        except OSError as error:
            _log.error("a command could not be started: %s", error)
            return _not_started(command)
        finally:
            capture.finish()
        match ended:
            case Fault():
                return ended
            case NeverRan():
                _log.error("the sandbox could not start a command: %s", capture.tail.text[:_MOST_LOGGED])
                why = None if is_gone(command.root) else self._sandbox.explain(command)
                return _not_started(command) if why is None else Fault(why)
            case Ended():
                return _result(ended, capture)
            case _:
                assert_never(ended)


def _not_started(command: Command) -> Fault:
    return Fault(WORKSPACE_GONE if is_gone(command.root) else NOT_STARTED)


def _result(ended: Ended, capture: Capture) -> CommandResult:
    tail, spool = capture.tail, capture.spool
    return CommandResult(
        exit_code=ended.exit_code,
        output=tail.text,
        duration=ended.duration,
        timed_out=ended.timed_out,
        truncated=tail.truncated,
        total_lines=tail.total_lines,
        total_bytes=tail.total_bytes,
        first_line=tail.first_line,
        last_line=tail.last_line,
        cut_line_bytes=tail.cut_line_bytes,
        spool=spool.path if spool is not None else None,
        spool_capped=spool is not None and spool.capped,
    )
