"""Calls that run on one replica while their client ends them at another."""

import threading
import time
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from mcp.consent import ONCE
from tests.support import postgres as support
from tests.support.asking import Asked, harness_settings, says, silence, tool
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Seconds in which it is felt: two readings of the changes, the end of a process, and a busy machine.
FELT = 20.0
CALL = 7


@pytest.fixture(scope="module")
def replicas():
    """Two servers on one PostgreSQL and one workspace, and the workspace."""
    with support.running() as postgres, postgres.database() as url, ExitStack() as stack:
        workspace, harnesses = stack.enter_context(folder()), stack.enter_context(folder())
        settings = harness_settings(harnesses) | {"SUPERPI_DATABASE_URL": url}
        own(harnesses)
        servers = []
        for _ in range(2):
            home = stack.enter_context(folder())
            servers.append(stack.enter_context(serving(unprivileged(), workspace, home, **settings)))
        yield *servers, workspace


@pytest.fixture
def http():
    with httpx.Client(timeout=60, trust_env=False) as client:
        yield client


def until(condition):
    deadline = time.monotonic() + FELT
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


@contextmanager
def running(client, command):
    """A command that runs until the block is left, and where its reply comes."""
    replies = []

    def call():
        replies.append(client.call(tool("bash", id=CALL, command=command, timeout=300)))

    thread = threading.Thread(target=call)
    thread.start()
    yield replies
    thread.join(FELT)
    assert not thread.is_alive(), "the call goes on"


def withdraw(http, url, client):
    gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL}}
    assert http.post(url, json=gone, headers=client._headers()).status_code == 202


def end(http, url, client):
    assert http.delete(url, headers={"mcp-session-id": client.session}).status_code == 200


@pytest.mark.requirement("CAN-1", "CAN-2", "SES-4")
@pytest.mark.parametrize("act", [withdraw, end], ids=["withdrawn", "ended"])
def test_a_command_ends_where_it_runs(replicas, http, act):
    """Case C05: its client said so to the other server; the command is stopped and writes nothing more."""
    here, there, workspace = replicas
    client = Asked(http, here.url, says(ONCE)).begin()
    begun, ended = workspace / f"{act.__name__}-begun", workspace / f"{act.__name__}-ended"
    with running(client, f"echo > {begun.name}; sleep 60; echo > {ended.name}") as replies:
        until(begun.exists)
        act(http, there.url, client)
    assert not ended.exists()
    assert "result" not in replies[0], replies


@pytest.mark.requirement("CAN-1", "CAN-2", "SES-4")
@pytest.mark.parametrize("act", [withdraw, end], ids=["withdrawn", "ended"])
def test_a_question_is_withdrawn_where_it_waits(replicas, http, act):
    """A person has not answered yet; the call changes nothing, and its question is taken back."""
    here, there, workspace = replicas
    client = Asked(http, here.url, silence).begin()
    wanted = f"{act.__name__}-wanted"
    with running(client, f"touch {wanted}"):
        until(lambda: client.questions)
        act(http, there.url, client)
    assert not (workspace / wanted).exists()
    gone = [note["params"]["requestId"] for note in client.notes if note["method"] == "notifications/cancelled"]
    assert gone == [client.questions[0]["id"]]
