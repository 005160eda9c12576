"""What is told beside a reply, on a real server: progress, changes, and what becomes of a client that leaves."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.support.asking import HARNESS, Asked, harness_settings, tool
from tests.support.eras import meta
from tests.support.raw_http import BOTH
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Seconds in which a change must be told: two looks at the folder, and a busy machine.
TOLD = 10.0
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@pytest.fixture(scope="module")
def harnesses():
    with folder() as found:
        yield found


@pytest.fixture(scope="module")
def server(harnesses):
    with folder() as workspace, folder() as home:
        settings = harness_settings(harnesses) | {"SUPERPI_HTTP__KEEP_ALIVE": "0.5"}
        own(harnesses)
        with serving(unprivileged(), workspace, home, **settings) as running:
            yield running


@pytest.fixture
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


def stateless(method, params=None, id=1, **claim):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta() | claim} | (params or {})}


def headers(message):
    found = {"accept": BOTH, "mcp-protocol-version": MODERN, "mcp-method": message["method"]}
    name = message["params"].get("name")
    return found if name is None else found | {"mcp-name": name}


@contextmanager
def listening(http, url, wanted, id="L", **claim):
    """The messages of an open subscription, as they come."""
    message = stateless("subscriptions/listen", {"notifications": wanted}, id, **claim)
    with http.stream("POST", url, json=message, headers=headers(message)) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        yield (json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:"))


def rewrite(harnesses, title):
    (harnesses / "careful.md").write_text(HARNESS.replace("title: Careful", f"title: {title}"), "utf-8")


def until(true, seconds=TOLD):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.requirement("PRG-1", "PRG-4", "HM-6", "HL-6")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_call_that_takes_long_tells_that_it_runs(server, http, era):
    """PRG-1, PRG-4: on its own stream, rising, with its own token, before the reply."""
    call = tool("bash", command="sleep 4.5; echo done")
    sent = headers(call)
    if era == LEGACY:
        client = Asked(http, server.url).begin(LEGACY)
        call["params"]["_meta"] = {"progressToken": "t"}
        sent = {"accept": BOTH, "mcp-session-id": client.session}
    else:
        call["params"]["_meta"] = meta() | {"progressToken": "t"}
    answer = http.post(server.url, json=call, headers=sent)
    *notes, reply = [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]
    told = [note["params"]["progress"] for note in notes]
    assert [note["params"]["progressToken"] for note in notes] == ["t"] * len(told)
    assert (len(told) >= 2, told) == (True, sorted(set(told)))
    assert reply["result"]["content"][0]["text"] == "done"


@pytest.mark.requirement("PRG-1")
def test_a_client_that_does_not_ask_hears_nothing_but_the_reply(server, http):
    """The answer stays plain JSON."""
    call = tool("bash", command="sleep 2.5; echo done")
    call["params"]["_meta"] = meta()
    assert http.post(server.url, json=call, headers=headers(call)).headers["content-type"] == "application/json"


@pytest.mark.requirement("HM-10", "ERA-13", "CAN-2")
def test_a_stateless_client_that_leaves_withdraws_its_request(server, http):
    """HM-10: what ran for it is stopped, and does nothing later."""
    call = tool("bash", command="echo > begun; sleep 3; echo > later")
    call["params"]["_meta"] = meta()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(server.url, json=call, headers=headers(call), timeout=1.0, trust_env=False)
    assert (server.workspace / "begun").exists()
    time.sleep(3)
    assert not (server.workspace / "later").exists()


@pytest.mark.requirement("HL-9", "ERA-13")
def test_a_session_that_loses_its_connection_withdraws_nothing(server, http):
    """HL-9."""
    client = Asked(http, server.url).begin(LEGACY)
    sent = {"accept": BOTH, "mcp-session-id": client.session}
    call = tool("bash", command="sleep 1.5; echo > went-on")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(server.url, json=call, headers=sent, timeout=0.5, trust_env=False)
    until((server.workspace / "went-on").exists)


@pytest.mark.requirement("SUB-3", "SUB-4", "SUB-5", "SUB-9", "CA-5")
def test_a_listener_hears_of_what_it_asked_for(server, http, harnesses):
    """SUB-3 to SUB-5: the acknowledgement first, then the change of a team's harnesses, each with its tag."""
    wanted = {"promptsListChanged": True, "toolsListChanged": True, "resourceSubscriptions": ["superpi://no/such"]}
    tag = {"io.modelcontextprotocol/subscriptionId": "L"}
    with listening(http, server.url, wanted) as messages:
        first = next(messages)
        assert (first["method"], first["params"]) == (
            "notifications/subscriptions/acknowledged",
            {"notifications": {"promptsListChanged": True}, "_meta": tag},
        )
        rewrite(harnesses, "Otherwise")
        assert next(messages) == {
            "jsonrpc": "2.0",
            "method": "notifications/prompts/list_changed",
            "params": {"_meta": tag},
        }
    listed = stateless("prompts/list")
    prompts = http.post(server.url, json=listed, headers=headers(listed)).json()["result"]["prompts"]
    assert "Otherwise" in [prompt["title"] for prompt in prompts]


@pytest.mark.requirement("SUB-3", "SUB-7", "SUB-8", "PRG-4", "LG-3")
def test_a_client_may_listen_twice_and_each_stream_is_its_own(server, http, harnesses):
    """Nothing is told that was not asked for, also where a subscription asks for progress and the whole log."""
    claim = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"}
    both = {"promptsListChanged": True, "resourceSubscriptions": ["superpi://workspace/tools"]}
    with (
        listening(http, server.url, both, "A", **claim) as first,
        listening(http, server.url, {"resourceSubscriptions": ["superpi://workspace/tools"]}, "B", **claim) as second,
    ):
        assert [next(one)["method"] for one in (first, second)] == ["notifications/subscriptions/acknowledged"] * 2
        rewrite(harnesses, "Twice")
        heard = [next(first), next(first), next(second)]
    updated = "notifications/resources/updated"
    assert [note["method"] for note in heard] == ["notifications/prompts/list_changed", updated, updated]
    assert [note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for note in heard] == ["A", "A", "B"]


@pytest.mark.requirement("SUB-1")
def test_an_open_stream_of_a_session_hears_of_changes_too(server, http, harnesses):
    """The only way there: its GET is refused. The note has no tag, as it belongs to no request."""
    client = Asked(http, server.url).begin(LEGACY)
    call = tool("bash", command="sleep 8")
    call["params"]["_meta"] = {"progressToken": 1}
    heard = threading.Thread(target=lambda: client.call(call))
    heard.start()
    until(lambda: client.notes)
    rewrite(harnesses, "Changed again")
    heard.join(TOLD + 10)
    assert {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"} in client.notes


def test_a_broken_harness_changes_nothing(server, http, harnesses):
    """The log says so, once."""
    (harnesses / "broken.md").write_text("no front matter", "utf-8")
    until(lambda: "broken.md" in server.said)
    listed = stateless("prompts/list")
    prompts = http.post(server.url, json=listed, headers=headers(listed)).json()["result"]["prompts"]
    assert "careful" in [prompt["name"] for prompt in prompts]
    (harnesses / "broken.md").unlink()


@pytest.mark.requirement("HM-15")
def test_who_cannot_take_a_stream_cannot_listen(server, http):
    """HM-15."""
    message = stateless("subscriptions/listen", {"notifications": {}})
    answer = http.post(server.url, json=message, headers=headers(message) | {"accept": "application/json"})
    assert (answer.status_code, answer.json()["id"]) == (406, 1)


@pytest.mark.requirement("SUB-2", "RS-4", "RS-7")
def test_a_session_subscribes_to_what_it_may_read(server, http):
    """SUB-2, RS-4."""
    client = Asked(http, server.url).begin(LEGACY)

    def ask(method, uri):
        return client.call({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}})

    assert ask("resources/subscribe", "superpi://workspace/tools")["result"] == {}
    assert ask("resources/unsubscribe", "superpi://workspace/tools")["result"] == {}
    assert ask("resources/unsubscribe", "superpi://workspace/tools")["result"] == {}
    assert ask("resources/subscribe", "superpi://conversation/other/transcript")["error"]["code"] == -32002


@pytest.mark.requirement("LG-2")
def test_a_session_says_how_much_it_wants_to_hear(server, http):
    """LG-2."""
    client = Asked(http, server.url).begin(LEGACY)

    def set_level(level):
        return client.call({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": level}})

    assert set_level("debug")["result"] == {}
    assert set_level("loud")["error"]["code"] == -32602


@pytest.mark.requirement("SUB-6", "CAN-5", "HM-7")
def test_a_listener_is_told_when_the_server_stops(http):
    """SUB-6: the result of its request, then the end; so that it listens elsewhere."""
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home) as server:
        with listening(http, server.url, {"promptsListChanged": True}, id=5) as messages:
            next(messages)
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            last = next(messages)
            assert list(messages) == []
        stopping.join()
    assert (last["id"], last["result"]["resultType"]) == (5, "complete")
    assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 5
