"""Resources that a handshake session wants to hear of: the port their store fills, and what a process knows of them.

A stateless listener names them itself, and needs none of this. Whether a session may read what it subscribes to was
judged before it comes here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from auth.caller import Caller
from auth.changes import Change, Subject
from auth.ports import StoreAway
from mcp.faults import Fault
from mcp.hub import Hub, Listening
from mcp.protocol.notes import Filter

_log: Final = logging.getLogger("superpi.subscriptions")

#: Resources that a session is subscribed to at most.
MOST_SUBSCRIPTIONS: Final = 100
#: Bytes of a URI in UTF-8: what a database takes as a key.
LONGEST_URI: Final = 2048


def can_be_kept(uri: str) -> bool:
    """Whether every database takes that URI as a key."""
    if "\0" in uri or any("\ud800" <= character <= "\udfff" for character in uri):
        return False
    return len(uri.encode()) <= LONGEST_URI


class SubscriptionStore(Protocol):
    """Where subscriptions live. All methods are safe to call from any number of tasks at once.

    They end with their session, however it ends.
    """

    async def add(self, session: str, uri: str, *, most: int) -> bool:
        """Keep one, unless it is there already; False when the session has `most` others, or is gone.

        Raises ValueError for a URI that `can_be_kept` refuses.
        """

    async def remove(self, session: str, uri: str) -> bool:
        """End one; True when this call ended it."""

    async def of(self, session: str) -> frozenset[str]:
        """The URIs of a session, none when it is gone."""


class Subscriptions:
    """The subscriptions of handshake sessions as one process uses them: known without the store when warm.

    For use on one event loop. Open streams of a session, here and elsewhere, follow what it subscribes to.
    """

    def __init__(self, store: SubscriptionStore, hub: Hub, *, most: int = MOST_SUBSCRIPTIONS, warm: int = 1024) -> None:
        self._store = store
        self._hub = hub
        self._most = most
        self._most_warm = warm
        self._warm: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._changes = 0
        self._following: set[asyncio.Task[None]] = set()

    async def subscribe(self, session: str, uri: str) -> Fault | None:
        """Subscribe a session to a resource that it may read; None when it is. Raises StoreAway."""
        if not can_be_kept(uri):
            return Fault(f"A URI of more than {LONGEST_URI:,} bytes cannot be subscribed to.")
        if not await self._store.add(session, uri, most=self._most):
            return Fault(
                f"This session has {self._most} subscriptions already: end one with resources/unsubscribe first."
            )
        await self._changed(session)
        return None

    async def unsubscribe(self, session: str, uri: str) -> None:
        """End a subscription, if there is such a one (SUB-2). Raises StoreAway."""
        if can_be_kept(uri) and await self._store.remove(session, uri):
            await self._changed(session)

    async def of(self, session: str) -> frozenset[str]:
        """The URIs that a session is subscribed to. Raises StoreAway."""
        while (known := self._warm.get(session)) is None:
            changes = self._changes
            found = await self._store.of(session)
            # What was read before a change was heard may be what the change undid.
            if changes == self._changes:
                self._keep(session, found)
        self._warm.move_to_end(session)
        return known

    async def listen(self, caller: Caller, session: str, filter: Filter, *, until: datetime | None = None) -> Listening:
        """Listen on a stream of a session, for the lists of the filter and what the session subscribes to.

        While the store is away the lists are all.
        """
        listening = self._hub.listen(caller, replace(filter, uris=frozenset()), connection=session, until=until)
        try:
            await self._try_to_follow(session)
        except BaseException:
            listening.leave()
            raise
        return listening

    def hear(self, change: Change | None) -> None:
        """Something was changed, here or elsewhere; None means that anything may have been."""
        match change:
            case None:
                self._changes += 1
                self._warm.clear()
                for session in self._hub.connected():
                    self._follow_soon(session)
            case Change(Subject.SUBSCRIPTION, id):
                self._forget(id)
                if id in self._hub.connected():
                    self._follow_soon(id)
            case Change(Subject.SESSION, id):
                self._forget(id)

    def __len__(self) -> int:
        """How many sessions are in memory."""
        return len(self._warm)

    async def _changed(self, session: str) -> None:
        self._forget(session)
        if session in self._hub.connected():
            await self._follow(session)

    async def _follow(self, session: str) -> None:
        """Let the open streams of a session hear of what it subscribes to."""
        self._hub.refilter(session, await self.of(session))

    def _follow_soon(self, session: str) -> None:
        task = asyncio.get_running_loop().create_task(self._try_to_follow(session))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _try_to_follow(self, session: str) -> None:
        try:
            await self._follow(session)
        except StoreAway as error:
            # Tried again when the store is back, because everything is in doubt then.
            _log.info("subscriptions could not be read: %s", error)

    def _forget(self, session: str) -> None:
        self._changes += 1
        self._warm.pop(session, None)

    def _keep(self, session: str, uris: frozenset[str]) -> None:
        self._warm[session] = uris
        if len(self._warm) > self._most_warm:
            self._warm.popitem(last=False)
