"""U+0000 in a message: the model hears of it in its arguments, and the client anywhere else; nobody acts on it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.protocol.effects import CallTool
from mcp.protocol.revisions import HANDSHAKE
from mcp.protocol.state import State
from tests.support import eras
from tests.support.exchanges import R2, answer, call, initialize, opened, request
from tests.support.offers import ENGINE, perform

NUL = "\0"
TOLD = "The arguments of echo are not valid:\n- {}: U+0000 is not allowed, leave it out"


def told(reply):
    """The text of a result that is an error."""
    assert reply["result"]["isError"] is True
    [block] = reply["result"]["content"]
    return block["text"]


@pytest.mark.requirement("TL-13", "TL-15")
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        pytest.param({"text": NUL}, "text", id="alone"),
        pytest.param({"text": f"a{NUL}b{NUL}"}, "text", id="within a text, twice"),
        pytest.param({"text": "a", "more": [1, {"deep": ["", NUL]}]}, "more[1].deep[1]", id="deep"),
        pytest.param({"unknown": NUL}, "unknown", id="in what the tool does not know"),
    ],
)
@pytest.mark.parametrize("revision", HANDSHAKE)
def test_in_an_argument_it_is_the_tools_error_and_says_where(revision, arguments, place):
    """Where every fault of an argument is (SEP-1303)."""
    assert told(answer(call("echo", **arguments), opened(revision))) == TOLD.format(place)


@pytest.mark.requirement("TL-13")
def test_in_an_argument_of_a_stateless_call_as_well():
    reply, status = eras.answer(eras.request("tools/call", {"name": "echo", "arguments": {"text": NUL}}))
    assert (told(reply), status) == (TOLD.format("text"), 200)


def test_every_place_is_named_up_to_ten():
    lines = told(answer(call("echo", text=NUL, more=[NUL] * 20))).split("\n- ")
    assert [line.partition(":")[0] for line in lines[1:]] == ["text", *(f"more[{n}]" for n in range(9))]


GOOD = call("echo", text="a")
ARGUED = call("echo", text=NUL)


@pytest.mark.requirement("ERR-1", "ERR-4")
@pytest.mark.parametrize(
    ("message", "code", "id"),
    [
        pytest.param(GOOD | {"method": NUL}, -32602, 1, id="the method"),
        pytest.param(GOOD | {"id": NUL}, -32602, NUL, id="the id"),
        pytest.param(GOOD | {NUL: 1}, -32602, 1, id="a key of the message"),
        pytest.param(GOOD | {"params": GOOD["params"] | {"name": NUL}}, -32602, 1, id="the tool's name"),
        pytest.param(GOOD | {"params": GOOD["params"] | {"_meta": {"a": NUL}}}, -32602, 1, id="metadata"),
        pytest.param(GOOD | {"params": GOOD["params"] | {"arguments": NUL}}, -32602, 1, id="arguments that are none"),
        pytest.param(call("echo", text={NUL: 1}), -32602, 1, id="a key of an argument"),
        pytest.param(call("echo", **{NUL: "a"}), -32602, 1, id="an argument's name"),
        pytest.param(ARGUED | {"more": NUL}, -32602, 1, id="an argument, and beside the params"),
        pytest.param(ARGUED | {"params": ARGUED["params"] | {"_meta": {"a": NUL}}}, -32602, 1, id="both"),
        pytest.param(ARGUED | {"jsonrpc": "1.0"}, -32602, 1, id="an argument of what is no request"),
        pytest.param(ARGUED | {"id": None}, -32700, None, id="an argument of a call without an id"),
        pytest.param(ARGUED | {"params": ARGUED["params"] | {"name": "no"}}, -32602, 1, id="no such tool"),
        pytest.param(request("prompts/get", {"name": "plan", "arguments": {"goal": NUL}}), -32602, 1, id="a prompt"),
        pytest.param(request("resources/read", {"uri": NUL}), -32602, 1, id="a resource"),
        pytest.param(
            initialize(clientInfo={"name": NUL, "version": "1"}), -32602, 1, id="what a client says of itself"
        ),
    ],
)
def test_anywhere_else_the_message_is_refused(message, code, id):
    reply = answer(message)
    assert (reply["error"]["code"], reply.get("id")) == (code, id)


def test_with_another_fault_of_the_text_the_message_is_refused():
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\\u0000"%s}}}'
    for fault in (b',"text":"a"', b',"n":99999999999999999999'):
        assert answer(raw % fault)["error"]["code"] == -32602
    assert "result" in answer(raw % b"")


@pytest.mark.parametrize("other", [GOOD, call("no/such"), {"jsonrpc": "2.0", "method": "notifications/initialized"}])
def test_a_batch_is_taken_where_no_other_message_holds_one(other):
    replies = answer([ARGUED, other], opened(R2))
    assert told(replies[0]) == TOLD.format("text")
    spoiled = answer([ARGUED, other | {"x": NUL}], opened(R2))
    assert spoiled["error"]["code"] == -32700


TEXT = st.text(st.sampled_from("a\0\\u0"), max_size=3)
VALUES = st.recursive(
    TEXT | st.integers(0, 9), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=4
)
PARAMS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["echo", "rich", "no/such", "echo\0"]),
        "arguments": st.dictionaries(st.just("text") | TEXT, VALUES, max_size=3),
    },
    optional={"_meta": VALUES, "x": VALUES},
)
CALLS = st.fixed_dictionaries(
    {
        "jsonrpc": st.just("2.0"),
        "id": TEXT | st.integers(0, 9),
        "method": st.just("tools/call"),
        "params": PARAMS,
    }
)


@given(st.lists(CALLS, min_size=1, max_size=3), st.sampled_from([*HANDSHAKE, None]))
def test_none_ever_reaches_a_tool(messages, revision):
    """Whatever else a call holds, alone and in a batch; and a call without one is made as it always was."""
    payload = messages[0] if len(messages) == 1 else messages
    step = ENGINE.receive(json.dumps(payload).encode(), replace(State(), revision=revision))
    for effect in step.effects:
        assert isinstance(effect, CallTool)
        assert "\\u0000" not in json.dumps(effect.arguments).replace("\\\\", "")
    if "\\u0000" not in json.dumps(payload).replace("\\\\", ""):
        calls = [one for one in messages if isinstance(one["params"]["arguments"].get("text"), str)]
        known = [one for one in calls if one["params"]["name"] != "no/such"]
        can = revision is not None and (len(messages) == 1 or revision <= HANDSHAKE[2])
        assert len(step.effects) == (len(known) if can else 0)


def test_a_backslash_before_it_is_none():
    reply, _ = ENGINE.handle_message(json.dumps(call("echo", text="\\u0000")).encode(), opened(), perform)
    assert json.loads(reply)["result"]["content"] == [{"type": "text", "text": "\\u0000"}]
