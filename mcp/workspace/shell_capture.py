"""What becomes of a command's output while it runs: cleaned, its end kept, all of it spooled once it is too much."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from mcp.limits import Limits
from mcp.workspace.output import Cleaner, Tail, TailKeeper
from mcp.workspace.spool import Spool

#: Least pause after each piece of a flood, in seconds.
_LEAST_PAUSE: Final = 0.002


class Capture:
    """The output of one command. Nothing is written to the workspace as long as all of it can be shown."""

    def __init__(self, limits: Limits, root: Path | None) -> None:
        self._limits, self._root = limits, root
        self._cleaner = Cleaner()
        self._keeper = TailKeeper(limits.output_lines, limits.output_bytes)
        self._whole = True
        self._bytes = 0
        self.spool: Spool | None = None

    @property
    def tail(self) -> Tail:
        """What to show."""
        return self._keeper.tail()

    def feed(self, data: bytes) -> None:
        """Take the next piece. Beyond the spool's cap it pauses, so that a flood leaves the server half its time."""
        begun = time.monotonic()
        self._take(self._cleaner.feed(data).encode())
        self._bytes += len(data)
        if self._bytes > self._limits.spool_bytes:
            time.sleep(max(_LEAST_PAUSE, time.monotonic() - begun))

    def finish(self) -> None:
        """Take it that no more comes; once."""
        self._take(self._cleaner.finish().encode())
        if self.spool is not None:
            self.spool.close()

    def _take(self, text: bytes) -> None:
        if not text:
            return
        if self._whole and not self._keeper.fits(text):
            self._whole = False
            if self._root is not None and (spool := Spool.create(self._root, self._limits.spool_bytes)):
                self.spool = spool
                spool.write(self._keeper.kept())
        if self.spool is not None:
            self.spool.write(text)
        self._keeper.feed(text)
