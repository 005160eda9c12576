"""Multi round-trip requests: the state that travels with a question, and who may bring it back."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.protocol.content import PromptMessage, Text, ToolResult
from mcp.protocol.effects import CapabilityMissing, InputRequired
from mcp.protocol.engine import Engine
from mcp.protocol.questions import Elicit, ElicitUrl, ListRoots, Sample
from mcp.protocol.revisions import Revision
from mcp.protocol.state import State
from tests.support.eras import answer, meta, request
from tests.support.offers import ENGINE, OFFER, perform

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
ASKED = {
    "name": Elicit("Who?", SCHEMA),
    "model": Sample((PromptMessage("user", Text("Hi")),), 10),
    "roots": ListRoots(),
    "page": ElicitUrl("Open it.", "https://example.org/x", "e1"),
}
CALL = {"name": "echo", "arguments": {"text": "x", "more": [1, {"b": 2, "a": 1}]}}
YES = {"action": "accept", "content": {"ok": True}}
ALICE = State("local:alice")


def asks(effect):
    """A tool that wants one thing after another, whenever it was sent, and says what it got."""
    brought = {**effect.volunteered, **effect.answers}
    missing = next((key for key in ("name", "roots") if key not in brought), None)
    if missing is None:
        return ToolResult((Text(repr(brought)),))
    return InputRequired({missing: ASKED[missing]}, until=100.0)


def first(state=ALICE, params=CALL):
    return answer(request("tools/call", params), state=state, act=asks)[0]["result"]


def again(token, responses, state=ALICE, params=CALL, *, now=50.0, engine=ENGINE, act=asks):
    retry = params | {"requestState": token, "inputResponses": responses}
    return answer(request("tools/call", retry, id=2), state=state, act=act, now=now, engine=engine)[0]


@pytest.mark.requirement("MRTR-1", "MRTR-3", "MRTR-4", "MRTR-11", "EL-4", "EL-6", "SA-2", "MTH-5", "FLD-4")
def test_a_question_goes_out_without_an_envelope():
    """MRTR-3, MRTR-4, MRTR-11, EL-6: by method and parameters, and nothing may be kept of it."""
    result = answer(request("tools/call", CALL), act=lambda _: InputRequired(ASKED, 1.0))[0]["result"]
    assert isinstance(result.pop("requestState"), str)
    assert result == {
        "resultType": "input_required",
        "inputRequests": {
            "name": {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA},
            },
            "model": {
                "method": "sampling/createMessage",
                "params": {
                    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
                    "maxTokens": 10,
                },
            },
            "roots": {"method": "roots/list", "params": {}},
            "page": {
                "method": "elicitation/create",
                "params": {"mode": "url", "message": "Open it.", "url": "https://example.org/x"},
            },
        },
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "superpi", "version": "1.0"}},
    }


@pytest.mark.requirement("MRTR-9", "MRTR-10", "MOD-6")
def test_the_answers_of_every_round_reach_the_call():
    """Each round carries what came before, so that no server has to remember anything (MRTR-9)."""
    second = again(first()["requestState"], {"name": YES, "unknown": 1})["result"]
    assert list(second["inputRequests"]) == ["roots"]
    third = again(second["requestState"], {"roots": {"roots": []}})["result"]
    assert third["content"][0]["text"] == repr({"name": YES, "roots": {"roots": []}})


@pytest.mark.requirement("MRTR-10")
def test_an_answer_that_is_missing_is_asked_for_again():
    """MRTR-10: not an error; neither are answers to what nobody asked."""
    assert list(again(first()["requestState"], {})["result"]["inputRequests"]) == ["name"]
    for responses in ({"wrong": YES}, {}, None):
        unasked = answer(request("tools/call", CALL | {"inputResponses": responses}), act=asks)[0]
        assert list(unasked["result"]["inputRequests"]) == ["name"]


def test_an_answer_may_come_before_the_question():
    """It is the client's own word either way; what nobody asks for is passed over."""
    early = CALL | {"inputResponses": {"name": YES, "roots": {"roots": []}, "other": 1}}
    result = answer(request("tools/call", early), act=asks)[0]["result"]
    assert result["resultType"] == "complete"


def test_an_answer_from_before_the_question_is_told_apart():
    """Nothing says for which call it was given: who must not take it for an answer to this one sees that."""
    early = CALL | {"inputResponses": {"name": YES}}
    seen = []
    answer(request("tools/call", early), act=lambda effect: (seen.append(effect), ToolResult(()))[1])
    assert [(effect.answers, effect.volunteered) for effect in seen] == [({}, {"name": YES})]


def test_the_same_request_written_otherwise_is_the_same():
    """The digest is of what it says, not of how a client orders its keys."""
    other = {"arguments": {"more": [1, {"a": 1, "b": 2}], "text": "x"}, "name": "echo"}
    assert "result" in again(first()["requestState"], {"name": YES}, params=other)


@pytest.mark.requirement("MRTR-6", "MRTR-7", "AU-24", "AU-20")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"state": State("local:bob")}, id="another person"),
        pytest.param({"state": State("local:alice", "planner")}, id="another harness"),
        pytest.param({"params": {"name": "echo", "arguments": {"text": "y"}}}, id="other arguments"),
        pytest.param({"params": {"name": "rich", "arguments": CALL["arguments"]}}, id="another tool"),
        pytest.param({"now": 100.5}, id="too late"),
        pytest.param({"engine": Engine(OFFER, (b"other",))}, id="another server's key"),
    ],
)
def test_a_state_is_good_for_its_request_alone(changes):
    """MRTR-6, MRTR-7: an error, not another question."""
    reply = again(first()["requestState"], {"name": YES}, **changes)
    assert reply["error"]["code"] == -32602


@pytest.mark.requirement("MRTR-6")
@given(data=st.data())
def test_a_state_that_was_tampered_with_is_refused(data):
    """Whichever byte it was."""
    raw = bytearray(base64.urlsafe_b64decode(first()["requestState"] + "=="))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    token = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
    assert again(token, {"name": YES})["error"]["code"] == -32602


@given(data=st.data())
def test_a_state_has_one_spelling(data):
    """A character more, or another one in its place, is another state."""
    token = first()["requestState"]
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(
        st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_").filter(token[place].__ne__)
    )
    for changed in (token[:place] + other + token[place + 1 :], token + other, token + "="):
        assert again(changed, {"name": YES})["error"]["code"] == -32602


@pytest.mark.requirement("MRTR-6")
@pytest.mark.parametrize("token", ["", "x", "ä", 1, {}, "A" * 100_000])
def test_a_state_that_is_none_is_refused(token):
    """Never a failure of the server's."""
    assert again(token, {})["error"]["code"] == -32602


def test_answers_are_an_object_and_have_an_end():
    """What travels to and fro stays small."""
    token = first()["requestState"]
    assert again(token, [])["error"]["code"] == -32602
    early = CALL | {"inputResponses": {"name": "y" * 70_000}}
    assert answer(request("tools/call", early), act=asks)[0]["error"]["code"] == -32602
    assert again(token, {"name": {"x": "y" * 70_000}})["error"]["code"] == -32602


def test_keys_are_rotated_without_losing_a_question():
    """The first signs, all verify."""
    rotated = Engine(OFFER, (b"new", *ENGINE.keys))
    assert "result" in again(first()["requestState"], {"name": YES}, engine=rotated)


@pytest.mark.requirement("MRTR-2")
def test_prompts_and_resources_ask_too():
    """MRTR-2: and nothing else does."""
    for method, params in (
        ("prompts/get", {"name": "plan", "arguments": {"goal": "x"}}),
        ("resources/read", {"uri": "superpi://workspace/context"}),
    ):
        result = answer(request(method, params), act=lambda _: InputRequired({"a": ListRoots()}, 1.0))[0]["result"]
        assert result["resultType"] == "input_required"
    reply = answer(request("resources/list"), act=lambda _: InputRequired({"a": ListRoots()}, 1.0))[0]
    assert reply["error"]["code"] == -32603


@pytest.mark.requirement("MOD-8", "HM-14", "ERR-9")
def test_what_a_client_did_not_declare_is_said_in_its_own_words():
    """MOD-8: an object of capabilities, and 400; a handshake client's model reads it in the result."""
    missing = CapabilityMissing({"sampling": {}})
    reply, status = answer(request("tools/call", CALL), act=lambda _: missing)
    assert (status, reply["error"]["code"]) == (400, -32021)
    assert reply["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    legacy = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}
    reply, status = answer(legacy, state=State(revision=Revision.R2025_11_25), act=lambda _: missing)
    assert (status, reply["result"]["isError"]) == (200, True)


def test_a_request_without_a_question_is_answered_at_once():
    """The machinery costs those nothing that do not use it."""
    assert answer(request("tools/call", CALL, claim=meta()), act=perform)[0]["result"]["resultType"] == "complete"
