"""The life of one process: whether it may be asked, what runs in the background, and the order of the way out."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from auth.authenticator import Authenticator
from gateway.store.changes import StoreChanges
from gateway.store.faults import StoreUnavailable
from mcp.flight import Flight
from mcp.grants import GrantStore
from mcp.harness.watch import Watch
from mcp.hub import Hub
from mcp.live import Sessions
from mcp.pending import Pending
from mcp.protocol.errors import HttpRefusal
from mcp.subscriptions import Subscriptions
from telemetry.audit import AuditTrail
from telemetry.tracing import Tracing

if TYPE_CHECKING:
    from auth.keyring import Keyring

_log: Final = logging.getLogger("superpi.lifecycle")

_TIDY_SECONDS: Final = 60.0
_KILL_SECONDS: Final = 3.0


class Phase(enum.Enum):
    """Where a process is in its life; `value` is what `/readyz` says."""

    STARTING = "starting"
    WAITING = "the database is away"
    BEHIND = "the schema is behind: run superpi migrate"
    READY = "ok"
    DRAINING = "draining"


#: Where each phase may lead. Once ready, an outage is told by the calls that meet it, and the way out is final.
_NEXT: Final[Mapping[Phase, frozenset[Phase]]] = MappingProxyType(
    {
        Phase.STARTING: frozenset(Phase) - {Phase.STARTING},
        Phase.WAITING: frozenset(Phase) - {Phase.STARTING},
        Phase.BEHIND: frozenset(Phase) - {Phase.STARTING},
        Phase.READY: frozenset({Phase.DRAINING}),
        Phase.DRAINING: frozenset(),
    }
)
_REFUSALS: Final[Mapping[Phase, HttpRefusal | None]] = MappingProxyType(
    {
        Phase.STARTING: HttpRefusal.UNAVAILABLE,
        Phase.WAITING: HttpRefusal.UNAVAILABLE,
        Phase.BEHIND: HttpRefusal.UNAVAILABLE,
        Phase.READY: None,
        Phase.DRAINING: HttpRefusal.DRAINING,
    }
)


class Readiness:
    """The phase of a process. `refusal` is what new calls get instead of an answer; `why` is for anybody who asks."""

    __slots__ = ("phase", "refusal", "why")

    def __init__(self) -> None:
        self.phase = Phase.STARTING
        self.refusal = _REFUSALS[self.phase]
        self.why = ""

    def become(self, phase: Phase, why: str = "") -> None:
        """Go on to that phase; nothing happens where no way leads there, as from the way out."""
        if phase in _NEXT[self.phase]:
            self.phase, self.why, self.refusal = phase, why, _REFUSALS[phase]


@dataclass(slots=True)
class Lifecycle:
    """What a process does besides answering: hearing of changes, writing behind, and ending without losing calls."""

    sessions: Sessions
    flight: Flight
    hub: Hub
    pending: Pending
    subscriptions: Subscriptions
    grants: GrantStore
    authenticator: Authenticator
    changes: StoreChanges
    trail: AuditTrail
    tracing: Tracing
    readiness: Readiness = field(default_factory=Readiness)
    watch: Watch | None = None
    keyring: Keyring | None = None
    #: Hears how many processes share the database, now and then.
    on_replicas: Callable[[int], None] = lambda _count: None
    _closed: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Begin to hear, to write behind and to tidy."""
        for hear in (self.sessions.hear, self.flight.hear, self.pending.hear, self.subscriptions.hear, self.hub.hear):
            self.changes.listen(hear)
        await self.changes.start()
        loop = asyncio.get_running_loop()
        self._tasks += [loop.create_task(self.trail.run()), loop.create_task(self._keep_tidy())]
        if self.watch is not None:
            self._tasks.append(loop.create_task(self.watch.run()))
        if self.keyring is not None:
            self._tasks.append(loop.create_task(self.keyring.keep()))

    def refusal(self) -> HttpRefusal | None:
        """What new calls get instead of an answer, so that clients come again or go elsewhere."""
        return self.readiness.refusal

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(min(_TIDY_SECONDS, self.sessions.tidy_every.total_seconds()))
            try:
                await self.sessions.tidy()
                await self.authenticator.tidy()
                await self.pending.tidy()
                await self.grants.sweep(datetime.now(UTC))
                self.on_replicas(await self.changes.replicas())
            except StoreUnavailable as error:
                _log.warning("sessions could not be tidied: %s", error)

    async def drain(self, *, delay: float, deadline: float) -> None:
        """Refuse new calls, wait for the running ones, cancel what is left; times in seconds.

        A process that never was ready is sent nothing, so it does not delay.
        """
        was_ready = self.readiness.phase is Phase.READY
        self.readiness.become(Phase.DRAINING)
        await asyncio.sleep(delay if was_ready else 0)
        # Whoever listens is told that it is over, and listens elsewhere.
        self.hub.close()
        if not await self.flight.landed(deadline):
            _log.warning("cancelling %d calls that still run", len(self.flight))
            self.flight.cancel_all()
            await self.flight.landed(_KILL_SECONDS)

    async def close(self) -> None:
        """End what runs, then write what is owed to the store; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.flight.cancel_all()
        await self.flight.landed(_KILL_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.keyring is not None:
            await self.keyring.close()
        try:
            await self.sessions.flush()
        except StoreUnavailable as error:
            _log.warning("the last use of sessions could not be written: %s", error)
        await self.pending.flush()
        await self.authenticator.tidy(everything=True)
        await self.trail.close()
        await self.changes.stop()
        await self.tracing.close()
