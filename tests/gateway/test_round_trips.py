"""A warm request of a caller with a token makes no round trip to the database, on both databases.

The whole way in one process: the edge, the router, the engine and the tools, over a real database. What is written
behind, the rows of the audit log, is counted apart.
"""

import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
import pytest

from auth.scopes import Scope
from auth.tokens import ISSUE_BYTES, Kind, issue
from gateway.app import create_app
from gateway.bootstrap import Services, build
from gateway.settings import load
from telemetry.audit import BATCH, INTERVAL
from tests.support.doors import DATABASES
from tests.support.postgres import running
from tests.support.raw_http import INITIALIZE, INITIALIZED, PING
from tests.support.relay import relaying
from tests.support.statements import answering, statements_of

READ = PING | {"method": "tools/call", "params": {"name": "read", "arguments": {"path": "a.txt"}}}
CALLS = {"ping": PING, "tools/list": PING | {"method": "tools/list"}, "tools/call read": READ}
#: How often each is made when it is warm.
TIMES = 20


@dataclass(frozen=True, slots=True)
class Client:
    """A caller with a token and a session, in the process of the server."""

    services: Services
    http: httpx.AsyncClient
    headers: dict

    async def post(self, message):
        with answering():
            answer = await self.http.post("/mcp", json=message, headers=self.headers)
        assert answer.is_success, answer.text
        return answer

    async def call_all(self):
        """Each of the calls once."""
        for message in CALLS.values():
            answer = (await self.post(message)).json()
            assert "isError" not in answer["result"], answer


@asynccontextmanager
async def client_of(tmp_path, **settings):
    """A client that has its session and has made no call yet."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("a\n")
    services = await build(load(workspace=(tmp_path / "workspace",), data_dir=tmp_path / "data", **settings))
    try:
        await services.opening.once()
        transport = httpx.ASGITransport(create_app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            headers = {"accept": "application/json", "authorization": f"Bearer {await token(services)}"}
            client = Client(services, http, headers)
            headers["mcp-session-id"] = (await client.post(INITIALIZE)).headers["mcp-session-id"]
            await client.post(INITIALIZED)
            yield client
    finally:
        await services.close()


async def token(services):
    """A new token of Alice's, as it is shown."""
    entropy = secrets.token_bytes(ISSUE_BYTES)
    now = datetime.now(UTC)
    issued = issue(Kind.PAT, "local:alice", frozenset({Scope.WRITE}), by="cli", now=now, entropy=entropy)
    assert await services.tokens.create(issued.record, issued.minted.sha256, make_principal=True) is None
    return issued.minted.secret


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@pytest.fixture(params=DATABASES)
async def client(request, tmp_path):
    if request.param == "sqlite":
        async with client_of(tmp_path) as client:
            yield client
        return
    with request.getfixturevalue("postgres").database() as url:
        async with client_of(tmp_path, database_url=url) as client:
            yield client


def of_requests(seen):
    return [statement.text for statement in seen if statement.of_request]


async def test_warm_calls_ask_the_database_nothing(client):
    await client.call_all()
    with statements_of(client.services.database) as seen:
        for _ in range(TIMES):
            await client.call_all()
    assert of_requests(seen) == []


async def test_what_is_not_warm_is_counted(client):
    """The same count, where there is something to count: a new token, an id of no session."""
    client.headers["authorization"] = f"Bearer {await token(client.services)}"
    with statements_of(client.services.database) as seen:
        await client.post(PING)
        assert len(of_requests(seen)) == 1
        client.headers["mcp-session-id"] = "x" * 43
        with pytest.raises(AssertionError, match="no such session"):
            await client.post(PING)
        assert len(of_requests(seen)) == 2
        await client.post(INITIALIZE)
        assert any(text.startswith("INSERT INTO session") for text in of_requests(seen))


async def test_the_audit_rows_of_warm_calls_are_written_behind_in_few_batches(client):
    """A row for each call, but a transaction for each interval at most."""
    rows = 1
    await client.call_all()
    with statements_of(client.services.database) as seen:
        began = time.monotonic()
        while len(batches(seen)) < 3:
            assert time.monotonic() - began < 30, "nothing was written"
            await client.call_all()
            rows += 1
        seconds = time.monotonic() - began
        written = batches(seen)
    assert of_requests(seen) == []
    assert len(written) <= seconds / INTERVAL + rows / BATCH + 1
    assert rows > 2 * len(written)


def batches(seen):
    """The writes of audit rows, which no request waited for."""
    return [statement for statement in seen if statement.text.startswith("INSERT INTO audit")]


async def test_warm_calls_are_answered_while_nothing_comes_through_to_the_database(postgres, tmp_path):
    """At the socket, where no statement is missed: the relay takes the bytes and carries none."""
    async with relaying(postgres.port) as relay:
        with postgres.database() as url:
            behind = url.replace(f":{postgres.port}/", f":{relay.port}/")
            async with client_of(tmp_path, database_url=behind) as client:
                await client.call_all()
                relay.freeze()
                try:
                    for _ in range(TIMES):
                        await client.call_all()
                finally:
                    relay.thaw()
