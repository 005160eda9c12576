"""A token that is revoked, seen by the authenticators of two processes that share a database, over the real feed."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from auth.authenticator import Authenticator, Unauthenticated
from auth.caller import Caller
from auth.scopes import Scope
from auth.tokens import ISSUE_BYTES, Kind, issue
from gateway.store.changes import StoreChanges, record
from gateway.store.engine import open_database
from gateway.store.principals import SqlPrincipals
from gateway.store.tokens import SqlTokens

#: Seconds within which another process has to hear of a change.
ELSEWHERE = 2.0
NEVER_FORGOTTEN = timedelta(days=1).total_seconds()


@dataclass
class Replica:
    tokens: SqlTokens
    principals: SqlPrincipals
    authenticator: Authenticator
    heard: asyncio.Event

    async def refuses(self, *headers):
        """Wait until the caller is refused, at most as long as that may take; the reason."""
        async with asyncio.timeout(ELSEWHERE):
            while True:
                self.heard.clear()
                answer = await self.authenticator.authenticate(headers)
                if isinstance(answer, Unauthenticated):
                    return answer.reason
                await self.heard.wait()


@asynccontextmanager
async def replica(url):
    """What one process has. Its caches forget by news only, never by age."""
    database = open_database(url)
    feed = StoreChanges(database, url)
    heard = asyncio.Event()
    try:
        await feed.start()
        tokens = SqlTokens(database, record)
        now = lambda: datetime.now(UTC)  # noqa: E731
        authenticator = Authenticator(tokens, feed, now, negative_ttl=NEVER_FORGOTTEN)
        feed.listen(lambda _: heard.set())
        yield Replica(tokens, SqlPrincipals(database, record), authenticator, heard)
    finally:
        await feed.stop()
        await database.close()


def a_new_token():
    now = datetime.now(UTC)
    return issue(
        Kind.PAT, "local:alice", frozenset({Scope.WRITE}), by="cli", now=now, entropy=b"e" * (ISSUE_BYTES - 1) + b"1"
    )


async def created(replica, *others):
    """A token that every replica remembers as valid."""
    issued = a_new_token()
    assert await replica.tokens.create(issued.record, issued.minted.sha256, make_principal=True) is None
    for one in (replica, *others):
        caller = await one.authenticator.authenticate([f"Bearer {issued.minted.secret}"])
        assert isinstance(caller, Caller)
    return issued


async def test_a_revoked_token_is_refused_here_at_once_and_elsewhere_within_two_seconds(url):
    async with replica(url) as here, replica(url) as there:
        issued = await created(here, there)
        await here.tokens.revoke(issued.record.id, at=datetime.now(UTC), by="cli")
        assert here.authenticator.warm([f"Bearer {issued.minted.secret}"]) is None
        assert [await one.refuses(f"Bearer {issued.minted.secret}") for one in (here, there)] == ["revoked token"] * 2


async def test_a_disabled_principal_is_refused_here_at_once_and_elsewhere_within_two_seconds(url):
    async with replica(url) as here, replica(url) as there:
        issued = await created(here, there)
        await here.principals.disable("local:alice", at=datetime.now(UTC), by="cli")
        assert here.authenticator.warm([f"Bearer {issued.minted.secret}"]) is None
        assert [await one.refuses(f"Bearer {issued.minted.secret}") for one in (here, there)] == [
            "disabled principal"
        ] * 2


async def test_the_first_token_closes_the_door_of_the_other_process_too(url):
    async with replica(url) as here, replica(url) as there:
        assert [await one.authenticator.authenticate([]) for one in (here, there)] == [Caller()] * 2
        await created(here)
        assert here.authenticator.warm([]) is None
        assert [await one.refuses() for one in (here, there)] == ["no credential"] * 2
