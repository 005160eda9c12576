"""What replicas share behind load balancers: files that are edited, outputs that are kept, and streams."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from mcp.consent import ONCE
from tests.cluster.load import ACCEPT
from tests.support.asking import Asked, tool
from tests.support.raw_http import INITIALIZE, bash

pytestmark = pytest.mark.xdist_group("cluster")


class Client:
    """One that begins a session through a balancer, and calls tools over it."""

    def __init__(self, url, capabilities=None, revision="2025-11-25"):
        self.url = url
        self.http = httpx.Client(timeout=60, trust_env=False)
        self.session = ""
        params = INITIALIZE["params"] | {"protocolVersion": revision, "capabilities": capabilities or {}}
        self.session = self.post(INITIALIZE | {"params": params}).headers["mcp-session-id"]

    def post(self, message):
        headers = ACCEPT | ({"mcp-session-id": self.session} if self.session else {})
        return self.http.post(self.url, json=message, headers=headers)

    def tool(self, name, **arguments):
        params = {"name": name, "arguments": arguments}
        answer = self.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


def test_edits_of_one_file_through_several_replicas_are_all_there(cluster, balancer):
    """The lock holds between processes: each edit reads what the one before it wrote."""
    file = f"edited-{balancer.name}"
    clients, edits = 4, 8
    marks = [f"<{client}.{edit}>" for client in range(clients) for edit in range(edits)]
    (cluster.workspace / file).write_text("".join(f"{mark}\n" for mark in marks), "utf-8")
    (cluster.workspace / file).chmod(0o666)

    def work(client):
        one = Client(balancer.url)
        with closing(one.http):
            for edit in range(edits):
                change = {"oldText": f"<{client}.{edit}>", "newText": f"[{client}.{edit}]"}
                result = one.tool("edit", path=file, edits=[change])
                assert not result.get("isError"), result

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(work, range(clients)))
    text = (cluster.workspace / file).read_text("utf-8")
    assert text == "".join(f"[{mark[1:-1]}]\n" for mark in marks)


def test_the_full_output_of_a_command_is_read_through_another_replica(cluster):
    """It is kept in the workspace, which they share."""
    here, there, _ = cluster.servers
    client = Client(here.url)
    with closing(client.http):
        result = client.tool("bash", command="seq 1 20000; echo canary-end")
        path = result["structuredContent"]["spool"]
        client.url = there.url
        shown = client.tool("read", path=path, offset=20000)
    assert "canary-end" in str(shown), shown


def test_progress_comes_before_the_end_through_either(cluster, balancer):
    """A balancer that kept an event stream back would tell of nothing until the call is over."""
    client = Client(balancer.url)
    gate = cluster.workspace / f"gate-{balancer.name}"
    call = bash(f"until [ -e {gate.name} ]; do sleep 0.1; done")
    call["params"]["_meta"] = {"progressToken": "p"}
    headers = ACCEPT | {"mcp-session-id": client.session}
    with closing(client.http), client.http.stream("POST", balancer.url, json=call, headers=headers) as answer:
        told_of = []
        for line in answer.iter_lines():
            if line.startswith("data:"):
                told_of.append(json.loads(line[5:]))
                gate.touch()
    assert told_of[0].get("method") == "notifications/progress"
    assert told_of[-1]["id"] == 1


def test_large_answers_to_questions_arrive_at_whichever_replica_asked(cluster, balancer):
    """Each answer is a POST of its own, of a mebibyte, and lands on any of the three."""

    def person(_question):
        return {"result": {"action": "accept", "content": {"answer": ONCE}, "_meta": {"padding": "x" * (1 << 20)}}}

    with httpx.Client(timeout=60, trust_env=False) as http:
        client = Asked(http, balancer.url, person).begin(query="?harness=careful")
        for number in range(6):
            name = f"allowed-{balancer.name}-{number}"
            result = client.call(tool("bash", id=number, command=f"touch {name}"))["result"]
            assert not result.get("isError"), result
            assert (cluster.workspace / name).exists()
    assert len(client.questions) == 6
