"""The plain client over Streamable HTTP."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self

import httpx

from tests.support.mcp_client import McpClient, Message


class McpHttp(McpClient):
    """A client of one URL. `session` is the id that the server gave, and may come from an earlier client."""

    def __init__(self, url: str, *, revision: str = "2025-11-25", session: str | None = None) -> None:
        super().__init__(revision)
        self.url = url
        self.session = session
        self._http = httpx.Client(timeout=60, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def exchange(self, message: Message) -> Message | None:
        """POST a message and take its reply from a JSON body or from the last event of a stream."""
        answer = self.post(message)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
        self.session = answer.headers.get("mcp-session-id", self.session)
        if answer.status_code == httpx.codes.ACCEPTED:
            return None
        if answer.headers["content-type"].startswith("text/event-stream"):
            return json.loads(
                [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data:")][-1]
            )
        return answer.json()

    def post(self, message: Message) -> httpx.Response:
        """POST a message with the headers of the connection; the raw answer."""
        headers = {"accept": "application/json, text/event-stream"}
        if self.session is not None:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": self.revision}
        return self._http.post(self.url, json=message, headers=headers)

    def end(self) -> httpx.Response:
        """DELETE the session."""
        assert self.session is not None
        return self._http.delete(self.url, headers={"mcp-session-id": self.session})
