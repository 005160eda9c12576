"""Messages and readings for tests that post to the endpoint by hand."""

import json

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


def begin(post, version):
    """The id of a fresh session of that revision."""
    params = INITIALIZE["params"] | {"protocolVersion": version}
    return post(INITIALIZE | {"params": params}).headers["mcp-session-id"]


def events(answer):
    """The messages of an event stream."""
    return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]
