"""Our tables and every reply, held against the official wire types."""

import json

import pytest
from mcp_types import methods as official

from mcp.protocol import encode
from mcp.protocol.engine import Engine
from mcp.protocol.methods import METHODS
from mcp.protocol.revisions import HANDSHAKE, Revision, supported_versions
from mcp.protocol.state import State
from tests.support.offers import ENGINE, OFFER, perform

#: Client requests of the official maps that are not served on the handshake revisions, and why.
NOT_SERVED = {
    "logging/setLevel": "no log notifications are sent, so the logging capability is not declared",
    "resources/subscribe": "the subscribe capability is not declared",
    "resources/unsubscribe": "the subscribe capability is not declared",
}

REQUESTS = [
    ("initialize", {"protocolVersion": "REVISION", "clientInfo": {"name": "t", "version": "1"}, "capabilities": {}}),
    ("ping", None),
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


def reply(engine, method, params, state):
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return json.loads(engine.handle_message(raw, state, perform)[0])


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_every_result_is_of_the_official_type(revision, method, params):
    """Validated against the surface of its method and revision."""
    state = State() if method == "initialize" else State(revision=revision)
    engine = ENGINE
    if params == {"cursor": "NEXT"}:
        engine = Engine(OFFER, (b"k",), 2)
        params = {"cursor": reply(engine, method, {}, state)["result"]["nextCursor"]}
    if method == "initialize":
        params = params | {"protocolVersion": revision.value}
    result = reply(engine, method, params, state)["result"]
    official.validate_server_result(method, revision.value, result)


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_method_table_agrees_with_the_official_map(revision):
    """Every client request of the map is served or its gap is named, and nothing else is served."""
    ours = {method for method, row in METHODS.items() if revision in row.revisions}
    theirs = {method for method, version in official.CLIENT_REQUESTS if version == revision.value}
    assert ours | NOT_SERVED.keys() == theirs
    assert not ours & NOT_SERVED.keys()


def test_every_revision_is_one_that_the_official_types_know():
    """In the official order too."""
    known = [version for version in official.KNOWN_PROTOCOL_VERSIONS if version in supported_versions()]
    assert tuple(known) == tuple(revision.value for revision in HANDSHAKE)


def test_no_field_is_declared_for_a_revision_out_of_the_table():
    """The field table names revisions that exist."""
    assert set(encode.FIELD_SINCE.values()) <= set(Revision)
