"""The endpoint's table of requests and answers, on a real server process."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.support.raw_http import ANSWER, BOTH, INITIALIZE, INITIALIZED, PING, begin, events

# --- POST


@pytest.mark.requirement("SES-1", "SES-2")
def test_initialize_opens_a_session_and_answers_its_id(post):
    """The mission's first row, with an id of visible ASCII."""
    answer = post(INITIALIZE)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["result"]["protocolVersion"] == "2025-06-18"
    assert len(answer.headers["mcp-session-id"]) == 43


@pytest.mark.requirement("SES-1", "LIFE-5")
def test_a_failed_initialize_opens_none(post):
    """SES-1: the id comes only with an InitializeResult."""
    answer = post(INITIALIZE | {"params": {}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    assert "mcp-session-id" not in answer.headers


@pytest.mark.requirement("HL-5")
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


@pytest.mark.requirement("HL-4", "BAT-3")
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


@pytest.mark.requirement("HL-2", "HL-4", "HL-15", "SES-3", "SES-4", "ERA-16", "ERR-1", "ERR-2")
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
        pytest.param({"body": {"jsonrpc": "2.0", "method": "x", "params": [1]}}, 400, id="a malformed notification"),
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


@pytest.mark.requirement("ERR-1", "BAT-7", "SES-3")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param([], "the batch is empty", id="an empty array"),
        pytest.param([1], "a message is a JSON object", id="an array of what is no message"),
        pytest.param([{"jsonrpc": "2.0"}, 1], 'a message has a "method"', id="the first of several faults"),
        pytest.param("text", "a message is a JSON object", id="no object"),
        pytest.param({"id": 1, "method": "ping"}, 'the member "jsonrpc"', id="an object that is no message"),
        pytest.param([PING], "Send the Mcp-Session-Id header", id="an array of messages"),
        pytest.param([PING, 1], "Send the Mcp-Session-Id header", id="an array with a message"),
        pytest.param(PING, "Send the Mcp-Session-Id header", id="a message"),
    ],
)
def test_without_a_session_a_body_that_is_no_message_is_refused_for_that(post, body, words):
    """A session id would not help it."""
    answer = post(body)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), answer.text


def test_a_refusal_answers_the_request_it_refuses(post):
    """So that the client can tell which of its calls failed."""
    assert post(PING | {"id": "a"}).json()["id"] == "a"


@pytest.mark.requirement("RPC-7")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"origin": "http://evil.example"}, 403, id="a page from elsewhere"),
        pytest.param({"host": "evil.example"}, 421, id="another host"),
        pytest.param({"accept": "text/html"}, 406, id="a form that there is not"),
        pytest.param({"content_type": "text/plain"}, 415, id="no JSON"),
        pytest.param({"body": PING | {"params": {"a": "x" * 100_001}}}, 413, id="a body over the limit"),
    ],
)
def test_a_refusal_before_the_body_is_read_has_no_id(post, session, headers, status):
    """It is not null either, which fits no schema."""
    answer = post(**({"body": PING, "session": session} | headers))
    assert (answer.status_code, sorted(answer.json())) == (status, ["error", "jsonrpc"])


@pytest.mark.requirement("HL-16")
@pytest.mark.parametrize("version", [None, "2025-06-18", "2024-11-05", "2025-11-25"])
def test_a_known_version_header_is_accepted(post, session, version):
    """Gemini never sends it; one that differs from the session's has no effect."""
    headers = {} if version is None else {"mcp_protocol_version": version}
    assert post(PING, session=session, **headers).status_code == 200


def test_a_request_beyond_what_the_parser_takes_is_answered_by_its_id(post, session):
    """JSON allows U+0000 and clients send it; a reply without the id would leave them waiting."""
    raw = json.dumps(PING | {"id": "nul", "params": {"a": "\0"}}).encode()
    answer = post(raw, session=session)
    assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (200, "nul", -32602)


@pytest.mark.requirement("HDR-2")
def test_blanks_around_a_header_are_no_part_of_it(server, session):
    """RFC 9110 section 5.5."""
    raw = json.dumps(PING).encode()
    lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(raw)}"]
    lines += [f"Mcp-Session-Id:  {session}  ", "MCP-Protocol-Version: 2025-06-18 ", "Connection: close"]
    assert raw_exchange(server, *lines, body=raw).split()[1] == "200"


@pytest.mark.requirement("ERA-12")
def test_an_unknown_method_on_a_session_is_no_lost_session(post, session):
    """ERA-12: 200 and -32601."""
    answer = post(PING | {"method": "no/such"}, session=session)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32601)


@pytest.mark.requirement("BAT-1", "BAT-4", "BAT-8")
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


@pytest.mark.requirement("SES-4", "SES-5", "LIFE-11")
def test_delete_ends_the_session(server, http, post, session):
    """200, then 404 for everything under that id."""
    headers = {"mcp-session-id": session}
    answer = http.delete(server.url, headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert post(PING, session=session).status_code == 404
    assert http.delete(server.url, headers=headers).status_code == 404
    assert http.delete(server.url).status_code == 400


@pytest.mark.requirement("HL-15")
def test_a_version_that_is_not_spoken_ends_no_session(server, http, post, session):
    """The header counts on every request that has it."""
    headers = {"mcp-session-id": session, "mcp-protocol-version": "1999-01-01"}
    assert http.delete(server.url, headers=headers).status_code == 400
    assert post(PING, session=session).status_code == 200


@pytest.mark.requirement("HL-1", "HL-10", "ERA-14", "SSE-3", "DEP-2")
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "OPTIONS"])
def test_no_other_method_is_allowed(server, http, session, method):
    """GET opens no stream, with or without a session."""
    for headers in ({}, {"mcp-session-id": session, "accept": "text/event-stream"}):
        answer = http.request(method, server.url, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")


@pytest.mark.requirement("HL-2")
def test_get_and_delete_from_a_foreign_page_are_refused(server, http, session):
    """Case C01, and the session lives on."""
    headers = {"origin": "http://evil.example", "mcp-session-id": session}
    assert [http.request(method, server.url, headers=headers).status_code for method in ("GET", "DELETE")] == [403] * 2
    assert http.delete(server.url, headers={"mcp-session-id": session}).status_code == 200


@pytest.mark.requirement("HL-1", "SSE-3")
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
    for needed in ("Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"):
        assert needed in asked.headers["access-control-allow-headers"]
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
