"""Several servers on one PostgreSQL: they start at once on an empty one, and any of them serves any session."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.support import postgres as support
from tests.support.raw_http import BOTH, INITIALIZE, INITIALIZED, PING
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

#: Seconds in which an end must be known everywhere.
HEARD = 2.0


@pytest.fixture(scope="module")
def postgres():
    with support.running() as server:
        yield server


@pytest.fixture(scope="module")
def replicas(postgres):
    """Three servers that were started at the same moment on an empty database, each with a home of its own."""
    with ExitStack() as stack:
        url, workspace = stack.enter_context(postgres.database()), stack.enter_context(folder())
        homes = [stack.enter_context(folder()) for _ in range(3)]
        launcher = unprivileged()

        def start(home):
            return stack.enter_context(serving(launcher, workspace, home, SUPERPI_DATABASE_URL=url))

        with ThreadPoolExecutor(3) as threads:
            yield list(threads.map(start, homes))


@pytest.fixture(scope="module")
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


def post(http, server, message, session=None):
    headers = {"accept": BOTH} | ({"mcp-session-id": session} if session else {})
    return http.post(server.url, json=message, headers=headers)


def test_a_session_opened_on_one_is_served_by_all(replicas, http):
    session = post(http, replicas[0], INITIALIZE).headers["mcp-session-id"]
    assert [post(http, server, INITIALIZED, session).status_code for server in replicas] == [202] * 3
    assert [post(http, server, PING, session).json()["result"] for server in replicas] == [{}] * 3


def test_a_session_that_is_ended_on_one_is_gone_on_the_others_in_time(replicas, http):
    session = post(http, replicas[0], INITIALIZE).headers["mcp-session-id"]
    assert [post(http, server, INITIALIZED, session).status_code for server in replicas] == [202] * 3
    http.delete(replicas[0].url, headers={"mcp-session-id": session})
    ended = time.monotonic()
    assert post(http, replicas[0], PING, session).status_code == 404
    for server in replicas[1:]:
        while post(http, server, PING, session).status_code != 404:
            assert time.monotonic() - ended < HEARD, "the end was not heard of"


def test_no_server_said_the_password(replicas, http):
    post(http, replicas[0], INITIALIZE)
    assert [support.PASSWORD in server.said for server in replicas] == [False] * 3
