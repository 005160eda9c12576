"""Calls in flight: which tasks run for which connection, so that they can be cancelled and waited for.

A task is found by its connection and request id, and two calls may share an id: claude.ai numbers every request
1 and pools chats in one session. So a cancellation by id acts only when exactly one call has that id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from auth.changes import Change, Subject, doubts
from auth.ports import StoreAway
from mcp.pending import Credential
from mcp.protocol import codec
from mcp.protocol.wire import RequestId, is_request_id

T = TypeVar("T")

#: What is known of a running call: its id, and what let it in.
_Call = tuple[RequestId, Credential | None]
#: Seconds between two looks at a token while the store is away.
_AGAIN: Final = 1.0
#: Seconds that a call has to end by itself: one that waits for a person is told why it has to.
_GRACE: Final = 0.5

#: Characters of a withdrawal that other processes are told of; an id that needs more is nobody's.
_LONGEST: Final = 512


def withdrawal(connection: str, id: RequestId) -> Change | None:
    """What tells other processes that a call of that connection was withdrawn; None for an id that is too long."""
    key = codec.encode([connection, id]).decode()
    return Change(Subject.CALL, key) if len(key) <= _LONGEST else None


class Flight:
    """The running calls of one process. For use on one event loop.

    `on_landed` hears of a connection whose last running call has ended.
    """

    def __init__(self, on_landed: Callable[[str], None] = lambda _connection: None) -> None:
        self._calls: dict[str, dict[asyncio.Task[Any], _Call]] = {}
        self._judging: set[asyncio.Task[None]] = set()
        self.on_landed = on_landed

    def start(
        self, connection: str, id: RequestId, work: Coroutine[Any, Any, T], credential: Credential | None = None
    ) -> asyncio.Task[T]:
        """Run `work` as a call of that connection, which ends with the token that let it in."""
        task = asyncio.get_running_loop().create_task(work)
        self._calls.setdefault(connection, {})[task] = (id, credential)
        task.add_done_callback(lambda done: self._landed(connection, done))
        return task

    def cancel(self, connection: str, id: RequestId) -> bool:
        """Cancel the one call with that id; False when there is none, or more than one."""
        calls = self._calls.get(connection, {})
        found = [task for task, (own, _) in calls.items() if own == id and type(own) is type(id)]
        if len(found) != 1:
            return False
        return found[0].cancel()

    def hear(self, change: Change | None) -> None:
        """Cancel what was withdrawn, and what runs by a session or token that ended, through another process too."""
        self._doubt(change)
        match change:
            case Change(Subject.SESSION, id):
                self.cancel_all(id)
            case Change(Subject.CALL, key):
                match codec.decode(key.encode()):
                    case [str(connection), id] if is_request_id(id):
                        self.cancel(connection, id)
            case _:
                return

    def _doubt(self, change: Change | None) -> None:
        for calls in self._calls.values():
            for task, (_, credential) in calls.items():
                # Who was let in without a token is not put out because somebody else has one now.
                if credential is None or credential.caller.token is None or not doubts(change, credential.caller):
                    continue
                judging = asyncio.get_running_loop().create_task(_judge(task, credential))
                self._judging.add(judging)
                judging.add_done_callback(self._judging.discard)

    def cancel_all(self, connection: str | None = None) -> None:
        """Cancel every call of a connection; of all connections without one."""
        chosen = list(self._calls) if connection is None else [connection]
        for name in chosen:
            for task in list(self._calls.get(name, {})):
                task.cancel()

    async def landed(self, deadline: float) -> bool:
        """Wait until no call runs, at most `deadline` seconds; True when none does."""
        tasks = [task for calls in self._calls.values() for task in calls]
        if not tasks:
            return True
        _, running = await asyncio.wait(tasks, timeout=deadline)
        return not running

    def busy(self, connection: str) -> bool:
        """Whether a call of that connection runs."""
        return connection in self._calls

    def __len__(self) -> int:
        return sum(len(calls) for calls in self._calls.values())

    def _landed(self, connection: str, task: asyncio.Task[Any]) -> None:
        calls = self._calls[connection]
        del calls[task]
        if not calls:
            del self._calls[connection]
            self.on_landed(connection)


async def _judge(task: asyncio.Task[Any], credential: Credential) -> None:
    """Cancel a call whose token lets nobody in any more; while that cannot be told it goes on."""
    while not task.done():
        try:
            if await credential.again() is None:
                await asyncio.sleep(_GRACE)
                task.cancel()
        except StoreAway:
            await asyncio.sleep(_AGAIN)
        else:
            return
