"""Stateless requests on a real server: statuses, forms of the answer, and what of a session must not be seen."""

import threading

import pytest

from tests.support.eras import VERSION, meta
from tests.support.eras import request as stateless
from tests.support.raw_http import ANSWER, BOTH, INITIALIZE, PING, bash, events

LIST = stateless("tools/list")


def headers(message, **changes):
    """The headers that a request of this era needs, but for the changes; None leaves one out."""
    params = message.get("params", {}) if isinstance(message, dict) else {}
    name = params.get("name", params.get("uri"))
    found = {"mcp_protocol_version": VERSION, "mcp_method": message.get("method") if params else None, "mcp_name": name}
    return {key: value for key, value in (found | changes).items() if value is not None}


@pytest.fixture
def ask(post):
    """Posts a stateless request."""

    def ask(message, accept=BOTH, **changes):
        return post(message, accept, **headers(message, **changes))

    return ask


def result(answer):
    return (events(answer) if "event-stream" in kind(answer) else [answer.json()])[-1]["result"]


def kind(answer):
    return answer.headers["content-type"]


def call(command, id=1):
    return stateless("tools/call", bash(command)["params"], id=id)


@pytest.mark.requirement("HM-5", "HM-7", "HM-11")
@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (BOTH, "application/json"),
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("*/*", "application/json"),
    ],
)
def test_a_request_is_answered_in_the_form_that_the_client_takes(ask, accept, form):
    """As one event it is the last thing on the stream, and has no id."""
    answer = ask(LIST, accept)
    assert (answer.status_code, kind(answer)) == (200, form)
    if form == "text/event-stream":
        assert [event["id"] for event in events(answer)] == [1]
        assert {line.partition(":")[0] for line in answer.text.splitlines() if line} == {"event", "data"}


@pytest.mark.requirement("HM-7", "HM-8", "HM-11")
def test_a_long_call_is_a_stream_that_ends_with_its_response(ask):
    answer = ask(call("sleep 1; echo done"))
    assert (kind(answer), answer.headers["x-accel-buffering"]) == ("text/event-stream", "no")
    assert answer.text.count(": keep-alive") >= 2
    assert [event["result"]["structuredContent"]["output"] for event in events(answer)] == ["done\n"]


@pytest.mark.requirement("HM-3", "HM-12", "HM-14", "ERA-4", "ERA-5", "ERA-6", "ERA-7", "ERA-11", "ERA-16", "PNG-2")
@pytest.mark.parametrize(
    ("message", "changes", "status", "code"),
    [
        pytest.param(PING | {"params": {}}, {"mcp_method": "ping"}, 400, -32602, id="no claim under this era's header"),
        pytest.param(stateless("tools/list", claim={}), {}, 400, -32602, id="nothing said of itself"),
        pytest.param(LIST, {"mcp_protocol_version": None}, 400, -32020, id="no version header"),
        pytest.param(LIST, {"mcp_protocol_version": "2025-11-25"}, 400, -32020, id="another version's header"),
        pytest.param(LIST, {"mcp_method": None}, 400, -32020, id="no method header"),
        pytest.param(LIST, {"mcp_method": "Tools/List"}, 400, -32020, id="the method in another case"),
        pytest.param(call("true"), {"mcp_name": None}, 400, -32020, id="no name header"),
        pytest.param(call("true"), {"mcp_name": "=?base64?YmFzaA?="}, 400, -32020, id="a name in bad Base64"),
        pytest.param(INITIALIZE, {"mcp_method": "initialize"}, 400, -32020, id="a handshake under this era's header"),
        pytest.param(
            stateless("tools/list", claim=meta("v999")),
            {"mcp_protocol_version": "v999"},
            400,
            -32022,
            id="a version that never was",
        ),
        pytest.param(
            stateless("tools/list", claim=meta("2025-11-25")),
            {"mcp_protocol_version": "2025-11-25"},
            400,
            -32022,
            id="a version that is not spoken like this",
        ),
        pytest.param(stateless("initialize", INITIALIZE["params"]), {}, 404, -32601, id="a handshake with a claim"),
        pytest.param(stateless("ping"), {}, 404, -32601, id="a method of the other era"),
        pytest.param(stateless("no/such"), {}, 404, -32601, id="a method that never was"),
        pytest.param(stateless("tools/list", {"cursor": "x"}), {}, 200, -32602, id="a cursor of nobody"),
        pytest.param(stateless("resources/read", {"uri": "x:y"}), {}, 200, -32602, id="no such resource"),
    ],
)
def test_refuses(ask, message, changes, status, code):
    """Always with a JSON-RPC body that keeps the id: by it clients tell this era from the other."""
    answer = ask(message, **changes)
    assert (answer.status_code, kind(answer)) == (status, "application/json")
    assert (answer.json()["error"]["code"], answer.json()["id"]) == (code, message["id"])
    assert "mcp-session-id" not in answer.headers


@pytest.mark.requirement("HM-3", "HM-4", "HM-9", "RPC-15", "BAT-8")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"jsonrpc": "2.0", "method": "notifications/whatever"}, 202, id="a notification"),
        pytest.param({"jsonrpc": "2.0", "method": "x", "params": [1]}, 400, id="a notification that is none"),
        pytest.param([LIST], 400, id="an array"),
        pytest.param([PING], 400, id="an array without a claim"),
        pytest.param([], 400, id="an empty array"),
        pytest.param(ANSWER, 400, id="a response"),
        pytest.param(b"{", 400, id="no JSON"),
    ],
)
def test_the_body_is_one_request_or_one_notification(post, body, status):
    answer = post(body, mcp_protocol_version=VERSION)
    assert answer.status_code == status, answer.text
    assert answer.content == b"" if status == 202 else answer.json()["error"]["code"] in (-32600, -32700)


@pytest.mark.requirement("SES-9", "ERA-12", "ERA-18")
@pytest.mark.parametrize("named", ["x" * 43, ""])
def test_a_session_that_a_stateless_request_names_is_not_looked_at(post, session, named):
    """Neither a lost one nor one's own; and none is begun."""
    for id in (named, session):
        answer = post(LIST, session=id, last_event_id="7", **headers(LIST))
        assert (answer.status_code, "mcp-session-id" in answer.headers) == (200, False)
        assert answer.json()["result"]["resultType"] == "complete"


@pytest.mark.requirement("ERA-1", "ERA-2", "ERA-15")
def test_one_endpoint_serves_both_eras_at_once(ask, post, session):
    """The same tools, each in the words of its own era."""
    modern, old = result(ask(LIST)), post(PING | {"method": "tools/list"}, session=session).json()["result"]
    assert [tool["name"] for tool in modern["tools"]] == [tool["name"] for tool in old["tools"]]
    assert old.keys() == {"tools"}
    assert modern.keys() == {"tools", "resultType", "ttlMs", "cacheScope", "_meta"}
    assert post(PING | {"method": "server/discover"}, session=session).json()["error"]["code"] == -32601


@pytest.mark.requirement("RPC-4", "MOD-5")
def test_an_id_may_be_used_again_and_by_several_at_once(ask):
    assert [ask(LIST | {"id": "same"}).json()["id"] for _ in range(2)] == ["same"] * 2
    found = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(result(ask(call(f"sleep 0.5; echo {n}"))))) for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["structuredContent"]["output"] for one in found) == ["0\n", "1\n", "2\n"]


@pytest.mark.requirement("ERA-8", "CAN-1")
def test_no_notification_withdraws_a_stateless_request(server, ask, post, session):
    """Ids are the clients' own: who guesses one, with or without a session, must not stop another's call."""
    started, found = server.workspace / "era-started", []
    running = threading.Thread(target=lambda: found.append(ask(call("touch era-started; sleep 1; echo done", id="w"))))
    running.start()
    while not started.exists():
        running.join(0.02)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}
    assert post(cancel, mcp_protocol_version=VERSION).status_code == 202
    assert post(cancel, session=session).status_code == 202
    running.join()
    assert result(found[0])["structuredContent"]["output"] == "done\n"


@pytest.mark.requirement("HM-1", "ERA-14", "SSE-3")
@pytest.mark.parametrize(("method", "status"), [("GET", 405), ("PUT", 405), ("DELETE", 400)])
def test_this_era_has_post_alone(server, http, method, status):
    """DELETE belongs to sessions, and asks for one."""
    answer = http.request(method, server.url, headers={"mcp-protocol-version": VERSION})
    assert answer.status_code == status


@pytest.mark.requirement("HM-2", "HL-2")
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 421),
        ({"origin": "http://localhost:1"}, 200),
        ({}, 200),
    ],
)
def test_a_page_from_elsewhere_reaches_nothing(ask, change, status):
    answer = ask(LIST, **change)
    assert answer.status_code == status
    assert "www-authenticate" not in answer.headers


@pytest.mark.requirement("HDR-2", "HDR-4")
@pytest.mark.parametrize("name", ["bash", "=?base64?YmFzaA==?="])
def test_a_name_may_come_in_base64_and_in_a_header_of_any_case(ask, name):
    assert ask(call("echo hi"), mcp_name=None, MCP_NAME=name).status_code == 200


@pytest.mark.requirement("HDR-11")
def test_a_routing_header_that_comes_twice_is_refused(server, http):
    given = [("accept", BOTH), ("mcp-protocol-version", VERSION), ("mcp-method", "tools/list")]
    answer = http.post(server.url, json=LIST, headers=[*given, ("mcp-method", "tools/list")])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


@pytest.mark.requirement("HM-13", "HL-16", "SES-3")
def test_without_a_claim_and_without_a_header_a_request_belongs_to_its_session(post, session):
    assert post(PING, session=session).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert post(PING).status_code == 400
