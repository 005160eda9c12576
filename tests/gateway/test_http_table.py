"""The endpoint's table of requests and answers, on a real server process."""

import json
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

BOTH = "application/json, text/event-stream"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "t", "version": "1"}, "capabilities": {}},
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWER = {"jsonrpc": "2.0", "id": 5, "result": {}}
#: How long a call may take on the server under test before its answer becomes a stream, in seconds.
STREAM_AFTER = 0.3


def bash(command, id=1, timeout=20):
    arguments = {"command": command, "timeout": timeout}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "bash", "arguments": arguments}}


@pytest.fixture(scope="module")
def server():
    settings = {
        "SUPERPI_HTTP__STREAM_AFTER": str(STREAM_AFTER),
        "SUPERPI_HTTP__KEEP_ALIVE": "0.1",
        "SUPERPI_HTTP__BODY_BYTES": "100000",
        "SUPERPI_HTTP__BODY_SECONDS": "1",
        "SUPERPI_ALLOWED_ORIGINS": "https://app.example.com",
        "SUPERPI_LOG_LEVEL": "debug",
    }
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


@pytest.fixture
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
def post(server, http):
    def post(body, accept=BOTH, session=None, query="", **headers):
        given = {"accept": accept, "content-type": "application/json"} | (
            {"mcp-session-id": session} if session is not None else {}
        )
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return http.post(server.url + query, content=content, headers=given)

    return post


@pytest.fixture
def session(post):
    """The id of a fresh session of 2025-06-18."""
    id = post(INITIALIZE).headers["mcp-session-id"]
    assert post(INITIALIZED, session=id).status_code == 202
    return id


def begin(post, version):
    params = INITIALIZE["params"] | {"protocolVersion": version}
    return post(INITIALIZE | {"params": params}).headers["mcp-session-id"]


def events(answer):
    return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]


# --- POST


def test_initialize_opens_a_session_and_answers_its_id(post):
    """The mission's first row, with an id of visible ASCII."""
    answer = post(INITIALIZE)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["result"]["protocolVersion"] == "2025-06-18"
    assert len(answer.headers["mcp-session-id"]) == 43


def test_a_failed_initialize_opens_none(post):
    """SES-1: the id comes only with an InitializeResult."""
    answer = post(INITIALIZE | {"params": {}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (BOTH, "application/json"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, application/json;q=0", "text/event-stream"),
    ],
)
def test_the_reply_comes_in_the_form_the_client_takes(post, session, accept, content_type):
    """JSON where it is accepted, else one event."""
    answer = post(PING, accept, session)
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    reply = answer.json() if content_type == "application/json" else events(answer)
    assert reply in ({"jsonrpc": "2.0", "id": 1, "result": {}}, [{"jsonrpc": "2.0", "id": 1, "result": {}}])


def test_initialize_as_an_event_carries_the_session_too(post):
    """Also to a client that takes only events."""
    answer = post(INITIALIZE, "text/event-stream")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["mcp-session-id"]
    assert [event["id"] for event in events(answer)] == [0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(INITIALIZED, id="a notification"),
        pytest.param({"jsonrpc": "2.0", "method": "no/such"}, id="an unknown notification"),
        pytest.param(ANSWER, id="a response"),
        pytest.param([INITIALIZED, INITIALIZED], id="a batch of notifications"),
        pytest.param([ANSWER, ANSWER], id="a batch of responses"),
    ],
)
def test_what_asks_for_nothing_gets_202_and_no_body(post, session, body):
    """The mission's second row."""
    answer = post(body, session=session)
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param({"body": b"{"}, 400, id="text that is not JSON"),
        pytest.param({"body": b"\xff"}, 400, id="bytes that are not UTF-8"),
        pytest.param({"body": b""}, 400, id="no body"),
        pytest.param({"body": {"jsonrpc": "2.0", "id": None, "method": "ping"}}, 400, id="a null id"),
        pytest.param({"body": b"[" * 50_000}, 400, id="a deep body"),
        pytest.param({"body": b'"' + b"x" * 100_001 + b'"'}, 413, id="a body over the limit"),
        pytest.param({"content_type": "text/plain"}, 415, id="plain text, which any page may send"),
        pytest.param({"content_type": "application/json; charset=latin-1"}, 415, id="JSON in another encoding"),
        pytest.param({"content_encoding": "gzip"}, 415, id="a compressed body"),
        pytest.param({"accept": "text/html"}, 406, id="a client that takes neither form"),
        pytest.param({"session": None}, 400, id="no session id"),
        pytest.param({"session": ""}, 400, id="an empty session id"),
        pytest.param({"session": "x" * 43}, 404, id="an unknown session id"),
        pytest.param({"session": "../../x"}, 404, id="a session id that looks like a path"),
        pytest.param({"session": "é".encode()}, 404, id="a session id beyond ASCII"),
        pytest.param({"session": "x" * 10_000}, 404, id="a huge session id"),
        pytest.param({"mcp_protocol_version": "1999-01-01"}, 400, id="a version that never was"),
        pytest.param({"mcp_protocol_version": "2026-07-28"}, 400, id="a version that is not spoken"),
        pytest.param({"mcp_protocol_version": "2025-06-18, 2025-03-26"}, 400, id="two versions"),
        pytest.param({"mcp_protocol_version": "x" * 10_000}, 400, id="a huge version"),
        pytest.param({"origin": "http://evil.example"}, 403, id="a page from elsewhere"),
        pytest.param({"origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"origin": "http://localhost:80@evil.example"}, 403, id="an origin in disguise"),
        pytest.param({"host": "evil.example"}, 421, id="a name that was rebound to us"),
        pytest.param({"host": "localhost.evil.example"}, 421, id="a name that begins like ours"),
    ],
)
def test_refuses(post, session, change, status):
    """Cases C01, C02, C05, C06: a 4xx with a JSON-RPC error, no session, no CORS; and the session is unharmed."""
    answer = post(**({"body": PING, "session": session} | change))
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]
    assert answer.json()["jsonrpc"] == "2.0"
    assert "mcp-session-id" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    assert post(PING, session=session).status_code == 200


def test_a_refusal_answers_the_request_it_refuses(post):
    """So that the client can tell which of its calls failed."""
    assert post(PING | {"id": "a"}).json()["id"] == "a"


@pytest.mark.parametrize("version", [None, "2025-06-18", "2024-11-05", "2025-11-25"])
def test_a_known_version_header_is_accepted(post, session, version):
    """Gemini never sends it; one that differs from the session's has no effect."""
    headers = {} if version is None else {"mcp_protocol_version": version}
    assert post(PING, session=session, **headers).status_code == 200


def test_an_unknown_method_on_a_session_is_no_lost_session(post, session):
    """ERA-12: 200 and -32601."""
    answer = post(PING | {"method": "no/such"}, session=session)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32601)


def test_a_batch_is_answered_by_an_array_where_its_revision_has_batches(post):
    """The decisions on arrays."""
    batch = [PING, INITIALIZED, PING | {"id": "2"}]
    answers = {version: post(batch, session=begin(post, version)) for version in ("2024-11-05", "2025-11-25")}
    assert [item["id"] for item in answers["2024-11-05"].json()] == [1, "2"]
    assert (answers["2025-11-25"].status_code, answers["2025-11-25"].json()["error"]["code"]) == (400, -32600)
    assert [item["id"] for item in events(post(batch, "text/event-stream", begin(post, "2025-03-26")))[0]] == [1, "2"]


def test_initialize_inside_a_session_opens_another(post, session):
    """supergateway does it; the first one stays."""
    other = post(INITIALIZE, session=session).headers["mcp-session-id"]
    assert other != session
    assert [post(PING, session=id).status_code for id in (session, other)] == [200, 200]


# --- the other methods


def test_delete_ends_the_session(server, http, post, session):
    """200, then 404 for everything under that id."""
    headers = {"mcp-session-id": session}
    answer = http.delete(server.url, headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert post(PING, session=session).status_code == 404
    assert http.delete(server.url, headers=headers).status_code == 404
    assert http.delete(server.url).status_code == 400


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "OPTIONS"])
def test_no_other_method_is_allowed(server, http, session, method):
    """GET opens no stream, with or without a session."""
    for headers in ({}, {"mcp-session-id": session, "accept": "text/event-stream"}):
        answer = http.request(method, server.url, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")


def test_get_and_delete_from_a_foreign_page_are_refused(server, http, session):
    """Case C01, and the session lives on."""
    headers = {"origin": "http://evil.example", "mcp-session-id": session}
    assert [http.request(method, server.url, headers=headers).status_code for method in ("GET", "DELETE")] == [403] * 2
    assert http.delete(server.url, headers={"mcp-session-id": session}).status_code == 200


@pytest.mark.parametrize("path", ["/mcp/", "/MCP", "/mcp/x", "/", "/admin", "/.well-known/oauth-protected-resource"])
def test_other_paths_are_404_and_never_a_redirect(server, http, path):
    """mcp-remote asks for well-known documents; with no issuer there are none."""
    base = server.url.removesuffix("/mcp")
    assert http.post(base + path, json=PING).status_code == 404


# --- browsers


@pytest.mark.parametrize("origin", ["https://app.example.com", "http://localhost:5173", "http://127.0.0.1"])
def test_an_allowed_page_may_ask_call_and_read(server, http, post, origin):
    """The preflight and the call, with what a page needs to see."""
    asked = http.options(
        server.url,
        headers={
            "origin": origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "mcp-session-id",
        },
    )
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, origin)
    assert "Mcp-Session-Id" in asked.headers["access-control-allow-headers"]
    answer = post(INITIALIZE, origin=origin)
    assert answer.headers["access-control-allow-origin"] == origin
    assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"


def test_a_foreign_page_learns_nothing_from_its_preflight(server, http):
    """Case C02."""
    headers = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = http.options(server.url, headers=headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def raw_exchange(server, *lines, body=b"", wait=5.0):
    """Send header lines as they are, and the first line of what comes back."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=wait) as sock:
        sock.sendall("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
        return sock.recv(65536).split(b"\r\n")[0].decode()


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        pytest.param([], "400", id="no Host"),
        pytest.param(["Host: localhost", "Host: localhost"], "400", id="two Hosts"),
        pytest.param(["Host: localhost", "Mcp-Session-Id: a", "Mcp-Session-Id: b"], "400", id="two session ids"),
    ],
)
def test_headers_that_http_clients_never_send_are_refused(server, hosts, status):
    """RFC 9112 section 3.2; a session id that readers could disagree on."""
    raw = json.dumps(PING).encode()
    lines = [*hosts, "Content-Type: application/json", f"Content-Length: {len(raw)}", "Connection: close"]
    assert raw_exchange(server, *lines, body=raw).split()[1] == status


def test_a_body_that_does_not_arrive_is_given_up(server):
    """A slow client must not hold a place for ever."""
    lines = ["Host: localhost", "Content-Type: application/json", "Content-Length: 50"]
    assert raw_exchange(server, *lines, body=b"{", wait=10).split()[1] == "408"


# --- calls that run


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


def test_an_unknown_harness_is_400_and_opens_no_session(post):
    """With a JSON-RPC body that keeps the id."""
    answer = post(INITIALIZE, query="?harness=nope")
    assert (answer.status_code, answer.json()["id"]) == (400, 0)
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
