"""What a session is told while its streams are on several replicas: each message goes out on one of them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from mcp.consent import ONCE
from tests.support import postgres as support
from tests.support.asking import HARNESS, Asked, harness_settings, says, tool
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Seconds in which a change must be told: two looks at the folder, and a busy machine.
TOLD = 15.0
LOADOUT = "superpi://workspace/tools"
UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": LOADOUT}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}


@pytest.fixture(scope="module")
def replicas():
    """Two servers on one PostgreSQL, one workspace and one folder of harnesses; and both folders."""
    with support.running() as postgres, postgres.database() as url, ExitStack() as stack:
        workspace, harnesses = stack.enter_context(folder()), stack.enter_context(folder())
        settings = harness_settings(harnesses) | {"SUPERPI_DATABASE_URL": url, "SUPERPI_HTTP__STREAM_AFTER": "0.2"}
        own(harnesses)
        launcher = unprivileged()
        homes = [stack.enter_context(folder()) for _ in range(2)]

        def start(home):
            return stack.enter_context(serving(launcher, workspace, home, **settings))

        with ThreadPoolExecutor(2) as threads:
            servers = list(threads.map(start, homes))
        yield *servers, workspace, harnesses


@pytest.fixture
def http():
    with httpx.Client(timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def session(replicas, http):
    """A session that both servers serve; a client of it for each."""
    here, there, *_ = replicas
    first = Asked(http, here.url, says(ONCE)).begin()
    return first, Asked(http, there.url, says(ONCE), session=first.session)


@contextmanager
def streaming(client, id, workspace, gate):
    """A stream of that client, of a call that runs until the block is left; then its reply is in the list.

    The person is asked first, because what a loop does cannot be told beforehand.
    """
    call, replies = tool("bash", id=id, command=f"until [ -e {gate} ]; do sleep 0.1; done", timeout=60), []
    call["params"]["_meta"] = {"progressToken": id}
    thread = threading.Thread(target=lambda: replies.append(client.call(call)))
    thread.start()
    try:
        until(lambda: client.notes)
        yield replies
    finally:
        (workspace / gate).touch()
        thread.join(60)


def until(condition):
    deadline = time.monotonic() + TOLD
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def rewrite(harnesses, title):
    (harnesses / "careful.md").write_text(HARNESS.replace("Careful", title, 1), "utf-8")


def titles(client):
    """Of the prompts that its server has; by then that server has told of them."""
    listed = client.call({"jsonrpc": "2.0", "id": 9, "method": "prompts/list"})
    return [prompt["title"] for prompt in listed["result"]["prompts"]]


def unasked(client):
    """What it was told beside the progress of its call."""
    return [note for note in client.notes if note["method"] != "notifications/progress"]


@pytest.mark.requirement("HL-12", "HL-6")
def test_what_belongs_to_a_call_goes_out_on_its_stream_alone(replicas, session):
    """With a stream of the same session on either server."""
    here, there = session
    workspace = replicas[2]
    with streaming(here, 1, workspace, "one") as first, streaming(there, 2, workspace, "two") as second:
        until(lambda: min(len(client.notes) for client in session) > 1)
    tokens = [{note["params"]["progressToken"] for note in client.notes} for client in session]
    assert (tokens, [len(client.questions) for client in session]) == ([{1}, {2}], [1, 1])
    assert [[reply["id"] for reply in replies] for replies in (first, second)] == [[1], [2]]
    assert not any(reply["result"].get("isError") for reply in first + second)


@pytest.mark.requirement("HL-12", "SUB-1")
def test_a_change_is_told_once_on_the_stream_that_the_session_has_on_either(replicas, session):
    """Also of what it subscribed to on the other."""
    here, there = session
    workspace, harnesses = replicas[2:]
    subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": LOADOUT}}
    assert here.call(subscribe)["result"] == {}
    for client, title in ((there, "Once"), (here, "Twice")):
        with streaming(client, 2, workspace, title):
            rewrite(harnesses, title)
            until(lambda title=title: all(title in titles(one) for one in session))
            until(lambda client=client: len(unasked(client)) >= 2)
    assert [unasked(client) for client in session] == [[CHANGED, UPDATED]] * 2
