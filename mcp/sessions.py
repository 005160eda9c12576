"""What a session is, and the port its store fills.

A session is a handshake connection over HTTP: a row, so that any process serves it, also after a restart. It
belongs to the principal that opened it. Its id names it and is never authentication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from auth.ports import Also
from mcp.protocol.state import State
from telemetry.tracing import session_label


@dataclass(frozen=True, slots=True)
class Session:
    """One session. `id` is 256 random bits in URL-safe Base64; times are UTC and aware."""

    id: str
    state: State
    created: datetime
    last_seen: datetime

    @property
    def principal(self) -> str:
        """Who opened it."""
        return self.state.principal

    @property
    def label(self) -> str:
        """What may be shown of the id."""
        return session_label(self.id)


class SessionStore(Protocol):
    """Where sessions live. All methods are safe to call from any number of tasks at once."""

    async def open(self, session: Session, *, most: int) -> tuple[str, ...]:
        """Keep a new session; ends the principal's idlest ones so that at most `most` remain, and answers their ids."""

    async def find(self, id: str) -> Session | None:
        """The session with that id, or None when it never was, was ended or was swept."""

    async def save(self, id: str, state: State) -> None:
        """Store the changing part of the state (`initialized`, `log_level`); the last writer wins.

        Does nothing when the session is gone.
        """

    async def touch(self, seen: Mapping[str, datetime]) -> None:
        """Move `last_seen` of each session forward, never back."""

    async def end(self, id: str, *, also: Also | None = None) -> bool:
        """End a session; True when this call ended it. `also` is done in the same transaction, if so."""

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[Session], str | None]:
        """Sessions, the newest first, and the position to go on from (None: that was all).

        `after` is the position of an earlier page; one that no page gave raises ValueError.
        """

    async def labelled(self, label: str) -> Session | None:
        """The session with that label."""

    async def sweep(self, idle_since: datetime) -> int:
        """End every session last seen before that time; answers how many."""

    async def count(self) -> int:
        """How many sessions there are."""
