"""Messages to the engine of the tests, and its answers as parsed JSON."""

import json

from mcp.protocol.revisions import HANDSHAKE
from mcp.protocol.state import State
from tests.support.offers import ENGINE, perform
from tests.support.official import check

NEW = State()
R1, R2, R3, R4 = HANDSHAKE


def opened(revision=R3, **changes):
    return State(revision=revision, initialized=True, **changes)


def answer(message, state=None, engine=ENGINE):
    """The reply to one message (any JSON value) as parsed JSON, or None."""
    raw, sent = (message, _read(message)) if isinstance(message, bytes) else (json.dumps(message).encode(), message)
    state = opened() if state is None else state
    reply, _ = engine.handle_message(raw, state, perform)
    return None if reply is None else check(json.loads(reply), sent, state.revision and state.revision.value)


def _read(raw):
    try:
        return json.loads(raw)
    except ValueError:
        return None


def request(method, params=None, id=1):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else message | {"params": params}


def call(name, **arguments):
    return request("tools/call", {"name": name, "arguments": arguments})


def initialize(version="2025-06-18", **params):
    client = {"name": "test", "version": "1"}
    return request("initialize", {"protocolVersion": version, "clientInfo": client, "capabilities": {}} | params)
