"""Whatever two principals do, no store shows one of them anything of the other, or lets one end what is the other's.

Random operations on sessions as the HTTP side finds them, conversations, grants, audit rows and tokens. With those of
`tests/e2e/test_two_principals.py` they are more than the 10,000 that are promised.
"""

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.store.audit import SqlAudit
from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.grants import SqlGrants
from gateway.store.memory import MemoryConversations, MemorySessions
from gateway.store.memory_audit import MemoryAudit
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from gateway.store.memory_grants import MemoryGrants
from gateway.store.sessions import SqlSessions
from gateway.store.tokens import SqlTokens
from mcp.conversations import Conversation
from mcp.grants import Grant, OfHarness, OfSession
from mcp.live import Sessions
from mcp.protocol.state import State
from mcp.resources import complete_conversation, list_conversations
from telemetry.audit import AuditRecord
from tests.support.auth_stores import a_token, digest
from tests.support.two_principals import Run, Seen, without

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
OPERATIONS = 3600


@dataclass
class World:
    """The stores, and what two people do on them. Each operation asks as `me` and judges what comes back."""

    run: Run
    sessions: Any
    conversations: Any
    grants: Any
    audit: Any
    tokens: Any

    @property
    def now(self):
        return NOON + timedelta(milliseconds=len(self.run.done))

    async def ask(self, me, other, question: Callable[[str], Awaitable[Any]], *kinds):
        """Ask with an id of mine, or with one of the other's, which must be answered as one that never was."""
        mine, theirs = self.run.one_of(me, *kinds), self.run.one_of(other, *kinds)
        if mine is not None and self.run.often(0.5):
            self.run.judge(me, other, await question(mine))
        elif theirs is not None:
            nobodys = self.run.nobodys()
            foreign, unknown = str(await question(theirs)), str(await question(nobodys))
            self.run.judge(me, other, foreign, theirs)
            self.run.judge(me, other, unknown)
            self.run.alike(without(foreign, theirs), without(unknown, nobodys))

    async def open_session(self, me, other):
        state = State(principal=me.principal, harness="h", client={"name": me.mark})
        session = await self.sessions.open(state)
        me.ids.add(me.keep("session", session.id))
        self.run.judge(me, other, session)

    async def use_session(self, me, other):
        async def use(id):
            return await self.sessions.find(id, me.principal)

        await self.ask(me, other, use, "session")

    async def end_session(self, me, other):
        """Of the other's nothing may end."""

        async def end(id):
            session = await self.sessions.find(id, me.principal)
            return session is not None and await self.sessions.end(session)

        theirs = self.run.one_of(other, "session")
        before = theirs and await self.sessions.find(theirs, other.principal)
        await self.ask(me, other, end, "session")
        if before and await self.sessions.find(theirs, other.principal) is None:
            self.run.fail(f"{me.principal} ended a session of {other.principal}")

    async def start_conversation(self, me, other):
        id = me.keep("conversation", self.run.name(me, "conversation"))
        session = self.run.one_of(me, "session")
        started = Conversation(id, me.principal, "h", me.mark, session, self.now, self.now)
        self.run.judge(me, other, await self.conversations.start(started))

    async def append_entry(self, me, other):
        if id := self.run.one_of(me, "conversation"):
            self.run.judge(me, other, await self.conversations.append(id, self.now, "user", {"text": me.mark}))

    async def read_conversation(self, me, other):
        async def read(id):
            return await self.conversations.find(me.principal, id), await self.conversations.entries(me.principal, id)

        await self.ask(me, other, read, "conversation")

    async def list_conversations(self, me, other):
        """In any session, from any position."""
        session = self.run.anybodys(me, other, "session")
        after = self.run.dice.choice([self.run.one_of(me, "page"), self.run.one_of(other, "page"), "1.x", None])
        page = await self.conversations.list(me.principal, session=session, after=after, limit=4)
        self.run.judge(me, other, page)
        if page.after:
            me.keep("page", page.after)

    async def list_resources(self, me, other):
        async def listed(session):
            return await list_conversations(self.conversations, me.principal, session=session, after=None, limit=4)

        await self.ask(me, other, listed, "session")

    async def complete(self, me, other):
        async def completed(prefix):
            return await complete_conversation(self.conversations, me.principal, prefix)

        if self.run.often(0.8):
            await self.ask(me, other, completed, "conversation")
        else:
            self.run.judge(me, other, await completed(""))

    async def add_grant(self, me, other):
        """Of a session of anybody's, or of a harness, through a token of anybody's or none."""
        session, token = (self.run.anybodys(me, other, kind) for kind in ("session", "token"))
        reach = OfHarness("h", self.now + timedelta(hours=1)) if session is None else OfSession(session)
        subject = self.run.name(me, "subject")
        grant = Grant(self.run.name(me, "grant"), me.principal, reach, "bash", subject, "r", self.now, token)
        kept = await self.grants.add(grant)
        if kept is not None and token in other.all("token"):
            self.run.fail(f"{me.principal} was granted something through a token of {other.principal}")
        self.run.judge(me, other, kept, session, token)
        if kept is not None:
            me.keep("session grant" if session else "grant", kept.id)

    async def cover(self, me, other):
        async def covering(session):
            return await self.grants.covering(me.principal, session, "h", self.now)

        await self.ask(me, other, covering, "session")

    async def list_grants(self, me, other):
        after = self.run.dice.choice([self.run.one_of(me, "grants"), self.run.one_of(other, "grants"), None])
        page = await self.grants.list(me.principal, after=after, limit=4)
        self.run.judge(me, other, page)
        if page.after:
            me.keep("grants", page.after)

    async def remove_grant(self, me, other):
        async def remove(id):
            removed = await self.grants.remove(me.principal, id)
            if removed and id in me.all("grant"):
                me.made["grant"].remove(id)
            return removed

        await self.ask(me, other, remove, "grant", "session grant")

    async def write_audit(self, me, other):
        id = me.keep("row", self.run.name(me, "row"))
        row = AuditRecord(id, me.principal, "tools/call", me.mark, "allowed")
        self.run.judge(me, other, await self.audit.write([row]))

    async def page_audit(self, me, other):
        after = self.run.dice.choice([None, self.run.dice.randrange(OPERATIONS)])
        newest_first = self.run.often(0.5)
        rows = await self.audit.page(principal=me.principal, after=after, newest_first=newest_first, limit=4)
        self.run.judge(me, other, rows)

    async def make_token(self, me, other):
        id = me.keep("token", self.run.name(me, "token"))
        token = a_token(id, me.principal, name=me.mark, created=self.now)
        self.run.judge(me, other, await self.tokens.create(token, digest(id), make_principal=True))

    async def list_tokens(self, me, other):
        after = self.run.dice.choice([self.run.one_of(me, "tokens"), self.run.one_of(other, "tokens"), None])
        page = await self.tokens.list(principal=me.principal, after=after, limit=4)
        self.run.judge(me, other, page)
        if page.after:
            me.keep("tokens", page.after)

    async def is_whole(self, me):
        """Everything that they made and did not end themselves is still theirs, and nothing more."""
        listed = (await self.conversations.list(me.principal, limit=OPERATIONS)).items
        assert {item.id for item in listed} == set(me.all("conversation"))
        grants = (await self.grants.list(me.principal, limit=OPERATIONS)).items
        assert {item.id for item in grants if isinstance(item.reach, OfHarness)} == set(me.all("grant"))
        rows = await self.audit.page(principal=me.principal, limit=OPERATIONS)
        assert [row.record.request_id for row in rows] == me.all("row")
        tokens = (await self.tokens.list(principal=me.principal, limit=OPERATIONS)).items
        assert {item.id for item in tokens} == set(me.all("token"))


ALL = [
    World.open_session,
    World.use_session,
    World.end_session,
    World.start_conversation,
    World.append_entry,
    World.read_conversation,
    World.list_conversations,
    World.list_resources,
    World.complete,
    World.add_grant,
    World.cover,
    World.list_grants,
    World.remove_grant,
    World.write_audit,
    World.page_audit,
    World.make_token,
    World.list_tokens,
]


async def lives(world):
    """Let the two do as many operations as the run has."""
    while not world.run.is_over():
        operation, me, other = world.run.turn(ALL)
        await operation(world, me, other)


def found_by(store, run):
    """Sessions as the HTTP side finds them; few are kept warm, so that most are asked for."""
    return Sessions(store, lambda: NOON + timedelta(milliseconds=len(run.done)), idle=timedelta(days=1), most=6, warm=3)


def in_memory(run):
    sessions = MemorySessions()
    tokens = MemoryTokens(MemoryPrincipals())
    stores = MemoryConversations(), MemoryGrants(sessions, tokens), MemoryAudit(), tokens
    return World(run, found_by(sessions, run), *stores)


@asynccontextmanager
async def on_database(run, url):
    database = open_database(url)
    stores = SqlConversations(database), SqlGrants(database), SqlAudit(database)
    tokens = SqlTokens(database, lambda _connection, _change: None)
    yield World(run, found_by(SqlSessions(database), run), *stores, tokens)
    await database.close()


async def test_neither_ever_sees_or_ends_anything_of_the_other(url):
    run = Run(OPERATIONS)
    async with on_database(run, url) as world:
        await lives(world)
        await world.is_whole(run.alice)
        await world.is_whole(run.bob)
    assert {operation.__name__ for operation in ALL} == set(run.done)
    assert run.own_seen > OPERATIONS / 5  # each sees their own, so there was something to see


class Confused:
    """A store, or what stands before it, of which one method takes each principal for the other."""

    def __init__(self, store, method):
        self._store, self._method = store, method

    def __getattr__(self, name):
        whole = getattr(self._store, name)
        if name != self._method:
            return whole
        other = {"local:alice": "local:bob", "local:bob": "local:alice"}

        def swapped(value):
            return other.get(value, value) if isinstance(value, str) else value

        return lambda *given, **named: whole(*map(swapped, given), **{key: swapped(named[key]) for key in named})


@pytest.mark.parametrize(
    ("noun", "method"),
    [
        ("sessions", "find"),
        ("conversations", "find"),
        ("conversations", "entries"),
        ("conversations", "list"),
        ("grants", "covering"),
        ("grants", "list"),
        ("grants", "remove"),
        ("audit", "page"),
        ("tokens", "list"),
    ],
)
async def test_a_store_that_confuses_the_two_is_found_out(noun, method):
    """What the property is worth: each method that takes a principal, on the twins."""
    run = Run(4000)
    world = in_memory(run)
    setattr(world, noun, Confused(getattr(world, noun), method))
    with pytest.raises(Seen):
        await lives(world)
