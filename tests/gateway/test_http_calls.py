"""Calls that take their time, over HTTP: streams, cancellation, harnesses and what surrounds them."""

import threading
import time

import httpx
import pytest

from tests.support.eras import request as stateless
from tests.support.raw_http import INITIALIZE, PING, bash, begin, events

# --- calls that run


@pytest.mark.requirement("HL-5", "HL-7")
def test_a_long_call_becomes_a_stream_with_comments(post, session):
    """And its answer is its last event."""
    answer = post(bash("sleep 1; echo done"), session=session)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.text.count(": keep-alive") >= 2
    assert [event["result"]["content"][0]["text"].strip() for event in events(answer)] == ["done"]


def test_a_long_call_stays_json_for_a_client_that_takes_only_that(post, session):
    """However long it takes."""
    answer = post(bash("sleep 1; echo done"), "application/json", session)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


def in_the_background(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()

    def join():
        thread.join(20)
        return results[0]

    return join


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def test_calls_in_flight_with_equal_ids_each_get_their_own_answer(post, session):
    """claude.ai numbers every request 1."""
    joins = [in_the_background(lambda n=n: post(bash(f"sleep 0.2; echo {n}"), session=session)) for n in range(3)]
    texts = [events(answer) or [answer.json()] for answer in (join() for join in joins)]
    assert [text[0]["result"]["content"][0]["text"].strip() for text in texts] == ["0", "1", "2"]


@pytest.mark.requirement("CAN-2", "ERR-11", "HL-4")
def test_a_cancelled_call_ends_its_processes_and_its_exchange(server, post, session):
    """Cases 30 and 39: the tree dies, no later write, and exactly one answer."""
    started, late = server.workspace / "started", server.workspace / "late"
    join = in_the_background(lambda: post(bash("touch started; sleep 3; touch late", id="long"), session=session))
    wait_for(started.exists)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}}
    assert post(cancel, session=session).status_code == 202
    answer = join()
    reply = (events(answer) or [answer.json()])[0]
    assert (reply["id"], reply["error"]["code"]) == ("long", -32800)
    again = post(bash("sleep 3; echo waited", id=2), session=session)
    assert "waited" in again.text
    assert not late.exists()


@pytest.mark.requirement("CAN-1")
def test_a_cancellation_reaches_only_its_own_session(server, post, session):
    """Ids are chosen by clients."""
    started = server.workspace / "other-started"
    join = in_the_background(lambda: post(bash("touch other-started; sleep 0.5; echo mine", id=1), session=session))
    wait_for(started.exists)
    other = begin(post, "2025-06-18")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    post(cancel, session=other)
    assert "mine" in join().text


def test_delete_cancels_what_runs_in_the_session(server, http, post, session):
    """The call ends with its session."""
    started = server.workspace / "deleted-started"
    join = in_the_background(lambda: post(bash("touch deleted-started; sleep 10"), session=session))
    wait_for(started.exists)
    assert http.delete(server.url, headers={"mcp-session-id": session}).status_code == 200
    answer = join()
    assert (events(answer) or [answer.json()])[0]["error"]["code"] == -32800


@pytest.mark.requirement("HL-9", "ERA-13")
def test_a_client_that_leaves_does_not_cancel_its_call(server, post, session):
    """HL-9: on the handshake revisions a closed connection is no cancellation."""
    finished = server.workspace / "finished"
    with pytest.raises(httpx.ReadTimeout), httpx.Client(timeout=0.2, trust_env=False) as impatient:
        impatient.post(
            server.url,
            json=bash("sleep 1; touch finished"),
            headers={"accept": "application/json", "mcp-session-id": session},
        )
    wait_for(finished.exists)


# --- harness and probes


def test_a_session_may_choose_its_harness(post):
    """The planner cannot write; the default can."""
    write = {"name": "write", "arguments": {"path": "by-harness.txt", "content": "x"}}
    message = PING | {"method": "tools/call", "params": write}
    planner = post(INITIALIZE, query="?harness=super-pi-planner").headers["mcp-session-id"]
    refused = post(message, session=planner).json()["result"]
    assert refused["isError"]
    assert refused["_meta"]["io.superpi/refusal"]["tool"] == "write"
    assert "isError" not in post(message, session=begin(post, "2025-06-18")).json()["result"]


THERE_ARE = "There are super-pi-code, super-pi-assistant, super-pi-librarian, super-pi-planner."
GIVE_ONE = "Give one harness in the query, as ?harness=<id>, or none."


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?harness=nope", f"There is no harness with that id. {THERE_ARE}"),
        ("?harness=", GIVE_ONE),
        ("?harness=super-pi-code&harness=super-pi-planner", GIVE_ONE),
    ],
)
@pytest.mark.parametrize("message", [INITIALIZE, stateless("tools/list")], ids=["a session", "a stateless request"])
def test_a_harness_that_is_not_one_is_400_and_says_which_there_are(post, message, query, words):
    """With a JSON-RPC body that keeps the id; no session is opened."""
    answer = post(message, query=query)
    assert answer.status_code == 400
    assert answer.json() == {"jsonrpc": "2.0", "id": message["id"], "error": {"code": 400, "message": words}}
    assert "mcp-session-id" not in answer.headers


def test_probes_answer_any_host_and_show_the_sandbox(server, http):
    """Kubelets use pod addresses."""
    base = server.url.removesuffix("/mcp")
    headers = {"host": "10.1.2.3:8000"}
    assert http.get(base + "/livez", headers=headers).json() == {"status": "ok"}
    ready = http.get(base + "/readyz", headers=headers)
    assert (ready.status_code, ready.json()["status"], ready.json()["store"]) == (200, "ok", "ok")
    assert ready.json()["sandbox"] in ("bubblewrap", "landlock")


def test_every_answer_carries_its_request_id_and_is_not_stored(post, session):
    """A given id is kept when it is harmless, else replaced."""
    answer = post(PING, session=session, x_request_id="abc-1")
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert post(PING, session=session, x_request_id="a b").headers["x-request-id"] != "a b"


def test_the_requested_version_is_logged_at_debug(server, post):
    """The mission's first method; a hostile one stays on its line."""
    begin(post, "1999-12-31\nfake")
    line = next(line for line in server.said.splitlines() if "1999-12-31" in line)
    assert " DEBUG " in line
    assert "agreed on 2025-11-25" in line
