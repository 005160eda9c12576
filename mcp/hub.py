"""One process's hub of changes: who listens for what, and what they have not been told yet.

A change that nobody has read yet is kept once, however often it happens, so a listener never holds more than its filter
names. Knows no stream and no revision. Whether a listener may hear of a resource was judged when it asked; whether its
credential still counts is judged anew by whoever let it in, once its listening has ended.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import TracebackType

from auth.caller import Caller
from auth.changes import Change, Subject, doubts
from mcp.protocol.notes import Changed, Filter, PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged, wants
from mcp.resources import transcript_uri


class Ended(enum.Enum):
    """Why a listening ended. What happened before is still told, unless the credential is in doubt."""

    CLOSED = "this process is about to stop"
    EXPIRED = "the credential has expired"
    DOUBTED = "the credential has to be judged anew"
    SESSION = "the session has ended"
    LEFT = "nobody listens any more"


class Listening:
    """One listener, for one task of the hub's event loop. As a context manager it leaves at the end of its block."""

    def __init__(self, hub: Hub, caller: Caller, filter: Filter, connection: str | None) -> None:
        self._hub = hub
        self._news = asyncio.Event()
        self._untold: dict[Changed, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.caller = caller
        self.filter = filter
        self.connection = connection
        self.ended: Ended | None = None

    async def next(self, seconds: float | None = None) -> Changed | None:
        """What happened next; None after that many seconds without anything, and at the end (`ended` tells)."""
        if not self._untold and self.ended is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        if not self._untold:
            return None
        changed = next(iter(self._untold))
        self._forget(changed)
        return changed

    def leave(self) -> None:
        """Listen no more; a second call does nothing."""
        self._hub.end(self, Ended.LEFT)

    def __enter__(self) -> Listening:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Changed:
        """The next change, however long it takes."""
        changed = await self.next()
        if changed is None:
            raise StopAsyncIteration
        return changed

    def expire(self, timer: asyncio.TimerHandle) -> None:
        """For the hub: what ends this in time."""
        self._timer = timer

    def put(self, changes: Iterable[Changed]) -> None:
        """For the hub: these happened."""
        self._untold.update(dict.fromkeys(changes))
        if self._untold:
            self._news.set()

    def want(self, filter: Filter) -> None:
        """For the hub: another filter, also for what was not told yet."""
        self.filter = filter
        self._forget(*(changed for changed in self._untold if not wants(filter, changed)))

    def stop(self, why: Ended) -> tuple[Changed, ...]:
        """For the hub: nothing more happens. Answers what will not be told here any more."""
        self.ended = why
        self._news.set()
        if self._timer is not None:
            self._timer.cancel()
        if why not in {Ended.DOUBTED, Ended.LEFT}:
            return ()
        untold = tuple(self._untold)
        self._untold.clear()
        return untold

    def _forget(self, *changes: Changed) -> None:
        for changed in changes:
            del self._untold[changed]
        if not self._untold and self.ended is None:
            self._news.clear()


class Hub:
    """Who listens in this process. For use on one event loop; `now` gives the time, aware."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        # Dictionaries, because they keep their order: of the listeners of a connection the oldest is told.
        self._all: dict[Listening, None] = {}
        self._by_uri: dict[str, dict[Listening, None]] = {}
        self._by_connection: dict[str, dict[Listening, None]] = {}
        self._closed = False

    def listen(
        self, caller: Caller, filter: Filter, *, connection: str | None = None, until: datetime | None = None
    ) -> Listening:
        """Listen from now on, until the credential expires if it does. The filter names only what the caller may read.

        Several listeners of one connection (a session's streams) share what they hear: each change is told to one of
        them (HL-12), and what one leaves untold goes to the next.
        """
        listening = Listening(self, caller, filter, connection)
        if self._closed:
            listening.stop(Ended.CLOSED)
            return listening
        self._all[listening] = None
        if connection is not None:
            self._by_connection.setdefault(connection, {})[listening] = None
        self._register(listening)
        if until is not None:
            seconds = (until - self._now()).total_seconds()
            listening.expire(asyncio.get_running_loop().call_later(max(seconds, 0), self.end, listening, Ended.EXPIRED))
        return listening

    def refilter(self, connection: str, uris: frozenset[str]) -> None:
        """From now on the listeners of that connection hear of these resources."""
        for listening in list(self._of(connection)):
            self._unregister(listening)
            listening.want(replace(listening.filter, uris=uris))
            self._register(listening)

    def connected(self) -> frozenset[str]:
        """The connections that have a listener."""
        return frozenset(self._by_connection)

    def tell(self, changed: Changed) -> None:
        """That happened: whoever wants to hear of it does."""
        among = self._by_uri.get(changed.uri, {}) if isinstance(changed, ResourceUpdated) else self._all
        _deliver(changed, among)

    def hear(self, change: Change | None) -> None:
        """Something was changed, here or elsewhere; None means that anything may have been."""
        match change:
            case None:
                self._doubt()
            case Change(Subject.CONVERSATION, id):
                self.tell(ResourceUpdated(transcript_uri(id)))
            case Change(Subject.CONVERSATIONS, id):
                _deliver(ResourcesChanged(), [one for one in self._all if one.caller.principal == id])
            case Change(Subject.TOKEN | Subject.PRINCIPAL):
                self._end_doubted(change)
            case Change(Subject.SESSION, id):
                for listening in list(self._of(id)):
                    self.end(listening, Ended.SESSION)

    def close(self) -> None:
        """End every listening, also those that begin later: the process is about to stop."""
        self._closed = True
        for listening in list(self._all):
            self.end(listening, Ended.CLOSED)

    def end(self, listening: Listening, why: Ended) -> None:
        """End a listening; the first reason stands."""
        if listening.ended is not None:
            return
        del self._all[listening]
        self._unregister(listening)
        if listening.connection is not None:
            _drop(self._by_connection, listening.connection, listening)
        for changed in listening.stop(why):
            _deliver(changed, self._of(listening.connection))

    def __len__(self) -> int:
        return len(self._all)

    def _doubt(self) -> None:
        """Tokens may have been revoked unheard; who needs none may have missed anything."""
        self._end_doubted(None)
        for listening in self._all:
            everything = (ToolsChanged(), PromptsChanged(), ResourcesChanged())
            listening.put(changed for changed in everything if wants(listening.filter, changed))
            listening.put(map(ResourceUpdated, sorted(listening.filter.uris)))

    def _end_doubted(self, change: Change | None) -> None:
        for listening in list(self._all):
            if doubts(change, listening.caller):
                self.end(listening, Ended.DOUBTED)

    def _of(self, connection: str | None) -> Iterable[Listening]:
        return () if connection is None else self._by_connection.get(connection, ())

    def _register(self, listening: Listening) -> None:
        for uri in listening.filter.uris:
            self._by_uri.setdefault(uri, {})[listening] = None

    def _unregister(self, listening: Listening) -> None:
        for uri in listening.filter.uris:
            _drop(self._by_uri, uri, listening)


def _drop(listeners: dict[str, dict[Listening, None]], key: str, listening: Listening) -> None:
    del listeners[key][listening]
    if not listeners[key]:
        del listeners[key]


def _deliver(changed: Changed, among: Iterable[Listening]) -> None:
    """Tell those who want to hear of it, of each connection the first."""
    told: set[str] = set()
    for listening in among:
        if listening.connection in told or not wants(listening.filter, changed):
            continue
        if listening.connection is not None:
            told.add(listening.connection)
        listening.put((changed,))
