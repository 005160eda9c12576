"""The head of a request, bounded in size and time: uvicorn waits for one without end, and takes one of any size.

What is refused here is no request yet, so that nothing but the listener can refuse it. The answer is a problem
(RFC 9457) all the same, and the connection ends with it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from gateway import problems
from gateway.wire import DeafToUpgrade
from mcp.limits import HttpLimits
from mcp.protocol.errors import HttpRefusal

#: Reason phrases matter to nobody (RFC 9112, section 4), but a status line has room for one.
_PHRASES: Final = {
    HttpRefusal.NOT_HTTP: b"Bad Request",
    HttpRefusal.HEADERS_TIMEOUT: b"Request Timeout",
    HttpRefusal.HEADERS_TOO_LARGE: b"Request Header Fields Too Large",
}


class Bounded(DeafToUpgrade):
    """One connection, whose heads are within bounds.

    A clock runs only while a head is due or has come in part: a request whose head comes whole costs none.
    """

    def __init__(self, limits: HttpLimits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        # Between two requests, in the head of one, or answering the last thing that is said here.
        self._is_between, self._is_in_head, self._is_over = True, False, False
        #: Bytes that came between two requests, which are those of a head; none of a head that begins within a piece.
        self._came = 0
        self._piece = 0
        self._clock: asyncio.TimerHandle | None = None
        self._owed: HttpRefusal | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head, and not for ever."""
        super().connection_made(transport)
        self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless the connection is on its way out."""
        if self._is_over:
            return
        self._piece = len(data)
        if self._is_between:
            self._came += self._piece
        super().data_received(data)
        if self._is_over or not self._is_between:  # type: ignore[redundant-expr]  # the parser has called back
            return
        if self._is_in_head and self._came > self._limits.header_bytes:
            self._refuse(HttpRefusal.HEADERS_TOO_LARGE)
        elif self._clock is None and (self._is_in_head or not self._is_answering()):
            self._wind()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to answer, if the head is within bounds."""
        self._is_between = self._is_in_head = False
        self._stop_clock()
        if self._is_too_large():
            self._refuse(HttpRefusal.HEADERS_TOO_LARGE)
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Of a request that was refused nothing is kept."""
        if not self._is_over:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The next thing to come is a head."""
        self._is_between, self._came = True, 0
        if not self._is_over:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, in its own form
        """Answer what is no request."""
        self._refuse(HttpRefusal.NOT_HTTP)

    def _is_too_large(self) -> bool:
        most = self._limits.header_bytes
        if len(self.headers) > self._limits.header_fields:
            return True
        # Nearly every head came in a piece that is within the bound as a whole.
        if max(self._came, self._piece) <= most:
            return False
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > most

    def _wind(self) -> None:
        self._clock = self.loop.call_later(self._limits.header_seconds, self._run_out)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _run_out(self) -> None:
        self._clock = None
        if self._is_answering():
            # Part of a next head came while an answer is due, which takes as long as it takes.
            self._wind()
        elif self._came:
            self._refuse(HttpRefusal.HEADERS_TIMEOUT)
        else:
            self._is_over = True
            self.transport.close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def on_response_complete(self) -> None:
        """Say what had to wait for the answers before it."""
        super().on_response_complete()
        if self._owed is not None and not self._is_answering():
            self._say(self._owed)

    def _refuse(self, refusal: HttpRefusal) -> None:
        """Answer and close, once all that was asked before is answered."""
        self._is_over = True
        self._stop_clock()
        self.logger.info("refused on %s: %s", self.client, problems.code(refusal))
        if self._is_between and self._is_answering():
            self._owed = refusal
        else:
            self._say(refusal)

    def _say(self, refusal: HttpRefusal) -> None:
        # What is broken off in its body may have begun to be answered; then the close has to do.
        if not self.transport.is_closing() and not (self._is_answering() and self.cycle.response_started):
            body = problems.body(refusal, "")
            head = [
                b"HTTP/1.1 %d %s" % (refusal.status, _PHRASES[refusal]),
                b"content-type: " + problems.MEDIA_TYPE.encode(),
                b"content-length: %d" % len(body),
                b"connection: close",
            ]
            self.transport.write(b"\r\n".join((*head, b"", body)))
        self.transport.close()
