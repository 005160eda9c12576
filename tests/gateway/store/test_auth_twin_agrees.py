"""The twins of principals and tokens, and the database, operation by operation: the same answers and the same news."""

import asyncio
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from auth.scopes import Scope
from gateway.store.engine import open_database
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from gateway.store.principals import SqlPrincipals
from gateway.store.tokens import SqlTokens
from tests.support.auth_stores import NOON, a_principal, a_token, digest

IDS = st.sampled_from(["a", "b", "B", "é", "🦀", "\uffff", "nul\0", "half\ud800"])
PRINCIPALS = st.sampled_from(["local:alice", "local:alice", "local:bob", "\0"])
ACTORS = st.sampled_from(["cli", "cli", "cli", "\ud800"])
MOMENTS = st.sampled_from([NOON + timedelta(microseconds=n) for n in range(-3, 6)] * 2 + [NOON.replace(tzinfo=None)])
PRINCIPAL_RECORDS = st.builds(
    a_principal, id=PRINCIPALS, created=MOMENTS, created_by=ACTORS, disabled=st.none() | MOMENTS
)
TOKENS = st.builds(
    a_token,
    id=IDS,
    principal=PRINCIPALS,
    name=st.text(max_size=2),
    scopes=st.frozensets(st.sampled_from(Scope)),
    created=MOMENTS,
    created_by=ACTORS,
    expires=st.none() | MOMENTS,
    revoked=st.none() | st.none() | MOMENTS,
)
SECRETS = st.sampled_from([digest(text) for text in "abcdefgh"])


async def outcome(call):
    """What a call came to: its value, or the kind of its refusal."""
    try:
        return "value", await call
    except ValueError as refusal:
        return "refused", type(refusal)


class Pair(RuleBasedStateMachine):
    """Both stores live through the same history."""

    template: Path

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.Runner()
        self.database = open_database(f"sqlite:///{shutil.copy(self.template, self.folder.name)}", readers=1)
        self.news = [], []

        def record(_connection, change):
            self.news[1].append(change)

        twin = MemoryPrincipals(self.news[0].append)
        self.principals = twin, SqlPrincipals(self.database, record)
        self.tokens = MemoryTokens(twin, self.news[0].append), SqlTokens(self.database, record)
        self.after = None

    def teardown(self):
        self.loop.run(self.database.close())
        self.loop.close()
        self.folder.cleanup()

    def agree(self, pair, method, *args, **kwargs):
        """Ask both and compare; answers what they said. News of what was undone does not count."""
        for told in self.news:
            told.clear()
        twin, rows = (self.loop.run(outcome(getattr(store, method)(*args, **kwargs))) for store in pair)
        assert twin == rows
        if twin[0] == "value":
            assert self.news[0] == self.news[1]
        return twin

    @rule(principal=PRINCIPAL_RECORDS)
    def make(self, principal):
        self.agree(self.principals, "create", principal)

    @rule(id=PRINCIPALS, at=MOMENTS, by=ACTORS)
    def disable(self, id, at, by):
        self.agree(self.principals, "disable", id, at=at, by=by)

    @rule(id=PRINCIPALS)
    def enable(self, id):
        self.agree(self.principals, "enable", id)

    @rule(after=st.none() | PRINCIPALS, limit=st.integers(0, 3))
    def list_principals(self, after, limit):
        self.agree(self.principals, "list", after=after, limit=limit)

    @rule(token=TOKENS, sha256=SECRETS, make_principal=st.booleans())
    def create(self, token, sha256, make_principal):
        self.agree(self.tokens, "create", token, sha256, make_principal=make_principal)
        self.look(token.id, sha256)

    @rule(id=IDS, successor=TOKENS, sha256=SECRETS, ends=MOMENTS)
    def rotate(self, id, successor, sha256, ends):
        self.agree(self.tokens, "rotate", id, successor, sha256, ends=ends)
        self.look(id, sha256)

    @rule(id=IDS, at=MOMENTS, by=ACTORS)
    def revoke(self, id, at, by):
        self.agree(self.tokens, "revoke", id, at=at, by=by)

    @rule(used=st.dictionaries(IDS, MOMENTS, max_size=3))
    def touch(self, used):
        self.agree(self.tokens, "touch", used)

    @rule(id=IDS, sha256=SECRETS)
    def look(self, id, sha256):
        self.agree(self.tokens, "get", id)
        self.agree(self.tokens, "lookup", sha256)
        self.agree(self.tokens, "ever_any")

    @rule(principal=st.none() | PRINCIPALS, limit=st.integers(0, 3), go_on=st.booleans())
    def list_tokens(self, principal, limit, go_on):
        after = self.after if go_on else None
        kind, *page = self.agree(self.tokens, "list", principal=principal, after=after, limit=limit)
        if kind == "value":
            self.after = page[0].after


@pytest.fixture
def machine(template):
    return type("PairOnTemplate", (Pair,), {"template": template})


@pytest.mark.timeout(400)  # a failure is worth the minutes that Hypothesis takes to shorten its history
def test_the_twins_and_the_database_give_the_same_answers(machine):
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine, settings=settings(max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=slow)
    )
