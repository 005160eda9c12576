"""The engine's answers, payload by payload."""

import json
from dataclasses import replace

import pytest

from mcp.protocol.content import ToolResult
from mcp.protocol.effects import Broken, Cancelled, CancelRequested, Completion, Opened, Outcome
from mcp.protocol.engine import MAX_BATCH
from mcp.protocol.revisions import Revision, negotiate, supported_versions
from mcp.protocol.state import State
from tests.support.exchanges import NEW, R1, R2, R3, R4, answer, call, initialize, opened, request
from tests.support.offers import ENGINE, perform

# --- the handshake


@pytest.mark.requirement("LIFE-2", "LIFE-3", "LIFE-4", "ERA-16")
@pytest.mark.parametrize(
    ("requested", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("2025-06-18 ", "2025-11-25"),
    ],
)
def test_initialize_agrees_on_the_requested_revision_or_the_newest(requested, agreed):
    """LIFE-2, LIFE-3, LIFE-4: a version that is not spoken is no error."""
    assert answer(initialize(requested), NEW)["result"]["protocolVersion"] == agreed
    assert negotiate(requested).value == agreed


@pytest.mark.requirement("ERA-17")
def test_supported_versions_are_newest_first():
    """The order in which a client should prefer them."""
    assert supported_versions() == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


@pytest.mark.requirement("LIFE-1", "TL-1", "RS-1", "PR-1", "CP-1", "LG-1", "MTH-1")
def test_initialize_answers_what_the_server_is_and_offers():
    """LIFE-1, in the newest revision with every field it knows."""
    assert answer(initialize("2025-11-25"), NEW) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {},
                "resources": {"subscribe": True},
                "prompts": {"listChanged": True},
                "completions": {},
                "logging": {},
            },
            "serverInfo": {
                "name": "superpi",
                "title": "Super-Pi",
                "version": "1.0",
                "description": "A server.",
                "websiteUrl": "https://example.org",
            },
            "instructions": "Be careful.",
        },
    }


@pytest.mark.requirement("LIFE-8", "CP-1", "FLD-1", "FLD-2", "FLD-3")
def test_the_oldest_revision_gets_only_the_fields_it_knows():
    """Section 30: no title, no completions capability."""
    result = answer(initialize("2024-11-05"), NEW)["result"]
    assert result["serverInfo"] == {"name": "superpi", "version": "1.0"}
    offered = {"tools": {}, "resources": {"subscribe": True}, "prompts": {"listChanged": True}, "logging": {}}
    assert result["capabilities"] == offered


def test_initialize_keeps_who_the_client_is():
    """What later revisions of a session need of its client is in the state, and in a fact for the log."""
    step = ENGINE.receive(json.dumps(initialize("1999-01-01")).encode(), State(principal="local:a", harness="h"))
    assert step.state == State(
        "local:a", "h", Revision.R2025_11_25, {"name": "test", "version": "1"}, {}, initialized=False
    )
    assert step.facts == (Opened("1999-01-01", Revision.R2025_11_25),)


def test_initialized_is_noted_once():
    """The one change that the handshake's last message makes."""
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    before = replace(opened(), initialized=False)
    assert ENGINE.handle_message(note, before, perform) == (None, opened())
    assert ENGINE.handle_message(note, opened(), perform) == (None, opened())


def test_a_second_initialize_agrees_anew():
    """A proxy that shares one connection sends a second one (supergateway does)."""
    step = ENGINE.receive(json.dumps(initialize("2024-11-05")).encode(), opened())
    assert step.state.revision is R1


@pytest.mark.requirement("LIFE-5")
@pytest.mark.parametrize(
    "params",
    [
        pytest.param({}, id="no version"),
        pytest.param({"protocolVersion": 3}, id="a version that is a number"),
        pytest.param({"protocolVersion": "2025-06-18", "capabilities": []}, id="capabilities that are a list"),
        pytest.param({"protocolVersion": "2025-06-18", "clientInfo": "me"}, id="client info that is a string"),
        pytest.param({"protocolVersion": "2025-06-18", "clientInfo": {"name": "x" * 20_000}}, id="a huge name"),
    ],
)
def test_a_malformed_initialize_is_invalid_params_and_opens_nothing(params):
    """Nothing is agreed on, so nothing changes."""
    step = ENGINE.receive(json.dumps(request("initialize", params)).encode(), NEW)
    assert json.loads(step.reply.encode())["error"]["code"] == -32602
    assert (step.state, step.facts) == (NEW, ())


@pytest.mark.requirement("LIFE-7", "LIFE-12", "PNG-1")
@pytest.mark.parametrize("method", ["tools/list", "resources/read", "no/such"])
def test_before_initialize_only_ping_is_answered(method):
    """LIFE-7, LIFE-12."""
    assert answer(request(method), NEW)["error"]["code"] == -32600
    assert answer(request("ping"), NEW)["result"] == {}


# --- JSON-RPC


@pytest.mark.requirement("RPC-5", "PNG-1")
@pytest.mark.parametrize("id", [0, 1, -7, 2**53 + 1, "", "1", "é", "a" * 1000])
def test_the_id_comes_back_as_it_was(id):
    """RPC-5: value and JSON type."""
    assert answer(request("ping", id=id)) == {"jsonrpc": "2.0", "id": id, "result": {}}


@pytest.mark.requirement("RPC-2", "RPC-7", "ERR-2")
@pytest.mark.parametrize("id", [None, True, False, 1.5, 1.0, [], {}, [1]])
def test_other_ids_are_refused_without_one(id):
    """RPC-2; an id that cannot be read is left out, not null (RPC-7)."""
    reply = answer(request("ping", id=id))
    assert (reply["error"]["code"], "id" in reply) == (-32600, False)


@pytest.mark.requirement("RPC-1", "RPC-8", "ERR-1", "ERR-2", "ERR-3", "ERR-4")
@pytest.mark.parametrize(
    ("raw", "code", "id"),
    [
        pytest.param(b"{", -32700, None, id="text that is not JSON"),
        pytest.param(b"\xff", -32700, None, id="bytes that are not UTF-8"),
        pytest.param(b"1", -32600, None, id="a number"),
        pytest.param(b'"ping"', -32600, None, id="a string"),
        pytest.param(b"null", -32600, None, id="null"),
        pytest.param(b"{}", -32600, None, id="an empty object"),
        pytest.param(b'{"jsonrpc":"1.0","id":4,"method":"ping"}', -32600, 4, id="another version of JSON-RPC"),
        pytest.param(b'{"id":4,"method":"ping"}', -32600, 4, id="no version of JSON-RPC"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":7}', -32600, 4, id="a method that is a number"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', -32600, 4, id="params in an array"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"ping","params":"x"}', -32600, 4, id="params in a string"),
        pytest.param(b'{"jsonrpc":"2.0","id":4}', -32600, 4, id="neither a call nor an answer"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"result":{},"error":{}}', -32600, 4, id="a result and an error"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"ping","result":{}}', -32600, 4, id="a call with a result"),
        pytest.param(b'{"jsonrpc":"2.0","result":{}}', -32600, None, id="an answer without an id"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":"\\u0000"}}', -32602, 4, id="a NUL"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":"\\ud800"}}', -32602, 4, id="half a pair"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":1,"a":2}}', -32602, 4, id="a key twice"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"a":99999999999999999999}}', -32602, 4, id="65 bits"
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, None, id="half a pair in the id"),
        pytest.param(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % 10**20, -32602, 10**20, id="65 bits in the id"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', -32601, 4, id="a method that does not exist"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"server/discover"}', -32601, 4, id="a later era's method"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"logging/setLevel"}', -32602, 4, id="no level"),
    ],
)
def test_refuses(raw, code, id):
    """Section 28: the code, and the id where it could be read."""
    reply = answer(raw)
    assert reply == {"jsonrpc": "2.0", "error": reply["error"]} | ({} if id is None else {"id": id})
    assert reply["error"]["code"] == code
    assert reply["error"]["message"]


def test_null_params_count_as_none():
    """Some clients write them out."""
    assert answer(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}')["result"] == {}


@pytest.mark.requirement("RPC-9", "CAN-3")
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": None}},
        {"method": "notifications/cancelled"},
        {"method": "notifications/no/such"},
        {"method": "tools/list"},
        {"method": "initialize"},
        {"method": "notifications/x", "params": [1]},
        {"method": 7},
        {"method": "notifications/x", "result": {}},
        {"id": 3, "result": {}},
        {"id": 3, "error": {"code": 1, "message": "no"}},
    ],
)
def test_never_answers(message):
    """RPC-9: notifications, whatever they say, and answers to requests that we never made."""
    assert answer({"jsonrpc": "2.0"} | message) is None
    assert answer({"jsonrpc": "2.0"} | message, NEW) is None


@pytest.mark.requirement("CAN-1")
def test_a_cancellation_is_a_fact_with_the_id_as_sent():
    """CAN-1: the transport knows what runs under it."""
    raw = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}'
    assert ENGINE.receive(raw, opened()).facts == (CancelRequested("7"),)


# --- batches


PING = request("ping")
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWER = {"jsonrpc": "2.0", "id": 9, "result": {}}


@pytest.mark.requirement("BAT-1", "BAT-4", "BAT-7")
@pytest.mark.parametrize("revision", [R1, R2, R3])
def test_a_batch_is_answered_request_by_request(revision):
    """BAT-1, BAT-4, BAT-7: one response a request in order, none for notifications, one for what is no message."""
    batch = [request("ping", id="a"), NOTE, call("echo", text="hi"), 7, request("no/such", id=2)]
    reply = answer(batch, opened(revision))
    assert [(item.get("id"), item.get("error", {}).get("code")) for item in reply] == [
        ("a", None),
        (1, None),
        (None, -32600),
        (2, -32601),
    ]


@pytest.mark.requirement("BAT-2", "BAT-5", "BAT-6", "BAT-7", "BAT-8")
@pytest.mark.parametrize(
    ("batch", "state"),
    [
        pytest.param([], opened(), id="an empty array"),
        pytest.param([PING], opened(R4), id="on the first revision without batches"),
        pytest.param([PING], NEW, id="before initialize"),
        pytest.param([PING, initialize()], opened(), id="with initialize in it"),
        pytest.param([PING, ANSWER], opened(), id="of requests and responses"),
        pytest.param([PING] * (MAX_BATCH + 1), opened(), id="of too many"),
    ],
)
def test_a_batch_is_refused_as_a_whole(batch, state):
    """BAT-2, BAT-5, BAT-6, BAT-8: one error, not in an array."""
    reply = answer(batch, state)
    assert reply["error"]["code"] == -32600


@pytest.mark.requirement("BAT-3", "BAT-7")
@pytest.mark.parametrize("batch", [[NOTE, NOTE], [ANSWER], [ANSWER, NOTE]])
def test_a_batch_without_requests_gets_nothing(batch):
    """BAT-3."""
    assert answer(batch) is None


# --- outcomes


def waiting():
    return ENGINE.receive(json.dumps(call("echo", text="hi")).encode(), opened())


@pytest.mark.requirement("CAN-2", "ERR-11")
def test_a_cancelled_request_gets_an_answer_only_where_one_is_owed():
    """CAN-2: none on stdio; HTTP has to end its exchange."""
    assert ENGINE.resume(waiting(), Outcome(0, Cancelled(owed=False))).reply is None
    reply = ENGINE.resume(waiting(), Outcome(0, Cancelled(owed=True))).reply
    assert json.loads(reply.encode())["error"]["code"] == -32800


@pytest.mark.requirement("ERR-5")
@pytest.mark.parametrize("value", [Broken("abc"), Completion(())])
def test_a_fault_of_the_servers_own_is_an_internal_error(value):
    """Also an outcome of a kind that the effect cannot have."""
    reply = ENGINE.resume(waiting(), Outcome(0, value)).reply
    assert json.loads(reply.encode())["error"]["code"] == -32603


def test_an_outcome_that_nothing_waits_for_changes_nothing():
    """A slot is filled once."""
    done = ENGINE.resume(waiting(), Outcome(0, ToolResult(())))
    assert ENGINE.resume(done, Outcome(0, Broken("late"))) == done
    assert ENGINE.resume(done, Outcome(5, Broken("nowhere"))) == done
