"""Requests of the stateless era, to the engine of the tests."""

import json

from mcp.protocol.arrival import Arrival, Mirror
from mcp.protocol.effects import Outcome
from mcp.protocol.revisions import STATELESS
from mcp.protocol.state import State
from tests.support.offers import ENGINE, perform
from tests.support.official import check

VERSION = STATELESS[-1].value
PREFIX = "io.modelcontextprotocol/"


def meta(version=VERSION, capabilities=None, **more):
    """What a request says of itself."""
    own = {PREFIX + "protocolVersion": version, PREFIX + "clientCapabilities": capabilities or {}}
    return own | {PREFIX + name: value for name, value in more.items()}


def request(method, params=None, *, id=1, claim=None):
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": method,
        "params": {"_meta": meta() if claim is None else claim} | (params or {}),
    }


def mirror(message, **changes):
    """The headers that agree with a request; `changes` replaces one of them by other values."""
    params = message.get("params") or {}
    version = params.get("_meta", {}).get(PREFIX + "protocolVersion", VERSION)
    name = params.get("name", params.get("uri"))
    values = {
        "version": (version,),
        "method": (message["method"],),
        "name": () if name is None else (name,),
        "params": {},
    }
    return Mirror(**(values | changes))


def answer(message, headers=None, state=None, engine=ENGINE, act=perform, now=0.0, modern=False):
    """The reply to one message as parsed JSON, and the HTTP status of that."""
    state = State() if state is None else state
    step = engine.receive(json.dumps(message).encode(), state, Arrival(now, headers), modern=modern)
    for effect in step.effects:
        step = engine.resume(step, Outcome(effect.slot, act(effect)))
    reply = step.reply
    if reply is None:
        return None, 202
    return check(json.loads(reply.encode()), message, state.revision and state.revision.value), reply.status
