"""HTTP/1.1 as uvicorn speaks it, and deaf to Upgrade: an offer that a server may ignore (RFC 9110, 7.8).

uvicorn with httptools takes what follows such a head for another protocol: it loses the body and warns of missing
libraries. Clients that would rather speak HTTP/2 (`curl --http2`, Java's) offer that with their first request.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_INVALID: Final = "Invalid HTTP request received."


class DeafToUpgrade(HttpToolsProtocol):
    """One connection. A request that offers an upgrade is parsed again without the offer."""

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    # What follows is for the host that it names; the answer is that it gets nothing here.
                    return
                data = self._without_offer() + data[upgrade.args[0] :]
                self._begin_anew()
            except httptools.HttpParserError:
                self.send_400_response(_INVALID)
                return
            else:
                return

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the head is to be parsed again."""
        if not self._is_offered():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is whole, unless there was none because of the offer."""
        if not self._is_offered():
            super().on_message_complete()

    def _begin_anew(self) -> None:
        """A parser that has seen nothing, as uvicorn makes it."""
        self.parser = httptools.HttpRequestParser(self)
        with suppress(AttributeError):  # of httptools before 0.6.3
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _is_offered(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _without_offer(self) -> bytes:
        """The head as it came, but for the offer."""
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))
