"""Our tables and every reply, held against the official wire types."""

import json

import pytest
from mcp_types import methods as official

from mcp.protocol import encode, results
from mcp.protocol.engine import Engine
from mcp.protocol.methods import METHODS
from mcp.protocol.revisions import EVERY, STATELESS, Revision, supported_versions
from mcp.protocol.state import State
from tests.support.offers import ENGINE, OFFER, perform

REQUESTS = [
    ("initialize", {"protocolVersion": "REVISION", "clientInfo": {"name": "t", "version": "1"}, "capabilities": {}}),
    ("ping", None),
    ("server/discover", None),
    ("logging/setLevel", {"level": "debug"}),
    ("resources/subscribe", {"uri": "superpi://workspace/context"}),
    ("resources/unsubscribe", {"uri": "superpi://workspace/context"}),
    ("subscriptions/listen", {"notifications": {"promptsListChanged": True}}),
    ("tools/list", None),
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
    ("tools/call", {"name": "rich", "arguments": {"text": "x"}}),
    ("tools/call", {"name": "echo", "arguments": {}}),
    ("prompts/list", None),
    ("prompts/get", {"name": "plan", "arguments": {"goal": "x"}}),
    ("resources/list", None),
    ("resources/list", {"cursor": "NEXT"}),
    ("resources/templates/list", None),
    ("resources/read", {"uri": "superpi://workspace/context"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "goal", "value": ""}},
    ),
]


CLAIM = {
    "io.modelcontextprotocol/protocolVersion": STATELESS[-1].value,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def reply(engine, method, params, revision):
    state = State() if method == "initialize" or revision in STATELESS else State(revision=revision)
    if revision in STATELESS:
        params = {"_meta": CLAIM} | (params or {})
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return json.loads(engine.handle_message(raw, state, perform)[0])


@pytest.mark.requirement("MTH-1", "MTH-2", "MTH-3", "FLD-5", "TL-4", "RS-3", "CP-2")
@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_every_result_is_of_the_official_type(revision, method, params):
    """Validated against the surface of its method and revision; a method of another era is not found."""
    engine = ENGINE
    if params == {"cursor": "NEXT"}:
        engine = Engine(OFFER, (b"k",), 2)
        params = {"cursor": reply(engine, method, {}, revision)["result"]["nextCursor"]}
    if method == "initialize":
        params = params | {"protocolVersion": revision.value}
    answer = reply(engine, method, params, revision)
    if revision in METHODS[method].revisions:
        official.validate_server_result(method, revision.value, answer["result"])
    else:
        assert answer["error"]["code"] == -32601


@pytest.mark.requirement("MTH-1", "MTH-2", "MTH-3")
@pytest.mark.parametrize("revision", EVERY)
def test_the_method_table_is_the_official_map(revision):
    """Every client request of the map is served, and nothing else is."""
    ours = {method for method, row in METHODS.items() if revision in row.revisions}
    assert ours == {method for method, version in official.CLIENT_REQUESTS if version == revision.value}


def test_every_revision_is_one_that_the_official_types_know():
    """In the official order too."""
    known = [version for version in official.KNOWN_PROTOCOL_VERSIONS if version in supported_versions()]
    assert tuple(known) == tuple(revision.value for revision in EVERY)


def test_no_field_is_declared_for_a_revision_out_of_the_table():
    """The field table names revisions that exist."""
    assert set(encode.FIELD_SINCE.values()) <= set(Revision)


@pytest.mark.requirement("CA-1", "MRTR-2")
def test_what_may_be_kept_and_what_may_ask_is_what_the_official_types_say():
    """CA-1, MRTR-2."""
    assert set(results.HINTS) == set(official.CACHEABLE_METHODS)
    assert {"tools/call", "prompts/get", "resources/read"} == set(official.INPUT_REQUIRED_METHODS)
