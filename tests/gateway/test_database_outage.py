"""What a running server answers while its database accepts everything and says nothing (case C13c), and afterwards."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx
import pytest

from mcp.consent import ALWAYS, ONCE
from tests.support import postgres as support
from tests.support.asking import Asked, does, harness_settings, says, tool
from tests.support.mcp_stdio import McpStdio
from tests.support.raw_http import BOTH, INITIALIZE, INITIALIZED, PING, begin, events
from tests.support.relay import Link, linked
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, own, unprivileged

#: How long the database may take, in seconds, and the longest that a test may have to wait for what follows from that.
SECONDS = 1.0
BACK_WITHIN = 10.0
READS = {
    "resources/read": {"uri": "superpi://conversation/none/transcript"},
    "resources/list": {},
    "completion/complete": {
        "ref": {"type": "ref/resource", "uri": "superpi://conversation/{id}/transcript"},
        "argument": {"name": "id", "value": ""},
    },
}
TRY_AGAIN = "The server's database is away. Nothing was changed: try again"


@dataclass(frozen=True)
class Site:
    server: Server
    link: Link

    def post(self, message, session=None, accept=BOTH):
        headers = {"accept": accept} | ({"mcp-session-id": session} if session else {})
        return httpx.post(self.server.url, json=message, headers=headers, timeout=60, trust_env=False, verify=False)

    def session(self, version="2025-06-18"):
        return begin(self.post, version)

    def ready(self):
        return httpx.get(self.server.url.removesuffix("/mcp") + "/readyz", timeout=60, trust_env=False, verify=False)

    def becomes_ready(self):
        began = time.monotonic()
        while self.ready().status_code != 200:
            assert time.monotonic() - began < BACK_WITHIN, self.server.said


@contextmanager
def site(postgres, **settings):
    """A server that is ready, with a relay before its database. Callers need no token: nobody has to be looked up."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        link = stack.enter_context(linked(postgres.port))
        settings = {
            "SUPERPI_DATABASE_URL": url.replace(str(postgres.port), str(link.relay.port)),
            "SUPERPI_DATABASE_SECONDS": str(SECONDS),
            "SUPERPI_DATABASE_WAIT_SECONDS": str(SECONDS),
            "SUPERPI_ANONYMOUS": "always",
        } | settings
        workspace, home = stack.enter_context(folder()), stack.enter_context(folder())
        server = stack.enter_context(serving(unprivileged(), workspace, home, **settings))
        stack.callback(link.thaw)
        yield Site(server, link)


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def postgres():
    with support.running() as server:
        yield server


@pytest.fixture(scope="module")
def outage(postgres):
    """Everything in one long outage: the server, and sessions that were in use when it began."""
    with site(postgres) as here:
        sessions = {version: here.session(version) for version in ("2025-03-26", "2025-06-18")}
        here.link.freeze()
        yield here, sessions


def call(tool, id=1, **arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def read(id=1, method="resources/read"):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": READS[method]}


@pytest.mark.parametrize("method", READS)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_what_only_reads_the_database_is_a_503_that_may_be_sent_again(outage, method, accept):
    here, sessions = outage
    answer = here.post(read("one", method), sessions["2025-06-18"], accept)
    assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
    assert answer.json() == {"jsonrpc": "2.0", "id": "one", "error": {"code": 503, "message": TRY_AGAIN}}


def test_a_session_that_is_not_in_memory_cannot_be_found_which_is_no_404(outage):
    here, _ = outage
    for message, session in ((PING, "not-in-memory"), (INITIALIZE, None)):
        answer = here.post(message, session)
        assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (message["id"], 503)


def test_a_tool_is_run_and_its_answer_given(outage):
    here, sessions = outage
    answer = here.post(call("write", path="done", content="x"), sessions["2025-06-18"])
    assert (answer.status_code, answer.json()["result"].get("isError")) == (200, None)
    assert (here.server.workspace / "done").read_text() == "x"


def test_in_a_batch_only_what_needed_the_database_fails(outage):
    here, sessions = outage
    answer = here.post([read(1), PING | {"id": 2}], sessions["2025-03-26"])
    assert answer.status_code == 200
    assert answer.json() == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 503, "message": TRY_AGAIN}},
        {"jsonrpc": "2.0", "id": 2, "result": {}},
    ]


def test_a_batch_that_changed_something_is_answered_though_its_state_cannot_be_kept(outage):
    """A 503 would have the client send it again. Alone, the notification is one."""
    here, sessions = outage
    append = call("bash", command="echo once >> ran")
    answer = here.post([INITIALIZED, append], sessions["2025-03-26"])
    assert (answer.status_code, [part["id"] for part in answer.json()]) == (200, [1])
    assert (here.server.workspace / "ran").read_text() == "once\n"
    assert here.post(INITIALIZED, sessions["2025-06-18"]).status_code == 503


def test_readiness_says_what_is_the_matter_and_the_log_says_it_once(outage):
    here, _ = outage
    for _ in range(3):
        answer = here.ready()
        body = answer.json()
        assert (answer.status_code, body["status"], body["store"]) == (503, "the database is away", "unavailable")
        assert body["store_detail"] == "The database did not answer in time."
    assert here.server.said.count("not ready: ") == 1


def test_a_stream_that_has_begun_carries_the_error(postgres):
    """And once the database answers again, so does the server, for the same session."""
    with site(postgres, SUPERPI_HTTP__STREAM_AFTER="0.2", SUPERPI_HTTP__KEEP_ALIVE="0.2") as here:
        session = here.session()
        here.link.freeze()
        answer = here.post(read(7), session)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        assert events(answer) == [{"jsonrpc": "2.0", "id": 7, "error": {"code": 503, "message": TRY_AGAIN}}]
        here.link.thaw()
        here.becomes_ready()
        assert here.post(read(8), session).json()["error"]["code"] == -32002


def test_a_database_that_is_restarted_under_load_costs_no_500(stack):
    """Only 503 that say when to come again, and once it is back everything succeeds (case C13b)."""
    own = stack.enter_context(support.running())
    here = stack.enter_context(site(own))
    stop, answers = threading.Event(), []

    def load(session):
        path = f"written-{session}"
        while not stop.is_set():
            for message in (INITIALIZE, read(1, "resources/list"), call("write", path=path, content="x"), read(2)):
                answer = here.post(message, None if message is INITIALIZE else session)
                answers.append((message["method"], answer))

    with ThreadPoolExecutor(3) as threads:
        loads = [threads.submit(load, here.session()) for _ in range(3)]
        try:
            for act in (own.shut, own.restart, here.becomes_ready):
                act()
                seen = len(answers)
                while len(answers) < seen + 30 and not any(done.done() for done in loads):
                    stop.wait(0.01)
        finally:
            stop.set()
        assert [done.exception() for done in loads] == [None] * 3
    assert {answer.status_code for _, answer in answers} == {200, 503}
    refused = [answer for _, answer in answers if answer.status_code == 503]
    assert {answer.headers.get("retry-after", "").isdigit() for answer in refused} == {True}
    # A call that has begun is answered; it does not begin where its session has to be looked up.
    written = [answer.json() for method, answer in answers if (method, answer.status_code) == ("tools/call", 200)]
    assert [reply for reply in written if "error" in reply or reply["result"].get("isError")] == []
    session = here.session()
    assert {here.post(read(n, "resources/list"), session).status_code for n in range(20)} == {200}


def test_over_stdio_it_is_the_same_error(postgres):
    with ExitStack() as stack:
        home, url = stack.enter_context(folder()), stack.enter_context(postgres.database())
        link = stack.enter_context(linked(postgres.port))
        launcher = unprivileged()
        env = {
            **launcher.env,
            "HOME": str(home),
            "SUPERPI_WORKSPACE": str(home),
            "SUPERPI_DATABASE_URL": url.replace(str(postgres.port), str(link.relay.port)),
            "SUPERPI_DATABASE_SECONDS": str(SECONDS),
            "SUPERPI_DATABASE_WAIT_SECONDS": str(SECONDS),
        }
        client = stack.enter_context(McpStdio(launcher.superpi("stdio"), env, home, home / "log"))
        client.exchange(INITIALIZE)
        link.freeze()
        reply = client.exchange(read(3))
        link.thaw()
        assert reply == {"jsonrpc": "2.0", "id": 3, "error": {"code": 503, "message": TRY_AGAIN}}, json.dumps(reply)


@pytest.mark.requirement("SES-4", "SES-5")
def test_a_session_whose_delete_could_not_be_done_goes_on_and_is_ended_later(postgres):
    """A 503 says that nothing was changed: the session is not lost to the client for the rest of the outage."""
    with site(postgres) as here:
        session = here.session()

        def delete():
            return httpx.delete(here.server.url, headers={"mcp-session-id": session}, timeout=60, trust_env=False)

        here.link.freeze()
        answer = delete()
        assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
        assert here.post(PING, session).status_code == 200
        append = here.post(call("bash", command="echo still > here"), session)
        assert not append.json()["result"].get("isError"), append.text
        here.link.thaw()
        here.becomes_ready()
        assert here.post(PING, session).status_code == 200
        assert delete().status_code == 200
        assert here.post(PING, session).status_code == 404


@pytest.fixture(scope="module")
def careful(postgres):
    """A server with a harness that asks."""
    with folder() as harnesses:
        settings = harness_settings(harnesses)
        own(harnesses)
        with site(postgres, **settings) as here:
            yield here


@pytest.mark.parametrize(
    ("era", "person", "made"),
    [
        pytest.param("2025-11-25", says(ONCE), True, id="a session, and yes"),
        pytest.param("2025-11-25", says(ALWAYS), True, id="a session, and yes from now on"),
        pytest.param("2025-11-25", does("decline"), False, id="a session, and no"),
        pytest.param("2026-07-28", says(ONCE), True, id="stateless, and yes"),
        pytest.param("2026-07-28", does("decline"), False, id="stateless, and no"),
    ],
)
def test_a_person_is_asked_all_the_same(careful, era, person, made, request):
    """The answer comes to the process that waits. What was not kept is not taken for kept."""
    name = "".join(filter(str.isalnum, request.node.name))
    with httpx.Client(timeout=60, trust_env=False) as http:
        client = Asked(http, careful.server.url, person)
        if era != "2026-07-28":
            client.begin(era)
        careful.link.freeze()
        send = client.stateless if era == "2026-07-28" else client.call
        result = send(tool("bash", command=f"touch {name}"))["result"]
        careful.link.thaw()
        careful.becomes_ready()
    assert (len(client.questions), result.get("isError", False)) == (1, not made), result
    assert (careful.server.workspace / name).exists() == made
    if not made:
        assert "Nothing was changed" in result["content"][0]["text"]


def test_a_question_outlives_the_outage_that_it_was_asked_in(careful):
    """And its credential, which is looked at again once that can be done."""

    def once_it_is_back(question):
        careful.link.thaw()
        careful.becomes_ready()
        return says(ONCE)(question)

    with httpx.Client(timeout=60, trust_env=False) as http:
        client = Asked(http, careful.server.url, once_it_is_back).begin()
        careful.link.freeze()
        result = client.call(tool("bash", command="touch outlived"))["result"]
    assert not result.get("isError"), result
    assert (careful.server.workspace / "outlived").exists()
