"""The way from a database that may be away, behind or too new to one that is served from. Knows no SQL.

A server that was started before its database waits for it, and for a migration that others make. What waiting does
not mend ends the start: a schema of a newer version, a file that cannot be opened, a setting.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.lifecycle import Phase, Readiness
from gateway.store.engine import Database
from gateway.store.faults import SchemaBehind, SchemaForeign, StoreUnavailable
from gateway.store.migrate import How, make_usable

_log: Final = logging.getLogger("superpi.start")

#: Seconds between two attempts: at first, and at most. An attempt itself takes up to 5 s when nothing answers.
_SOON: Final = 0.25
_LATE: Final = 2.0
#: Seconds until the same words are logged again: at first, and at most.
_REMIND_FIRST: Final = 30.0
_REMIND_LAST: Final = 600.0


class Complaint:
    """Logs what is the matter once, again when it changes, and then ever more rarely while it stays so."""

    def __init__(self, saying: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._saying = saying
        self._clock = clock
        self._words: str | None = None
        self._pause = 0.0
        self._due = 0.0

    def say(self, words: str) -> None:
        """Something is the matter."""
        now = self._clock()
        if words == self._words and now < self._due:
            return
        self._pause = min(2 * self._pause, _REMIND_LAST) if words == self._words else _REMIND_FIRST
        self._words, self._due = words, now + self._pause
        _log.warning("%s: %s", self._saying, words)

    def over(self) -> bool:
        """Nothing is the matter any more; whether something was."""
        was, self._words = self._words is not None, None
        return was


@dataclass(slots=True)
class Opening:
    """Takes a database into use. `admit` is what happens once it is there and current, before anybody is served."""

    url: str
    how: How
    database: Database
    readiness: Readiness
    admit: Callable[[], Awaitable[None]]
    _complaint: Complaint = field(default_factory=lambda: Complaint("not ready"))

    async def once(self) -> None:
        """One attempt. Raises StoreUnavailable, and SettingsError for what only the database could tell."""
        await _in_thread(partial(make_usable, self.url, self.how))
        await self.admit()
        self.database.admit()
        self.readiness.become(Phase.READY)

    async def keep_trying(self, begun: Callable[[], None]) -> None:
        """Attempts until one succeeds; `begun` is called once the first has ended. Raises what waiting cannot mend."""
        pause = _SOON
        while not await self._attempt():
            begun()
            begun = _nothing
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATE)
        begun()

    async def _attempt(self) -> bool:
        try:
            await self.once()
        except SchemaForeign:
            raise
        except SchemaBehind as error:
            self._wait(Phase.BEHIND, error)
        except StoreUnavailable as error:
            if not self.database.is_server:
                raise
            self._wait(Phase.WAITING, error)
        else:
            if self._complaint.over():
                _log.info("ready: the database is there and current")
            return True
        return False

    def _wait(self, phase: Phase, error: StoreUnavailable) -> None:
        self.readiness.become(phase, error.public)
        self._complaint.say(str(error))


def _nothing() -> None:
    """Called instead of what must be called only once."""


async def _in_thread(work: Callable[[], None]) -> None:
    """Run `work` in a thread that nobody waits for at the end of the process.

    A name server or a lock may hold it for long, and a migration that the end of the process interrupts is undone.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - handed to who waits
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="superpi-open", daemon=True).start()
    await done
