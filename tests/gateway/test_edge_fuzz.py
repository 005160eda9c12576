"""The HTTP edge under messages that nobody would send: no failure of the server's, no hang, and it goes on."""

import json
from datetime import timedelta

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp.protocol.methods import METHODS
from tests.support.eras import meta
from tests.support.raw_http import BOTH, PING

#: Seconds within which everything is answered; a listener that was opened by chance is left.
PATIENCE = 5.0
METHOD_NAMES = st.sampled_from([*METHODS, "notifications/cancelled", "no/such", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
IDS = st.integers(-5, 5) | st.text(max_size=4) | st.none() | st.booleans() | st.floats(allow_nan=False)
KNOWN = {
    "name": st.sampled_from(["ls", "find", "super-pi-planner", "no"]),
    "uri": st.sampled_from(["superpi://workspace/tools", "x:", ""]),
    "arguments": st.dictionaries(st.sampled_from(["path", "pattern", "limit"]), JSON, max_size=2),
    "cursor": st.text(max_size=8),
    "protocolVersion": st.sampled_from(["2025-11-25", "2026-07-28", ""]),
    "capabilities": st.dictionaries(st.sampled_from(["elicitation", "sampling"]), JSON, max_size=1),
    "requestState": st.text(max_size=8),
    "inputResponses": JSON,
    "level": st.text(max_size=5),
    "_meta": st.sampled_from([meta(), meta("v9"), meta(logLevel="debug"), {}]) | JSON,
}
PARAMS = st.fixed_dictionaries({}, optional={name: value | JSON for name, value in KNOWN.items()}) | JSON
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0"])},
    optional={"id": IDS, "method": METHOD_NAMES, "params": PARAMS, "result": JSON, "error": JSON},
)
BODIES = (
    (MESSAGES | st.lists(MESSAGES, max_size=3)).map(lambda value: json.dumps(value).encode())
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=64)
    | st.integers(1, 200).map(lambda depth: b"[" * depth + b"]" * depth)
)
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from([BOTH, "application/json", "text/event-stream", "*/*", "text/html"]),
        "content-type": st.sampled_from(["application/json", "application/json; charset=utf-8", "text/plain"]),
        "mcp-protocol-version": st.sampled_from(["2025-06-18", "2026-07-28", "v9"]) | TOKENS,
        "mcp-method": METHOD_NAMES.filter(bool) | TOKENS,
        "mcp-name": st.sampled_from(["ls", "=?base64?bHM=?=", "=?base64?!?="]) | TOKENS,
        "mcp-param-x": TOKENS,
        "mcp-session-id": st.just("SESSION") | TOKENS,
        "last-event-id": TOKENS,
        "origin": st.sampled_from(["http://localhost", "https://evil.example"]),
        "x-request-id": TOKENS,
        "traceparent": TOKENS,
    },
)


def readable_id(body):
    """The id of the one message that a body is, where it can be told."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


@settings(
    max_examples=400,
    deadline=timedelta(seconds=PATIENCE),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(verb=st.sampled_from(["POST"] * 8 + ["GET", "DELETE", "PUT", "OPTIONS"]), headers=HEADERS, body=BODIES)
def test_whatever_comes_is_answered_and_nothing_fails(server, http, verb, headers, body):
    """No 5xx, the id of the request where it can be read, and JSON or events wherever there is a body."""
    opened = http.post(server.url, json=_INITIALIZE, headers={"accept": BOTH})
    session = opened.headers["mcp-session-id"]
    if headers.get("mcp-session-id") == "SESSION":
        headers = headers | {"mcp-session-id": session}
    try:
        with http.stream(verb, server.url, content=body, headers=headers, timeout=PATIENCE) as answer:
            status, kind = answer.status_code, answer.headers.get("content-type", "")
            text = "" if kind == "text/event-stream" else answer.read().decode()
    finally:
        http.delete(server.url, headers={"mcp-session-id": session})
    assert status < 500, (status, text)
    if kind == "application/json" and text.startswith("{"):
        reply = json.loads(text)
        assert reply["jsonrpc"] == "2.0"
        assert ("result" in reply) != ("error" in reply)
        if "id" in reply:
            assert reply["id"] == readable_id(body)


_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "f", "version": "1"}, "capabilities": {}},
}


def test_the_server_still_answers(post, session):
    """After all of it."""
    assert post(PING, session=session).json()["result"] == {}


def test_a_listener_that_is_left_is_forgotten(server, http):
    """Fifty that come and go leave no call in flight."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    message["params"] = {"_meta": meta(), "notifications": {"promptsListChanged": True}}
    headers = {"accept": BOTH, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    for _ in range(50):
        with httpx.stream("POST", server.url, json=message, headers=headers, trust_env=False) as answer:
            next(answer.iter_lines())
    base = server.url.removesuffix("/mcp")
    for _ in range(100):
        flying = [
            line for line in http.get(f"{base}/metrics").text.splitlines() if line.startswith("superpi_calls_in_flight")
        ]
        if float(flying[0].split()[-1]) == 0:
            return
    raise AssertionError(flying)
