"""A plain MCP client, as small as the protocol allows: whole messages in, whole messages out.

The official clients judge the server too (`tests/clients`); this one shows what is on the wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

Message = dict[str, Any]


class McpClient(ABC):
    """One connection over some transport. Ids count from 1."""

    def __init__(self, revision: str = "2025-11-25") -> None:
        self.revision = revision
        self._last_id = 0

    @abstractmethod
    def exchange(self, message: Message) -> Message | None:
        """Send a message; the reply to it, or None for a notification."""

    def request(self, method: str, **params: Any) -> Message:
        """Send a request; the whole reply, a result or an error."""
        self._last_id += 1
        reply = self.exchange({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert reply is not None
        assert reply["id"] == self._last_id
        return reply

    def notify(self, method: str) -> None:
        """Send a notification."""
        assert self.exchange({"jsonrpc": "2.0", "method": method}) is None

    def initialize(self) -> Message:
        """Shake hands; the server's result."""
        client = {"name": "tests", "version": "1"}
        reply = self.request("initialize", protocolVersion=self.revision, capabilities={}, clientInfo=client)
        self.notify("notifications/initialized")
        return reply["result"]

    def call(self, tool: str, **arguments: Any) -> Message:
        """Call a tool; its result."""
        return self.request("tools/call", name=tool, arguments=arguments)["result"]

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must succeed; the text of its result."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        return "".join(block["text"] for block in result["content"])
