"""The in-memory twins and the database, operation by operation: the same answers to the same questions."""

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from psycopg import sql

from gateway.store.changes import record
from gateway.store.conversations import SqlConversations
from gateway.store.engine import open_database
from gateway.store.grants import SqlGrants
from gateway.store.memory import MemoryConversations, MemorySessions
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from gateway.store.memory_grants import MemoryGrants
from gateway.store.memory_questions import MemoryQuestions
from gateway.store.memory_subscriptions import MemorySubscriptions
from gateway.store.principals import SqlPrincipals
from gateway.store.questions import SqlQuestions
from gateway.store.sessions import SqlSessions
from gateway.store.subscriptions import SqlSubscriptions
from gateway.store.tables import metadata
from gateway.store.tokens import SqlTokens
from mcp.conversations import Conversation
from mcp.grants import Grant, OfHarness, OfSession
from mcp.pending import Asked
from mcp.protocol.revisions import Revision
from mcp.protocol.state import LogLevel, State
from mcp.sessions import Session
from tests.support.auth_stores import a_token, digest

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
IDS = st.sampled_from(["a", "b", "B", "c", "d", "é", "🦀", "￿", "nul\0", "half\ud800"])
PRINCIPALS = st.sampled_from(["local:alice", "local:alice", "local:alice", "local:bob", "local:bob", "\0"])
MOMENTS = st.sampled_from([NOON + timedelta(microseconds=n) for n in range(-3, 20)] + [NOON.replace(tzinfo=None)])
JSON = st.dictionaries(st.text(max_size=2), st.text(max_size=2) | st.floats() | st.lists(st.none(), max_size=1))
STATES = st.builds(
    State,
    principal=PRINCIPALS,
    harness=st.sampled_from(["", "super-pi-code"]),
    revision=st.none() | st.sampled_from(Revision),
    client=JSON,
    capabilities=st.just({}),
    initialized=st.booleans(),
    log_level=st.none() | st.sampled_from(LogLevel),
)
SESSIONS = st.builds(Session, id=IDS, state=STATES, created=MOMENTS, last_seen=MOMENTS)
CONVERSATIONS = st.builds(
    Conversation,
    id=IDS,
    principal=PRINCIPALS,
    harness=st.just("h"),
    title=st.text(max_size=3),
    session=st.none() | IDS,
    created=MOMENTS,
    updated=MOMENTS,
)
GRANTS = st.builds(
    Grant,
    id=IDS,
    principal=PRINCIPALS,
    reach=st.builds(OfSession, IDS) | st.builds(OfHarness, IDS, MOMENTS),
    tool=st.sampled_from(["bash", "edit"]),
    subject=st.text(max_size=1) | st.just("x" * 5000),
    rule=st.sampled_from(["r", "r", "s"]),
    created=MOMENTS,
    token=st.none() | IDS,
)
TOKENS = st.builds(
    a_token, id=IDS, principal=PRINCIPALS, created=MOMENTS, expires=st.none() | MOMENTS, revoked=st.none() | MOMENTS
)
QUESTIONS = st.builds(Asked, id=IDS, session=IDS, principal=PRINCIPALS, created=MOMENTS)


async def outcome(call):
    """What a call came to: its value, or the kind of its refusal."""
    try:
        return "value", await call
    except (ValueError, LookupError) as refusal:
        return "refused", type(refusal)


class Pair(RuleBasedStateMachine):
    """Both stores live through the same history."""

    empty: Callable[[], str]

    def __init__(self):
        super().__init__()
        self.loop = asyncio.Runner()
        self.database = open_database(type(self).empty(), readers=1, writers=1)
        self.sessions = MemorySessions(), SqlSessions(self.database)
        self.conversations = MemoryConversations(), SqlConversations(self.database)
        twin = MemoryPrincipals()
        self.principals = twin, SqlPrincipals(self.database, record)
        self.tokens = MemoryTokens(twin), SqlTokens(self.database, record)
        self.grants = MemoryGrants(self.sessions[0], self.tokens[0]), SqlGrants(self.database)
        self.questions = MemoryQuestions(self.sessions[0]), SqlQuestions(self.database)
        self.subscriptions = MemorySubscriptions(self.sessions[0]), SqlSubscriptions(self.database)
        self.after = None

    def teardown(self):
        self.loop.run(self.database.close())
        self.loop.close()

    def agree(self, pair, method, *args, **kwargs):
        """Ask both and compare; answers what they said."""
        twin, rows = (self.loop.run(outcome(getattr(store, method)(*args, **kwargs))) for store in pair)
        assert twin == rows
        return twin

    @rule(session=SESSIONS, most=st.sampled_from([1, 3, 9, 9, 9]))
    def open(self, session, most):
        self.agree(self.sessions, "open", session, most=most)
        self.find_session(session.id)

    @rule(id=IDS, state=STATES)
    def save(self, id, state):
        self.agree(self.sessions, "save", id, state)
        self.find_session(id)

    @rule(seen=st.dictionaries(IDS, MOMENTS, max_size=3))
    def touch(self, seen):
        self.agree(self.sessions, "touch", seen)
        for id in seen:
            self.find_session(id)

    @rule(id=IDS)
    def end(self, id):
        self.agree(self.sessions, "end", id)

    @rule(idle_since=st.sampled_from([NOON, NOON + timedelta(microseconds=3), NOON.replace(tzinfo=None)]))
    def sweep(self, idle_since):
        self.agree(self.sessions, "sweep", idle_since)

    @rule(id=IDS)
    def find_session(self, id):
        self.agree(self.sessions, "find", id)

    @rule(conversation=CONVERSATIONS)
    def start(self, conversation):
        self.agree(self.conversations, "start", conversation)

    @rule(id=IDS, ts=MOMENTS, kind=st.sampled_from(["user", "tool", "assistant", "\0"]), body=JSON)
    def append(self, id, ts, kind, body):
        self.agree(self.conversations, "append", id, ts, kind, body)
        for principal in ("local:alice", "local:bob"):
            self.agree(self.conversations, "find", principal, id)

    @rule(principal=PRINCIPALS, id=IDS, since=st.integers(-1, 3), limit=st.integers(0, 3))
    def read(self, principal, id, since, limit):
        self.agree(self.conversations, "find", principal, id)
        self.agree(self.conversations, "entries", principal, id, since=since, limit=limit)

    @rule(principal=PRINCIPALS, session=st.none() | IDS, limit=st.integers(0, 3), go_on=st.booleans())
    def list(self, principal, session, limit, go_on):
        after = self.after if go_on else None
        kind, *page = self.agree(self.conversations, "list", principal, session=session, after=after, limit=limit)
        if kind == "value":
            self.after = page[0].after

    @rule(grant=GRANTS, most=st.sampled_from([1, 2, 9, 9, 9]))
    def allow(self, grant, most):
        self.agree(self.grants, "add", grant, most=most)

    @rule(principal=PRINCIPALS, session=st.none() | IDS, harness=IDS, now=MOMENTS)
    def cover(self, principal, session, harness, now):
        self.agree(self.grants, "covering", principal, session, harness, now)

    @rule(principal=st.none() | PRINCIPALS, id=IDS)
    def remove(self, principal, id):
        self.agree(self.grants, "remove", principal, id)

    @rule(token=TOKENS)
    def make_token(self, token):
        self.agree(self.tokens, "create", token, digest(token.id.encode("utf-8", "replace").hex()), make_principal=True)

    @rule(id=IDS, at=MOMENTS)
    def revoke_token(self, id, at):
        self.agree(self.tokens, "revoke", id, at=at, by="cli")

    @rule(id=IDS, token=TOKENS, ends=MOMENTS)
    def rotate_token(self, id, token, ends):
        sha256 = digest(token.id.encode("utf-8", "replace").hex())
        self.agree(self.tokens, "rotate", id, token, sha256, ends=ends)

    @rule(principal=PRINCIPALS, at=MOMENTS, back=st.booleans())
    def disable(self, principal, at, back):
        self.agree(self.principals, "disable", principal, at=at, by="cli")
        if back:
            self.agree(self.principals, "enable", principal)

    @rule(principal=st.none() | PRINCIPALS, now=st.none() | MOMENTS)
    def list_grants(self, principal, now):
        self.agree(self.grants, "list", principal, now=now)

    @rule(now=MOMENTS)
    def sweep_grants(self, now):
        self.agree(self.grants, "sweep", now)

    @rule(asked=QUESTIONS, most=st.sampled_from([1, 9, 9]), since=MOMENTS)
    def ask(self, asked, most, since):
        self.agree(self.questions, "ask", asked, most=most, since=since)

    @rule(session=IDS, principal=PRINCIPALS, id=IDS, body=JSON)
    def answer(self, session, principal, id, body):
        self.agree(self.questions, "answer", session, principal, id, body)

    @rule(method=st.sampled_from(["take", "close"]), id=IDS)
    def finish_question(self, method, id):
        self.agree(self.questions, method, id)

    @rule(before=MOMENTS)
    def sweep_questions(self, before):
        self.agree(self.questions, "sweep", before)

    @rule(session=IDS, uri=IDS, most=st.sampled_from([1, 9, 9]))
    def subscribe(self, session, uri, most):
        self.agree(self.subscriptions, "add", session, uri, most=most)

    @rule(session=IDS, uri=IDS)
    def unsubscribe(self, session, uri):
        self.agree(self.subscriptions, "remove", session, uri)
        self.agree(self.subscriptions, "of", session)

    @invariant()
    def as_many(self):
        self.agree(self.sessions, "count")
        for principal in ("local:alice", "local:bob"):
            self.agree(self.grants, "list", principal, limit=3)


@pytest.fixture
def empty_sqlite(tmp_path, template):
    names = (str(n) for n in count())
    return lambda: f"sqlite:///{shutil.copy(template, tmp_path / next(names))}"


@pytest.fixture
def empty_postgresql(postgres, migrated):
    def empty():
        for table in reversed(metadata.sorted_tables):
            postgres.run(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)), migrated)
        return postgres.url(migrated)

    return empty


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request):
    """The comparison on one product; how many histories it may take there is a matter of time."""
    empty, examples = request.getfixturevalue(f"empty_{request.param}"), {"sqlite": 25, "postgresql": 8}[request.param]
    return type("PairOnEmpty", (Pair,), {"empty": staticmethod(empty), "examples": examples})


@pytest.mark.timeout(400)  # a failure is worth the minutes that Hypothesis takes to shorten its history
def test_the_twin_and_the_database_give_the_same_answers(machine):
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine, settings=settings(max_examples=machine.examples, stateful_step_count=40, suppress_health_check=slow)
    )
