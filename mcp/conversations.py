"""Conversations: entries in order, and the port their store fills.

A conversation belongs to one principal. Every read goes through that principal: another's conversation and
one that never was give the same None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. `session` is the id of the session that started it, None when none did.

    `entries` is how many entries it has; times are UTC and aware.
    """

    id: str
    principal: str
    harness: str
    title: str
    session: str | None
    created: datetime
    updated: datetime
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a transcript: `seq` counts from 1 without gaps, `body` holds the fields of its `kind`."""

    seq: int
    ts: datetime
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversations, newest first, and the position to go on from (None: that was all)."""

    items: tuple[Conversation, ...]
    after: str | None


class ConversationStore(Protocol):
    """Where conversations live. All methods are safe to call from any number of tasks at once."""

    async def start(self, conversation: Conversation) -> None:
        """Keep a new conversation without entries. Raises ValueError when the id is taken."""

    async def append(self, id: str, ts: datetime, kind: str, body: Mapping[str, Any]) -> int:
        """Add an entry with the next `seq` and answer it. Raises LookupError for an unknown conversation."""

    async def list(
        self, principal: str, *, session: str | None = None, after: str | None = None, limit: int = 100
    ) -> ConversationPage:
        """The principal's conversations, newest first; only those that `session` started when it is given.

        `after` is the `after` of an earlier page; one that no page gave raises ValueError.
        """

    async def find(self, principal: str, id: str) -> Conversation | None:
        """The principal's conversation with that id."""

    async def entries(self, principal: str, id: str, *, since: int = 0, limit: int = 1000) -> tuple[Entry, ...] | None:
        """Entries with `seq` above `since`, in order; None when `find` would answer None."""
