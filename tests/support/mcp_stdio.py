"""The plain client over stdio: a server process, a message a line."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.mcp_client import McpClient, Message
from tests.support.official import Connection

_REPLY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 15.0


class McpStdio(McpClient):
    """A client that owns its server. Leaving the block closes the server's input and sees that it ends with 0.

    What the server says on stderr goes to the file `log`.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, *, revision: str = "2025-11-25"
    ) -> None:
        super().__init__(revision)
        self._log = log
        self._rest = b""
        self._official = Connection()
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                argv, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.stdout.close()
        if value is None:
            assert code == 0, self._log.read_text("utf-8", errors="replace")

    def exchange(self, message: Message) -> Message | None:
        """Write a line and read lines until the reply to it; notifications in between are passed over."""
        assert self._process.stdin is not None
        self._official.sent(message)
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        if "id" not in message:
            return None
        deadline = time.monotonic() + _REPLY_SECONDS
        while True:
            reply = self._official.received(json.loads(self._line(deadline)))
            if reply.get("id") == message["id"] and "method" not in reply:
                return reply

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                chunk = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
                if not chunk:
                    raise AssertionError(
                        f"The server did not answer:\n{self._log.read_text('utf-8', errors='replace')}"
                    )
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line
