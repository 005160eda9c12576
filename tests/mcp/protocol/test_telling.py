"""What goes to a client beside the reply: notes and questions as messages, by what it asked to hear."""

import json

import pytest
from mcp_types import methods as official

from mcp.protocol import telling
from mcp.protocol.notes import (
    Acknowledged,
    Filter,
    Log,
    Progress,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
)
from mcp.protocol.questions import (
    Elicit,
    Elicited,
    ElicitUrl,
    ListRoots,
    Roots,
    Sample,
    Sampled,
    Unanswered,
    lacking,
    read,
)
from mcp.protocol.revisions import EVERY, HANDSHAKE, STATELESS, Revision
from mcp.protocol.state import LogLevel, State
from mcp.protocol.wire import Request

R1, R2, R3, R4 = HANDSHAKE
R5 = STATELESS[-1]
SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "pick": {"type": "string", "enum": ["a", "b"]},
        "named": {"type": "string", "oneOf": [{"const": "c", "title": "C"}]},
        "sure": {"type": "boolean"},
    },
    "required": ["n"],
}
FORM, URL, MODEL, ROOTS = Elicit("?", SCHEMA), ElicitUrl("?", "https://a", "e"), Sample((), 1), ListRoots()


def told(note, revision=R4, level=None, params=None, id=7):
    raw = telling.message(note, Request(id, "tools/call", params or {}), State(revision=revision, log_level=level))
    return None if raw is None else json.loads(raw)


@pytest.mark.requirement("PRG-1")
@pytest.mark.parametrize("token", ["t", 5, 0])
def test_progress_carries_the_token_that_was_given(token):
    """PRG-1: in its own type."""
    note = told(Progress(1, 2, "half"), params={"_meta": {"progressToken": token}})
    assert note["params"] == {"progressToken": token, "progress": 1, "total": 2, "message": "half"}


@pytest.mark.requirement("PRG-1")
@pytest.mark.parametrize("params", [{}, {"_meta": None}, {"_meta": {}}, {"_meta": {"progressToken": True}}])
def test_progress_that_nobody_asked_for_is_not_told(params):
    """A token is a string or an integer."""
    assert told(Progress(1), params=params) is None


@pytest.mark.requirement("FLD-1")
def test_the_first_revision_knows_no_words_with_progress():
    """Section 30."""
    params = {"_meta": {"progressToken": 1}}
    assert told(Progress(1, None, "x"), R1, params=params)["params"] == {"progressToken": 1, "progress": 1}


@pytest.mark.requirement("LG-2", "LG-3")
@pytest.mark.parametrize(
    ("revision", "wanted", "level", "heard"),
    [
        pytest.param(R4, None, LogLevel.INFO, True, id="a session that never said: from info on"),
        pytest.param(R4, None, LogLevel.DEBUG, False, id="and not debug"),
        pytest.param(R4, LogLevel.DEBUG, LogLevel.DEBUG, True, id="as much as was asked for"),
        pytest.param(R1, LogLevel.ERROR, LogLevel.WARNING, False, id="and no more"),
        pytest.param(R5, None, LogLevel.EMERGENCY, False, id="nothing to a stateless request that never said"),
        pytest.param(R5, LogLevel.NOTICE, LogLevel.NOTICE, True, id="else as much as it asked for"),
        pytest.param(R5, LogLevel.NOTICE, LogLevel.INFO, False, id="and no more either"),
    ],
)
def test_a_log_is_told_to_whoever_wants_to_hear_of_its_level(revision, wanted, level, heard):
    """LG-2, LG-3."""
    note = told(Log(level, {"a": 1}, "x"), revision, wanted)
    assert note == (
        None
        if not heard
        else {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": level.value, "logger": "x", "data": {"a": 1}},
        }
    )


@pytest.mark.requirement("SUB-4", "SUB-5")
@pytest.mark.parametrize("id", [1, "1"])
def test_everything_on_a_subscription_names_it(id):
    """SUB-4, SUB-5: in the type of its id."""
    tag = {"io.modelcontextprotocol/subscriptionId": id}
    filter = Filter(tools=True, prompts=False, resources=True, uris=frozenset({"b", "a"}))
    assert told(Acknowledged(filter), R5, id=id)["params"] == {
        "notifications": {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["a", "b"]},
        "_meta": tag,
    }
    assert told(PromptsChanged(), R5, id=id)["params"] == {"_meta": tag}
    assert told(ResourceUpdated("a"), R5, id=id)["params"] == {"uri": "a", "_meta": tag}


NOTES = [
    Progress(1, 2, "x"),
    Log(LogLevel.ERROR, "x"),
    PromptsChanged(),
    ToolsChanged(),
    ResourcesChanged(),
    ResourceUpdated("superpi://a"),
]


@pytest.mark.requirement("MTH-4")
@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize("note", NOTES, ids=lambda note: type(note).__name__)
def test_every_note_is_of_the_official_type(revision, note):
    """Of its revision."""
    message = told(note, revision, LogLevel.DEBUG, {"_meta": {"progressToken": 1}})
    official.parse_server_notification(message["method"], revision.value, message.get("params"))


@pytest.mark.parametrize("note", NOTES[2:], ids=lambda note: type(note).__name__)
def test_an_announcement_belongs_to_no_request(note):
    """On the handshake revisions."""
    message = json.loads(telling.announcement(note))
    assert "_meta" not in message.get("params", {})
    official.parse_server_notification(message["method"], R4.value, message.get("params"))


@pytest.mark.requirement("EL-4", "FLD-3", "MTH-5")
@pytest.mark.parametrize("revision", [R3, R4])
@pytest.mark.parametrize("question", [FORM, MODEL, ROOTS], ids=lambda question: type(question).__name__)
def test_every_question_is_of_the_official_type(revision, question):
    """EL-4, EL-5: a mode only where there are modes."""
    message = json.loads(telling.question("q1", question, State(revision=revision)))
    assert (message["jsonrpc"], message["id"]) == ("2.0", "q1")
    assert ("mode" in message["params"]) is (isinstance(question, Elicit) and revision is R4)
    official.parse_server_request(message["method"], revision.value, message["params"])


@pytest.mark.requirement("EL-1", "EL-5", "SA-1", "RO-1", "MRTR-5", "LIFE-9", "MTH-5")
@pytest.mark.parametrize(
    ("question", "capabilities", "revision", "required"),
    [
        pytest.param(FORM, {}, R4, {"elicitation": {}}, id="nothing declared"),
        pytest.param(FORM, {"elicitation": {}}, R2, {"elicitation": {}}, id="before there was elicitation"),
        pytest.param(FORM, {"elicitation": {}}, R3, None, id="declared"),
        pytest.param(FORM, {"elicitation": {}}, R4, None, id="without modes it is forms"),
        pytest.param(FORM, {"elicitation": {"form": {}}}, R5, None, id="forms named"),
        pytest.param(FORM, {"elicitation": {"url": {}}}, R4, {"elicitation": {}}, id="URLs alone are no forms"),
        pytest.param(FORM, {"elicitation": True}, R4, {"elicitation": {}}, id="no object"),
        pytest.param(URL, {"elicitation": {}}, R4, {"elicitation": {"url": {}}}, id="forms alone are no URLs"),
        pytest.param(URL, {"elicitation": {"url": {}}}, R3, {"elicitation": {"url": {}}}, id="before there were URLs"),
        pytest.param(URL, {"elicitation": {"url": {}}}, R5, None, id="URLs named"),
        pytest.param(MODEL, {}, R1, {"sampling": {}}, id="no sampling"),
        pytest.param(MODEL, {"sampling": {}}, R1, None, id="sampling"),
        pytest.param(ROOTS, {"roots": None}, R5, {"roots": {}}, id="no roots"),
        pytest.param(ROOTS, {"roots": {}}, R5, None, id="roots"),
    ],
)
def test_what_a_client_lacks_for_a_question(question, capabilities, revision, required):
    """EL-1, SA-1, RO-1, MRTR-5."""
    assert lacking(question, capabilities, revision) == required


@pytest.mark.requirement("MRTR-12")
@pytest.mark.parametrize(
    ("question", "result", "reply"),
    [
        pytest.param(FORM, {"action": "accept", "content": {"n": 1}}, Elicited("accept", {"n": 1}), id="accepted"),
        pytest.param(FORM, {"action": "decline"}, Elicited("decline"), id="declined"),
        pytest.param(FORM, {"action": "cancel", "content": {"n": 1}}, Elicited("cancel"), id="dismissed"),
        pytest.param(URL, {"action": "accept"}, Elicited("accept"), id="a URL needs no content"),
        pytest.param(MODEL, {"role": "assistant", "content": {"type": "text"}}, None, id="a message"),
        pytest.param(ROOTS, {"roots": [{"uri": "file:///a"}]}, Roots(("file:///a",)), id="roots"),
    ],
)
def test_an_answer_is_read(question, result, reply):
    """MRTR-12: whatever the person did."""
    assert read(question, result) == (Sampled(result) if reply is None else reply)


@pytest.mark.requirement("EL-8", "MRTR-10")
@pytest.mark.parametrize(
    ("question", "result"),
    [
        pytest.param(FORM, None, id="nothing"),
        pytest.param(FORM, {"action": "yes"}, id="no action there is"),
        pytest.param(FORM, {"action": ["accept"]}, id="an action that is a list"),
        pytest.param(FORM, {"action": "accept"}, id="nothing that was required"),
        pytest.param(FORM, {"action": "accept", "content": []}, id="content that is a list"),
        pytest.param(FORM, {"action": "accept", "content": {"n": "1"}}, id="a text for a number"),
        pytest.param(FORM, {"action": "accept", "content": {"n": True}}, id="a boolean for a number"),
        pytest.param(FORM, {"action": "accept", "content": {"n": 1, "pick": "z"}}, id="none of the listed"),
        pytest.param(FORM, {"action": "accept", "content": {"n": 1, "named": "z"}}, id="none of the titled"),
        pytest.param(FORM, {"action": "accept", "content": {"n": 1, "sure": 1}}, id="a number for a boolean"),
        pytest.param(MODEL, {"content": "x"}, id="a message of nobody"),
        pytest.param(ROOTS, {"roots": ["file:///a"]}, id="roots that are texts"),
        pytest.param(ROOTS, {}, id="no roots"),
    ],
)
def test_what_does_not_fit_is_no_answer(question, result):
    """EL-8: it is never taken for a yes."""
    assert isinstance(read(question, result), Unanswered)


@pytest.mark.requirement("SUB-3")
@pytest.mark.parametrize(
    ("wanted", "filter"),
    [
        ({}, Filter()),
        ({"promptsListChanged": True, "unknown": 1}, Filter(prompts=True)),
        ({"resourceSubscriptions": ["a", "a"]}, Filter(uris=frozenset({"a"}))),
        ({"toolsListChanged": "yes"}, None),
        ({"resourceSubscriptions": "a"}, None),
        ({"resourceSubscriptions": [1]}, None),
        (None, None),
        ([], None),
    ],
)
def test_a_filter_is_read(wanted, filter):
    """SUB-3: what is absent is not wanted."""
    assert telling.filter_of(Request(1, "subscriptions/listen", {"notifications": wanted})) == filter


@pytest.mark.requirement("EL-5", "FLD-4")
def test_the_oldest_elicitation_has_no_place_for_a_url():
    """The encoder leaves out what a revision does not know; `lacking` keeps it from being asked."""
    assert Revision.R2025_06_18 < Revision.R2025_11_25
    params = json.loads(telling.question("q", URL, State(revision=R4)))["params"]
    assert params == {"mode": "url", "message": "?", "url": "https://a", "elicitationId": "e"}
