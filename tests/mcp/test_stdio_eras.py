"""Both eras over stdio: stateless requests, questions to the person, and what is told unasked, on a real process."""

import json
import os
import subprocess
import threading
import time
from contextlib import contextmanager
from queue import Empty, Queue

import pytest

from mcp.consent import ALWAYS, ONCE
from tests.support.asking import FORMS, HARNESS, does, harness_settings, says, tool
from tests.support.eras import meta
from tests.support.eras import request as stateless
from tests.support.raw_http import INITIALIZE, INITIALIZED
from tests.support.unprivileged import folder, own, unprivileged

REPLY_SECONDS = 30.0


class Host:
    """A host that reads whatever comes, whenever."""

    def __init__(self, process):
        self.process = process
        self.lines = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def say(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds=REPLY_SECONDS):
        return self.lines.get(timeout=seconds)

    def ask(self, message):
        self.say(message)
        return self.hear()


@pytest.fixture
def harnesses():
    with folder() as found:
        yield found


@pytest.fixture
def workspace():
    with folder() as found:
        yield found


@pytest.fixture
def host(workspace, harnesses):
    with folder() as home, running(workspace, home, harness_settings(harnesses), harnesses) as found:
        yield found


@contextmanager
def running(workspace, home, settings, harnesses):
    own(harnesses)
    launcher = unprivileged()
    environment = {
        **launcher.env,
        "HOME": str(home),
        "SUPERPI_WORKSPACE": str(workspace),
        "SUPERPI_DATA_DIR": str(home / "data"),
        **settings,
    }
    with (home / "stderr").open("ab") as stderr:
        process = subprocess.Popen(
            launcher.superpi("stdio"),
            cwd=workspace,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    try:
        yield Host(process)
        process.stdin.close()
        assert process.wait(15) == 0, (home / "stderr").read_text("utf-8")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def opened(host, capabilities=None):
    params = INITIALIZE["params"] | {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}}
    assert host.ask(INITIALIZE | {"params": params})["result"]["protocolVersion"] == "2025-11-25"
    host.say(INITIALIZED)


@pytest.mark.requirement("ERA-1", "ERA-19")
def test_both_eras_message_by_message(host):
    """ERA-19, STD-4: discovery binds the process to nothing, and a handshake does not either."""
    assert host.ask(stateless("server/discover", id="d"))["result"]["resultType"] == "complete"
    opened(host)
    assert "resultType" not in host.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]
    assert host.ask(stateless("tools/list", id=2))["result"]["resultType"] == "complete"
    assert host.ask({"jsonrpc": "2.0", "id": 3, "method": "ping"}) == {"jsonrpc": "2.0", "id": 3, "result": {}}
    assert host.ask(stateless("ping", id=4))["error"]["code"] == -32601


@pytest.mark.requirement("RQ-1")
def test_a_person_is_asked_over_the_same_pipe(host, workspace):
    """On the handshake: a request of the server's, the host's response, then the reply."""
    opened(host, FORMS)
    question = host.ask(tool("bash", command="touch asked"))
    assert question["method"] == "elicitation/create"
    host.say({"jsonrpc": "2.0", "id": question["id"]} | says(ALWAYS)(question))
    assert not host.hear()["result"].get("isError")
    assert not host.ask(tool("bash", id=2, command="touch asked"))["result"].get("isError")
    refused = host.ask(tool("bash", id=3, command="touch other"))
    host.say({"jsonrpc": "2.0", "id": refused["id"]} | does("decline")(refused))
    assert host.hear()["result"]["isError"]
    assert (workspace / "asked").exists()
    assert not (workspace / "other").exists()


@pytest.mark.requirement("STD-4", "RPC-15", "MRTR-1")
def test_a_person_is_asked_in_rounds(host, workspace):
    """On the stateless revision: nothing waits, and the request comes again."""
    call = tool("bash", command="touch rounds")["params"]
    claim = meta(capabilities=FORMS)
    asked = host.ask(stateless("tools/call", call, claim=claim))["result"]
    answers = {key: says(ONCE)(question)["result"] for key, question in asked["inputRequests"].items()}
    again = call | {"requestState": asked["requestState"], "inputResponses": answers}
    assert not host.ask(stateless("tools/call", again, id=2, claim=claim))["result"].get("isError")
    assert (workspace / "rounds").exists()


@pytest.mark.requirement("STD-6", "CAN-2")
def test_a_stateless_request_is_withdrawn_by_its_id(host):
    """STD-6: nothing is sent for it any more."""
    host.say(stateless("tools/call", tool("bash", command="sleep 20")["params"], id="slow"))
    host.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
    assert host.ask(stateless("tools/list", id="next"))["id"] == "next"
    with pytest.raises(Empty):
        host.hear(1.0)


@pytest.mark.requirement("STD-5", "SUB-1", "SUB-5")
def test_changes_are_told_unasked_and_to_whoever_listens(host, harnesses):
    """STD-5: a subscription's are tagged with it, the connection's own are not."""
    opened(host)
    acknowledged = host.ask(stateless("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, id="L"))
    tag = {"io.modelcontextprotocol/subscriptionId": "L"}
    assert acknowledged["params"] == {"notifications": {"promptsListChanged": True}, "_meta": tag}
    time.sleep(0.1)
    (harnesses / "careful.md").write_text(HARNESS.replace("title: Careful", "title: Otherwise"), "utf-8")
    told = [host.hear(), host.hear()]
    assert {message["method"] for message in told} == {"notifications/prompts/list_changed"}
    assert sorted("params" in message for message in told) == [False, True]


@pytest.mark.requirement("PRG-1")
def test_progress_comes_before_the_reply(host):
    """PRG-1."""
    call = tool("bash", command="sleep 2.6; echo done")["params"] | {"_meta": meta() | {"progressToken": 9}}
    note = host.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert (note["method"], note["params"]["progressToken"]) == ("notifications/progress", 9)
    assert host.hear()["result"]["content"][0]["text"] == "done"
