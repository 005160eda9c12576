"""What holds for every payload and every session."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.protocol.effects import Outcome
from mcp.protocol.revisions import HANDSHAKE
from mcp.protocol.state import State
from tests.support.offers import ENGINE, perform

BATCHING = HANDSHAKE[:3]
METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "notifications/initialized",
    "notifications/cancelled",
    "no/such",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
IDS = st.integers(-(2**63), 2**63 - 1) | TEXT
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | TEXT
    | st.sampled_from(["echo", "plan", "2025-06-18", "d", "f0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PARAMS = st.dictionaries(
    st.sampled_from(["name", "arguments", "uri", "cursor", "ref", "argument", "protocolVersion", "requestId", "_meta"]),
    VALUES
    | st.just({"text": "x"})
    | st.just({"goal": "x"})
    | st.just({"type": "ref/prompt", "name": "plan"})
    | st.just({"name": "goal", "value": "g"}),
    max_size=4,
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0"]), "method": st.sampled_from(METHODS)},
    optional={"id": IDS, "params": PARAMS},
)
STATES = st.builds(State, revision=st.sampled_from([None, *HANDSHAKE]), initialized=st.booleans())


def encode(value):
    return json.dumps(value).encode()


@pytest.mark.requirement("RPC-1", "RPC-6", "STD-1")
@given(st.binary() | (st.recursive(VALUES, st.lists) | MESSAGES | st.lists(MESSAGES)).map(encode), STATES)
def test_it_never_raises_whatever_the_bytes(raw, state):
    """A reply is JSON-RPC, and the next state is a state."""
    reply, after = ENGINE.handle_message(raw, state, perform)
    assert isinstance(after, State)
    if reply is not None:
        assert b"\n" not in reply
        for item in [parsed] if isinstance(parsed := json.loads(reply), dict) else parsed:
            assert item["jsonrpc"] == "2.0"
            assert ("result" in item) != ("error" in item)


@pytest.mark.requirement("RPC-5", "RPC-9")
@given(MESSAGES, STATES)
def test_a_request_gets_its_id_back_and_a_notification_nothing(message, state):
    """RPC-5 and RPC-9 for every method, known or not, well formed or not."""
    reply, _ = ENGINE.handle_message(encode(message), state, perform)
    if "id" not in message and message["jsonrpc"] == "2.0":
        assert reply is None
    elif "id" in message:
        answered = json.loads(reply)
        assert (answered["id"], type(answered["id"])) == (message["id"], type(message["id"]))


@given(
    st.lists(MESSAGES.filter(lambda message: message["method"] != "initialize"), min_size=1, max_size=5),
    st.sampled_from(BATCHING),
)
def test_a_batch_equals_its_parts(messages, revision):
    """The same responses in the same order, and the same state, as the messages sent one after the other."""
    state = State(revision=revision)
    together, after_batch = ENGINE.handle_message(encode(messages), state, perform)
    apart = []
    for message in messages:
        reply, state = ENGINE.handle_message(encode(message), state, perform)
        apart += [] if reply is None else [json.loads(reply)]
    assert ([] if together is None else json.loads(together)) == apart
    assert after_batch == state


@given(st.lists(MESSAGES, max_size=8))
def test_replaying_a_session_gives_the_same_replies(messages):
    """The engine remembers nothing outside the state."""

    def play():
        state, replies = State(), []
        for message in messages:
            reply, state = ENGINE.handle_message(encode(message), state, perform)
            replies.append(reply)
        return replies, state

    assert play() == play()


@given(st.lists(MESSAGES, min_size=1, max_size=4), STATES, st.randoms(use_true_random=False))
def test_handle_message_equals_receive_and_resume_in_any_order(messages, state, random):
    """Outcomes may come back in whatever order the world finishes."""
    raw = encode(messages[0] if len(messages) == 1 else messages)
    step = ENGINE.receive(raw, state)
    effects = list(step.effects)
    random.shuffle(effects)
    for effect in effects:
        assert step.reply is None
        step = ENGINE.resume(step, Outcome(effect.slot, perform(effect)))
    reply = None if step.reply is None else step.reply.encode()
    assert (reply, step.state) == ENGINE.handle_message(raw, state, perform)
    assert step.effects == ()
