"""A real `superpi serve` as a process of its own: started, killed, started again, and always stopped by its pid."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.support.unprivileged import Launcher

_READY: Final = b"Super-Pi serves "
#: Bounds, in seconds: imports on a busy machine, and the server's own drain.
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0


@dataclass(slots=True)
class Server:
    """One server on one workspace and one data folder; `home` holds what it says on stderr."""

    launcher: Launcher
    workspace: Path
    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; `setpriv` before it has become it."""
        return self._running().pid

    @property
    def said(self) -> str:
        """Everything that it wrote to stderr, over all its lives."""
        return (self.home / "stderr").read_text("utf-8", errors="replace")

    def start(self) -> None:
        """Start, on the port of its earlier life if it had one, and wait until it says that it serves."""
        self.launch()
        self.url = self._announced()

    def launch(self) -> None:
        """Start, and wait for nothing: the port that it will listen on has to be known."""
        environment = {
            **self.launcher.env,
            "HOME": str(self.home),
            "SUPERPI_WORKSPACE": str(self.workspace),
            "SUPERPI_DATA_DIR": str(self.home / "data"),
            "SUPERPI_PORT": str(urlsplit(self.url).port or 0),
            **self.settings,
        }
        with (self.home / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(
                self.launcher.superpi("serve"),
                cwd=self.workspace,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    def kill9(self) -> None:
        """End it as a crash would."""
        process = self._running()
        process.kill()
        self.ended(_STOP_SECONDS)

    def restart(self) -> None:
        """Start it again on the same port and data."""
        assert self.process is None, "the server still runs"
        self.start()

    def stop(self) -> None:
        """Ask it to end, and see that it does so in time and without an error. Does nothing when it has ended."""
        if self.process is None:
            return
        process = self.process
        process.send_signal(signal.SIGTERM)
        try:
            code = self.ended(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"The server did not end within {_STOP_SECONDS} s:\n{self.said}") from None
        assert code == 0, f"The server ended with {code}:\n{self.said}"

    def _running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, "the server does not run"
        return self.process

    def ended(self, seconds: float) -> int:
        """Its exit status, once it has ended within that time."""
        process = self._running()
        code = process.wait(seconds)
        assert process.stdout is not None
        process.stdout.close()
        self.process = None
        return code

    def _announced(self) -> str:
        """The URL from the line that the server prints when it listens."""
        process = self._running()
        assert process.stdout is not None
        said = b""
        deadline = time.monotonic() + _START_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n") or _READY not in said:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                chunk = os.read(process.stdout.fileno(), 4096) if ready else b""
                if not chunk:
                    self.kill9()
                    raise AssertionError(f"The server did not start:\n{said.decode()}\n{self.said}")
                said += chunk
        return said.partition(_READY)[2].split(b"\n")[0].decode()


@contextmanager
def serving(launcher: Launcher, workspace: Path, home: Path, **settings: str) -> Iterator[Server]:
    """A running server that has ended, in order, when the block is left; `settings` are variables by name."""
    server = Server(launcher, workspace, home, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
