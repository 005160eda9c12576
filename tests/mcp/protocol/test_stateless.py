"""Stateless requests: what they have to say of themselves, in which order that is checked, and what comes back."""

import json

import pytest

from mcp.protocol.arrival import Arrival, mirrored_properties
from mcp.protocol.engine import Engine
from mcp.protocol.offer import Offer
from mcp.protocol.revisions import EVERY, Revision, supported_versions
from mcp.protocol.state import LogLevel, State
from mcp.protocol.stateless import is_stateless
from mcp.protocol.wire import parse
from tests.support.eras import PREFIX, VERSION, answer, meta, mirror, request
from tests.support.offers import ENGINE, OFFER

BARE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
OF_BOTH = ("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read")


def refused(code, status, message, *args, **kwargs):
    reply, found = answer(message, *args, **kwargs)
    assert (reply["error"]["code"], found, reply["id"]) == (code, status, message["id"])
    return reply["error"]


@pytest.mark.requirement("MOD-1", "LG-3", "HM-14", "ERR-4")
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param({}, id="nothing"),
        pytest.param({PREFIX + "protocolVersion": VERSION}, id="no capabilities"),
        pytest.param({PREFIX + "clientCapabilities": {}}, id="no version"),
        pytest.param(meta(version=20260728), id="a version that is a number"),
        pytest.param(meta() | {PREFIX + "clientCapabilities": []}, id="capabilities that are a list"),
        pytest.param(meta(clientInfo="me"), id="a client that is a string"),
        pytest.param(meta(logLevel="loud"), id="a level that is none"),
        pytest.param(meta(logLevel={"a": 1}), id="a level that is an object"),
    ],
)
def test_what_a_request_must_say_of_itself(claim):
    """MOD-1, LG-3: malformed, with the status that the specification orders."""
    refused(-32602, 400, request("tools/list", claim=claim), modern=True)


@pytest.mark.requirement("MOD-2")
def test_a_client_need_not_say_who_it_is():
    """MOD-2."""
    reply, status = answer(request("tools/list"))
    assert (status, "result" in reply) == (200, True)


@pytest.mark.requirement("MOD-7", "ERA-7", "ERR-10")
@pytest.mark.parametrize("version", ["v999", "2025-11-25", "2026-07-29", ""])
def test_a_version_that_is_not_spoken_statelessly(version):
    """MOD-7, ERA-7: also one that only the handshake agrees on. The data names what is spoken, and what was asked."""
    message = request("tools/list", claim=meta(version))
    error = refused(-32022, 400, message, mirror(message))
    assert error["data"] == {"supported": list(supported_versions()), "requested": version}


@pytest.mark.requirement("HDR-1", "HDR-2", "HDR-3", "HDR-4", "HDR-5", "HDR-11", "HM-12", "ERR-8")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"version": ()}, id="no version"),
        pytest.param({"version": ("2025-11-25",)}, id="another version"),
        pytest.param({"version": (VERSION, VERSION)}, id="the version twice"),
        pytest.param({"method": ()}, id="no method"),
        pytest.param({"method": ("TOOLS/CALL",)}, id="the method in capitals"),
        pytest.param({"method": ("tools/call", "tools/call")}, id="the method twice"),
        pytest.param({"name": ()}, id="no name"),
        pytest.param({"name": ("rich",)}, id="another name"),
        pytest.param({"name": ("=?base64?ZWNoby==?=",)}, id="Base64 with too much padding"),
        pytest.param({"name": ("=?base64?ZWNob!8=?=",)}, id="Base64 of another alphabet"),
        pytest.param({"name": ("=?base64?/w==?=",)}, id="Base64 of no UTF-8"),
        pytest.param({"name": ("=?BASE64?ZWNobw==?=",)}, id="markers in capitals are no markers"),
        pytest.param({"name": ("=?base64?ZWNobw==",)}, id="half a marker is none"),
        pytest.param({"method": ("tools/call\x00",)}, id="a control character"),
    ],
)
def test_headers_that_do_not_repeat_the_body(changes):
    """HDR-1 to HDR-5, HDR-11, HM-12."""
    message = request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    refused(-32020, 400, message, mirror(message, **changes))


@pytest.mark.requirement("HDR-1", "HDR-4")
@pytest.mark.parametrize("name", [("echo",), ("=?base64?ZWNobw==?=",)])
def test_headers_that_repeat_the_body(name):
    """As they are, or in Base64."""
    message = request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    assert answer(message, mirror(message, name=name))[1] == 200


@pytest.mark.requirement("HM-14", "ERR-3")
def test_the_order_in_which_the_first_failure_wins():
    """What a request says of itself, then the headers, the version, the method, its parameters (section 5)."""
    wrong = {"version": ("2026-07-28",), "method": ("x",)}
    message = request("no/such", {"cursor": 1}, claim={PREFIX + "protocolVersion": "v999"})
    refused(-32602, 400, message, mirror(message, **wrong))
    message = request("no/such", {"cursor": 1}, claim=meta("v999"))
    refused(-32020, 400, message, mirror(message, **wrong))
    refused(-32022, 400, message, mirror(message))
    message = request("no/such", {"cursor": 1})
    refused(-32601, 404, message, mirror(message))
    message = request("tools/list", {"cursor": "1"})
    refused(-32602, 200, message, mirror(message))


@pytest.mark.requirement("ERA-5", "PNG-2", "MTH-1", "ERR-3")
@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"]
)
def test_methods_of_the_handshake_are_not_there(method):
    """ERA-5, PNG-2: 404, which on the handshake revisions would mean a lost session."""
    refused(-32601, 404, request(method, {"protocolVersion": "2025-11-25", "capabilities": {}}))


@pytest.mark.requirement("MOD-9", "MOD-13", "ERR-3")
def test_a_server_that_offers_nothing_has_no_method_for_it():
    """MOD-9, MOD-13: what is not declared is not found, in both eras."""
    bare = Engine(Offer(OFFER.server), (b"k",))
    for method in OF_BOTH:
        refused(-32601, 404, request(method), engine=bare)
        reply, status = answer(BARE | {"method": method}, state=State(revision=Revision.R2025_11_25), engine=bare)
        assert (reply["error"]["code"], status) == (-32601, 200)
    assert answer(request("server/discover"), engine=bare)[0]["result"]["capabilities"] == {}


@pytest.mark.requirement("DISC-1", "DISC-2", "DISC-3", "DISC-4", "MOD-10", "ERA-17", "LG-1")
def test_discovery_says_what_is_spoken_and_offered():
    """DISC-1 to DISC-3: the server is named in `_meta`, not in the body."""
    result = answer(request("server/discover"))[0]["result"]
    assert result == {
        "supportedVersions": list(supported_versions()),
        "capabilities": {
            "tools": {},
            "resources": {"subscribe": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        },
        "instructions": "Be careful.",
        "resultType": "complete",
        "ttlMs": 300_000,
        "cacheScope": "public",
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {
                "name": "superpi",
                "title": "Super-Pi",
                "version": "1.0",
                "description": "A server.",
                "websiteUrl": "https://example.org",
            }
        },
    }


@pytest.mark.requirement("RPC-10", "MOD-10", "CA-1", "CA-2", "PR-7", "CP-6", "RS-10", "FLD-5")
@pytest.mark.parametrize(
    ("method", "params", "hint"),
    [
        ("tools/list", {}, (300_000, "public")),
        ("prompts/list", {}, (60_000, "private")),
        ("resources/templates/list", {}, (300_000, "public")),
        ("resources/list", {}, (0, "private")),
        ("resources/read", {"uri": "superpi://workspace/context"}, (0, "private")),
        ("tools/call", {"name": "echo", "arguments": {"text": "x"}}, (None, None)),
        ("prompts/get", {"name": "plan", "arguments": {"goal": "x"}}, (None, None)),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "goal", "value": ""}},
            (None, None),
        ),
    ],
)
def test_every_result_says_its_kind_and_its_server_and_some_how_long_they_hold(method, params, hint):
    """RPC-10, MOD-10, CA-1, PR-7, CP-6: what is a caller's own is private."""
    result = answer(request(method, params))[0]["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "superpi", "version": "1.0"}
    assert (result.get("ttlMs"), result.get("cacheScope")) == hint


@pytest.mark.requirement("CA-3", "PG-4")
def test_every_page_of_a_list_has_the_same_scope():
    """CA-3, PG-4."""
    engine = Engine(OFFER, (b"k",), 1)
    first = answer(request("tools/list"), engine=engine)[0]["result"]
    second = answer(request("tools/list", {"cursor": first["nextCursor"]}), engine=engine)[0]["result"]
    assert ([tool["name"] for tool in second["tools"]], second["cacheScope"]) == (["rich"], first["cacheScope"])


def test_a_result_keeps_its_own_metadata():
    """Beside the server's."""
    result = answer(request("tools/call", {"name": "rich", "arguments": {"text": "x"}}))[0]["result"]
    assert result["_meta"].keys() == {"io.modelcontextprotocol/serverInfo", "io.superpi/refusal"}


@pytest.mark.requirement("RS-5", "RPC-13")
def test_a_resource_that_is_not_there_is_invalid_params():
    """RS-5, RPC-13: the code of the handshake revisions must not be sent."""
    error = refused(-32602, 200, request("resources/read", {"uri": "superpi://no"}))
    assert error["data"] == {"uri": "superpi://no"}


@pytest.mark.requirement("ERA-15", "FLD-5")
def test_no_handshake_result_has_a_field_of_this_era():
    """ERA-15."""
    for revision in EVERY[:-1]:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            result = answer(BARE | {"method": method}, state=State(revision=revision))[0]["result"]
            assert not result.keys() & {"resultType", "ttlMs", "cacheScope", "_meta"}


@pytest.mark.requirement("MOD-4", "ERA-18")
def test_a_request_is_taken_under_nothing_but_itself():
    """MOD-4: what its connection agreed on or said before counts for nothing, and it changes nothing there."""
    held = State("local:a", "h", Revision.R2024_11_05, {"name": "old"}, {"sampling": {}}, True, LogLevel.DEBUG)
    claim = meta(capabilities={"roots": {}}, clientInfo={"name": "new", "version": "1"}, logLevel="error")
    raw = json.dumps(request("tools/call", {"name": "echo", "arguments": {"text": "x"}}, claim=claim)).encode()
    step = ENGINE.receive(raw, held)
    assert step.state == held
    assert step.slots[0].state == State(
        "local:a",
        "h",
        Revision.R2026_07_28,
        {"name": "new", "version": "1"},
        {"roots": {}},
        True,
        LogLevel.ERROR,
    )


@pytest.mark.requirement("ERA-2", "ERA-3", "ERA-4", "ERA-8", "BAT-8")
@pytest.mark.parametrize(
    ("body", "versions", "has_session", "stateless"),
    [
        pytest.param(request("tools/list"), (), False, True, id="a claim alone"),
        pytest.param(request("tools/list"), ("2025-11-25",), True, True, id="a claim, whatever the headers say"),
        pytest.param(BARE, (VERSION,), False, True, id="a request under this era's header"),
        pytest.param(BARE, (VERSION,), True, True, id="and with a session"),
        pytest.param(BARE, ("2025-11-25",), True, False, id="a request under another era's header"),
        pytest.param(BARE, (), True, False, id="no claim and no header"),
        pytest.param({"jsonrpc": "2.0", "method": "x"}, (VERSION,), False, True, id="a notification of nobody"),
        pytest.param({"jsonrpc": "2.0", "method": "x"}, (VERSION,), True, False, id="a notification of a session"),
        pytest.param([request("tools/list")], ("2025-03-26",), True, True, id="an array with a claim in it"),
        pytest.param([BARE], (VERSION,), True, False, id="an array without one, of a session"),
        pytest.param([BARE], (VERSION,), False, True, id="an array without one, of nobody"),
        pytest.param([BARE], (), False, False, id="an array of nobody, without a header"),
    ],
)
def test_the_era_of_a_payload(body, versions, has_session, stateless):
    """ERA-3, ERA-4, ERA-8: by body first."""
    payload = parse(json.dumps(body).encode())
    assert is_stateless(payload, versions, has_session=has_session) is stateless


@pytest.mark.requirement("ERA-4", "ERA-6")
def test_a_request_without_a_claim_under_this_eras_header():
    """ERA-4, ERA-6: what is missing is said, but for the handshake, which contradicts the header."""
    refused(-32602, 400, BARE, mirror(BARE), modern=True)
    handshake = BARE | {"method": "initialize", "params": {"protocolVersion": VERSION, "capabilities": {}}}
    refused(-32020, 400, handshake, mirror(handshake), modern=True)


@pytest.mark.requirement("BAT-6", "BAT-8", "HM-3")
def test_no_array_holds_a_request_of_this_era():
    """BAT-6, BAT-8: the whole array is refused, also where the connection has batches."""
    for modern in (True, False):
        state = State(revision=Revision.R2025_03_26)
        reply, status = answer([BARE, request("tools/list", id=2)], state=state, modern=modern)
        assert (reply["error"]["code"], status, "id" in reply) == (-32600, 400, False)


@pytest.mark.requirement("HM-9", "RPC-15")
def test_a_response_answers_nothing():
    """HM-9, RPC-15: this era's server never asks, so nobody may answer."""
    reply, status = answer({"jsonrpc": "2.0", "id": 1, "result": {}}, modern=True)
    assert (reply["error"]["code"], status) == (-32600, 400)


@pytest.mark.requirement("ERA-8", "HM-4")
def test_a_notification_is_taken_and_dropped():
    """ERA-8."""
    assert answer({"jsonrpc": "2.0", "method": "notifications/whatever"}, modern=True) == (None, 202)


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
    },
}
MIRRORED = Engine(
    Offer(OFFER.server, tools=OFFER.tools, checks=OFFER.checks, mirrored={"echo": mirrored_properties(SCHEMA)}), (b"k",)
)
GIVEN = {"text": "x", "region": "eu", "count": 42, "deep": {"flag": True}}
HEADERS = {"region": ("eu",), "count": ("42",), "flag": ("true",)}


@pytest.mark.requirement("HDR-7", "HDR-8", "HDR-10", "HDR-12")
@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        pytest.param(GIVEN, HEADERS, 200, id="all repeated"),
        pytest.param(GIVEN, HEADERS | {"count": ("42.0",)}, 200, id="a number as a number"),
        pytest.param(GIVEN, HEADERS | {"other": ("x",)}, 200, id="one that nobody annotated"),
        pytest.param(GIVEN | {"region": None}, HEADERS | {"region": ()}, 200, id="null is absent"),
        pytest.param({"text": "x"}, {}, 200, id="nothing there, nothing repeated"),
        pytest.param(GIVEN | {"region": "ö"}, HEADERS | {"region": ("=?base64?w7Y=?=",)}, 200, id="in Base64"),
        pytest.param(GIVEN, HEADERS | {"region": ()}, 400, id="one is missing"),
        pytest.param(GIVEN, HEADERS | {"region": ("us",)}, 400, id="another value"),
        pytest.param(GIVEN, HEADERS | {"region": ("eu", "eu")}, 400, id="twice"),
        pytest.param(GIVEN, HEADERS | {"count": ("4_2",)}, 400, id="no number"),
        pytest.param(GIVEN, HEADERS | {"flag": ("True",)}, 400, id="no boolean"),
        pytest.param(GIVEN | {"region": "ö"}, HEADERS | {"region": ("ö",)}, 400, id="what only Base64 can carry"),
        pytest.param(GIVEN | {"region": "a\x01"}, HEADERS | {"region": ("a\x01",)}, 400, id="a control character"),
        pytest.param({"text": "x"}, {"region": ("eu",)}, 400, id="repeats what is not there"),
    ],
)
def test_arguments_that_headers_repeat(arguments, headers, status):
    """HDR-7, HDR-8, HDR-10."""
    message = request("tools/call", {"name": "echo", "arguments": arguments})
    reply, found = answer(message, mirror(message, params=headers), engine=MIRRORED)
    assert found == status
    assert status == 200 or reply["error"]["code"] == -32020


@pytest.mark.requirement("HDR-6")
@pytest.mark.parametrize(
    "property",
    [
        pytest.param({"type": "string", "x-mcp-header": ""}, id="no name"),
        pytest.param({"type": "string", "x-mcp-header": "a b"}, id="a name that is no token"),
        pytest.param({"type": "number", "x-mcp-header": "A"}, id="a number"),
        pytest.param({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}, id="below items"),
        pytest.param({"anyOf": [{"type": "string", "x-mcp-header": "A"}]}, id="below anyOf"),
        pytest.param({"type": "string", "x-mcp-header": "REGION"}, id="a name that is taken, but for its case"),
    ],
)
def test_an_annotation_that_would_cost_clients_the_tool_is_refused_at_registration(property):
    """HDR-6."""
    properties = SCHEMA["properties"] | {"bad": property}
    with pytest.raises(ValueError, match="x-mcp-header"):
        mirrored_properties(SCHEMA | {"properties": properties})


def test_a_transport_without_headers_is_not_held_to_them():
    """stdio has no mirror."""
    raw = json.dumps(request("tools/list")).encode()
    assert ENGINE.receive(raw, State(), Arrival(0.0)).reply.status == 200
