"""In-memory twins of the stores, for stdio without a database and for tests. Never loads SQLAlchemy.

They accept and refuse exactly what the database does (`tests/gateway/store/test_*_contract.py`). One event loop
uses them; no method awaits, so each is atomic in it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from auth.changes import Change, Subject
from auth.ports import Also
from gateway.store import values
from mcp.conversations import Conversation, ConversationPage, Entry
from mcp.protocol.state import State
from mcp.sessions import Session


def to_nobody(_: Change) -> None:
    """For changes that nobody waits for."""


class MemorySessions:
    """`SessionStore` in a dictionary."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._watchers: list[Callable[[str], None]] = []

    def watch(self, hear: Callable[[str], None]) -> None:
        """Have `hear` called with the id of each session that ends: what a foreign key does in a database."""
        self._watchers.append(hear)

    def holds(self, id: str, principal: str | None = None) -> bool:
        """Whether there is a session with that id, and the principal's where one is given."""
        session = self._sessions.get(id)
        return session is not None and principal in {None, session.principal}

    async def open(self, session: Session, *, most: int) -> tuple[str, ...]:
        """The ids in their order. Raises ValueError when the id is taken."""
        state = session.state
        values.require_storable(session.id, state.principal, state.harness)
        kept = _copy(replace(session, created=values.utc(session.created), last_seen=values.utc(session.last_seen)))
        own = [other for other in self._sessions.values() if other.principal == session.principal]
        own.sort(key=lambda other: (other.last_seen, other.id), reverse=True)
        idlest = {other.id for other in own[max(most - 1, 0) :]}
        if session.id in self._sessions.keys() - idlest:
            raise ValueError("the session id is taken")
        for id in idlest:
            self._remove(id)
        self._sessions[session.id] = kept
        return tuple(sorted(idlest))

    async def find(self, id: str) -> Session | None:
        """A copy: what a caller does to it stays with the caller."""
        session = self._sessions.get(id)
        return None if session is None else _copy(session)

    async def save(self, id: str, state: State) -> None:
        """Only `initialized` and `log_level`."""
        if session := self._sessions.get(id):
            changed = replace(session.state, initialized=state.initialized, log_level=state.log_level)
            self._sessions[id] = replace(session, state=changed)

    async def touch(self, seen: Mapping[str, datetime]) -> None:
        """All or none: a naive time refuses the whole call."""
        for id, moment in {id: values.utc(moment) for id, moment in seen.items()}.items():
            session = self._sessions.get(id)
            if session is not None and session.last_seen < moment:
                self._sessions[id] = replace(session, last_seen=moment)

    async def end(self, id: str, *, also: Also | None = None) -> bool:
        """True when it was there."""
        if found := id in self._sessions:
            self._remove(id)
            if also is not None:
                also(None)
        return found

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[Session], str | None]:
        """Copies."""
        place = None if after is None else values.parse_position(after)
        found = [session for session in self._sessions.values() if principal in {None, session.principal}]
        found.sort(key=lambda session: (session.created, session.label), reverse=True)
        found = [session for session in found if place is None or (session.created, session.label) < place]
        items = [_copy(session) for session in found[:limit]]
        more = len(found) > limit and items
        return items, values.position(items[-1].created, items[-1].label) if more else None

    async def labelled(self, label: str) -> Session | None:
        """A copy."""
        return next((_copy(session) for session in self._sessions.values() if session.label == label), None)

    async def sweep(self, idle_since: datetime) -> int:
        """Strictly before that time."""
        limit = values.utc(idle_since)
        idle = [id for id, session in self._sessions.items() if session.last_seen < limit]
        for id in idle:
            self._remove(id)
        return len(idle)

    async def count(self) -> int:
        """The size of the dictionary."""
        return len(self._sessions)

    def _remove(self, id: str) -> None:
        del self._sessions[id]
        for hear in self._watchers:
            hear(id)


def _copy(session: Session) -> Session:
    """Through JSON, as a database does: tuples become lists and nothing is shared."""
    state = session.state
    client, capabilities = (values.load(values.dump(part)) for part in (state.client, state.capabilities))
    return replace(session, state=replace(state, client=client, capabilities=capabilities))


@dataclass(slots=True)
class _Kept:
    """A conversation and its entries, their bodies as JSON text."""

    conversation: Conversation
    entries: list[tuple[datetime, str, str]] = field(default_factory=list)

    def current(self) -> Conversation:
        return replace(self.conversation, entries=len(self.entries))


class MemoryConversations:
    """`ConversationStore` in a dictionary. `tell` hears of each change once it is made."""

    def __init__(self, tell: Callable[[Change], None] = to_nobody) -> None:
        self._tell = tell
        self._kept: dict[str, _Kept] = {}

    async def start(self, conversation: Conversation) -> None:
        """Times are kept in UTC."""
        c = conversation
        values.require_storable(c.id, c.principal, c.harness, c.title, c.session)
        started = replace(c, created=values.utc(c.created), updated=values.utc(c.updated))
        if c.id in self._kept:
            raise ValueError("the conversation id is taken")
        self._kept[c.id] = _Kept(started)
        self._tell(Change(Subject.CONVERSATIONS, c.principal))

    async def append(self, id: str, ts: datetime, kind: str, body: Mapping[str, Any]) -> int:
        """`updated` moves forward, never back."""
        values.require_storable(kind)
        moment = values.utc(ts)
        if (kept := self._kept.get(id)) is None:
            raise LookupError("no such conversation")
        kept.entries.append((moment, kind, values.dump(body)))
        kept.conversation = replace(kept.conversation, updated=max(kept.conversation.updated, moment))
        self._tell(Change(Subject.CONVERSATION, id))
        return len(kept.entries)

    async def list(
        self, principal: str, *, session: str | None = None, after: str | None = None, limit: int = 100
    ) -> ConversationPage:
        """Sorted on each call."""
        before = None if after is None else values.parse_position(after)
        found = [
            kept.current()
            for kept in self._kept.values()
            if kept.conversation.principal == principal and session in {None, kept.conversation.session}
        ]
        found.sort(key=_place, reverse=True)
        return values.page([item for item in found if before is None or _place(item) < before], limit)

    async def find(self, principal: str, id: str) -> Conversation | None:
        """Another's is None."""
        kept = self._kept.get(id)
        return None if kept is None or kept.conversation.principal != principal else kept.current()

    async def entries(self, principal: str, id: str, *, since: int = 0, limit: int = 1000) -> tuple[Entry, ...] | None:
        """Bodies are decoded anew on each call."""
        if await self.find(principal, id) is None:
            return None
        start = max(since, 0)
        rows = self._kept[id].entries[start : start + limit]
        return tuple(Entry(start + n, ts, kind, values.load(body)) for n, (ts, kind, body) in enumerate(rows, 1))


def _place(conversation: Conversation) -> tuple[datetime, str]:
    return conversation.created, conversation.id


class MemoryKeys:
    """Signing keys of one process."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}

    async def signing_key(self, purpose: str) -> bytes:
        """The key of that purpose, 256 random bits, made on first use."""
        return self._keys.setdefault(purpose, secrets.token_bytes(32))
