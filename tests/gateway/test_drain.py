"""The way out (case C16): readiness first, 503 for what is new, an answer for what runs, and an end in time."""

import os
import signal
import threading
from contextlib import suppress

import httpx
import pytest

from tests.support.raw_http import INITIALIZE, bash
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged


@pytest.fixture
def server():
    settings = {"SUPERPI_DRAIN_DELAY_SECONDS": "1.5"}
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


def post(server, message, session=None):
    headers = {"accept": "application/json"} | ({"mcp-session-id": session} if session else {})
    return httpx.post(server.url, json=message, headers=headers, timeout=30, trust_env=False)


def begun(server, session, command):
    """A call under way: wait for its answer by calling what this gives."""
    answers = []

    def ask():
        with suppress(httpx.HTTPError):  # the connection may end with the server
            answers.append(post(server, bash(f"touch begun; {command}"), session))

    call = threading.Thread(target=ask)
    call.start()
    while not (server.workspace / "begun").exists():
        assert call.is_alive()
        call.join(0.02)

    def answer():
        call.join(20)
        return answers[0] if answers else None

    return answer


def test_a_draining_server_refuses_what_is_new_and_finishes_what_runs(server):
    """So that a client which retries elsewhere loses no call."""
    session = post(server, INITIALIZE).headers["mcp-session-id"]
    answer = begun(server, session, "sleep 1; echo done")
    os.kill(server.pid, signal.SIGTERM)
    ready = server.url.removesuffix("/mcp") + "/readyz"
    while httpx.get(ready, trust_env=False).status_code == 200:
        pass
    for refused in (post(server, INITIALIZE), post(server, bash("echo late"), session)):
        assert refused.status_code == 503
        assert refused.headers["retry-after"].isdigit()
        assert refused.headers["connection"] == "close"
        assert refused.json()["id"] in (0, 1)
    assert answer().json()["result"]["structuredContent"]["output"] == "done\n"
    assert server.process.wait(20) == 0


def test_a_second_signal_ends_at_once(server):
    """Whoever insists is not kept waiting, and nothing of the call is left."""
    session = post(server, INITIALIZE).headers["mcp-session-id"]
    answer = begun(server, session, "sleep 30; touch late")
    os.kill(server.pid, signal.SIGTERM)
    while "finishing running calls" not in server.said:
        assert server.process.poll() is None
    os.kill(server.pid, signal.SIGTERM)
    server.process.wait(15)
    answer()
    assert not (server.workspace / "late").exists()
