"""One payload on its way to its answer over HTTP: as JSON when that is all, as a stream when there is more to say.

The answer becomes a stream with the first message before the reply, or when a call takes long, if the client takes
streams; then comments keep it alive (docs/decisions/0007). Until then its status is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final

from mcp import http
from mcp.accept import Form
from mcp.http import Headers, Receive, Send
from mcp.limits import HttpLimits
from mcp.protocol.engine import Step
from mcp.protocol.errors import HttpRefusal
from mcp.settling import Settling

OK: Final = 200
#: Sent with every 503, in seconds.
AGAIN: Final[Headers] = ((b"retry-after", b"2"),)
#: How long a call runs before anybody looks whether its client is still there; most are through by then.
_QUIET_SECONDS: Final = 0.1


class Answering:
    """The answer to one request of HTTP. `opened` is entered with the stream, if there is one, and left after it."""

    def __init__(
        self,
        send: Send,
        form: Form,
        limits: HttpLimits,
        opened: Callable[[Callable[[bytes], None]], AbstractContextManager[None]] | None = None,
    ) -> None:
        self._send = send
        self._form = form
        self._limits = limits
        self._opened = opened
        self._streaming = False
        self._stack = ExitStack()

    @property
    def can_stream(self) -> bool:
        """Whether the client takes anything but the reply."""
        return Form.EVENTS in self._form

    async def settle(self, settling: Settling, receive: Receive | None) -> bool:
        """Wait for the effects, however long, and send what they say; False when the client has left.

        With `receive` a client that leaves withdraws its request (HM-10); what runs for it is stopped.
        """
        watch: asyncio.Task[None] | None = None
        patience = self._limits.stream_after if receive is None else _QUIET_SECONDS
        try:
            while True:
                in_time = await settling.wait(patience)
                await self._say(settling)
                if settling.settled():
                    return True
                if watch is not None and watch.done():
                    settling.cancel()
                    while not settling.settled():
                        await settling.wait()
                    return False
                if in_time:
                    continue
                if receive is not None and watch is None:
                    watch = _watch(receive, settling)
                    patience = self._limits.stream_after
                    continue
                await self._keep_alive(settling)
                patience = self._limits.keep_alive
        finally:
            self._stack.close()
            if watch is not None:
                watch.cancel()

    async def finish(self, step: Step, extra: Headers = ()) -> None:
        """Send the reply of a step that waits for nothing."""
        reply = step.reply
        if self._streaming:
            if reply is None:
                await http.end_events(self._send)
            else:
                await http.send_event(self._send, reply.encode(), last=True)
        elif reply is None:
            await http.send_empty(self._send, 202)
        else:
            status = reply.status
            if status == HttpRefusal.UNAVAILABLE.status:
                extra = (*extra, *AGAIN)
            if Form.JSON in self._form or status != OK:
                await http.send_json(self._send, status, reply.encode(), extra)
            else:
                await http.start_events(self._send, extra)
                await http.send_event(self._send, reply.encode(), last=True)

    async def _say(self, settling: Settling) -> None:
        while messages := settling.take():
            await self._stream(settling)
            for message in messages:
                await http.send_event(self._send, message, last=False)

    async def _keep_alive(self, settling: Settling) -> None:
        if self.can_stream:
            await self._stream(settling)
            await http.send_keep_alive(self._send)

    async def _stream(self, settling: Settling) -> None:
        if not self._streaming:
            self._streaming = True
            await http.start_events(self._send)
            if self._opened is not None:
                self._stack.enter_context(self._opened(settling.say))


def _watch(receive: Receive, settling: Settling) -> asyncio.Task[None]:
    """Wake the settling once the client has left."""

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.get_running_loop().create_task(left())
    task.add_done_callback(lambda _task: settling.wake())
    return task
