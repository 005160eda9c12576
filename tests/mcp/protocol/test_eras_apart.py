"""What belongs to one era or revision and not to another, and what is the same for everybody, on the engine alone."""

import json
from dataclasses import replace

import pytest

from mcp.protocol import encode
from mcp.protocol.arrival import Arrival
from mcp.protocol.content import Audio, BlobContents, Embedded, Image, PromptMessage, ResourceLink, Text, ToolResult
from mcp.protocol.effects import Broken, Completion, Declined, Done, InputRequired, NotFound, Outcome, Prompt
from mcp.protocol.engine import Engine
from mcp.protocol.errors import Reason
from mcp.protocol.offer import Announced, Icon, Offer
from mcp.protocol.questions import ListRoots
from mcp.protocol.revisions import EVERY, HANDSHAKE, STATELESS
from mcp.protocol.state import LogLevel, State
from tests.support.eras import answer, meta, mirror, request
from tests.support.offers import ENGINE, OFFER, perform

R1, R2, R3, R4 = HANDSHAKE
R5 = STATELESS[-1]
CALL = {"name": "echo", "arguments": {"text": "x"}}
READ = {"uri": "superpi://workspace/context"}


def legacy(method, params=None, revision=R4, **changes):
    """The reply to a request on a handshake connection."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return answer(message, state=State(revision=revision, initialized=True), **changes)[0]


# --- codes


@pytest.mark.requirement("RPC-11", "RPC-12", "RPC-13")
@pytest.mark.parametrize("revision", EVERY)
def test_the_kept_codes_that_a_revision_may_send(revision):
    """Whatever a request was refused for; and what is ours lies outside -32768 to -32000 altogether."""
    kept = {face.code for face in (reason.face(revision) for reason in Reason) if -32099 <= face.code <= -32000}
    if revision in STATELESS:
        assert kept == {-32020, -32021, -32022}
    else:
        # The two that only a stateless request is refused for never meet a session.
        assert kept - {-32020, -32022} == {-32002}


@pytest.mark.requirement("RS-4", "RS-5", "PR-3", "ERR-5")
@pytest.mark.parametrize(
    ("method", "params"), [("resources/read", READ), ("prompts/get", {"name": "plan", "arguments": {"goal": "x"}})]
)
def test_a_fault_of_the_servers_own_is_an_internal_error_in_both_eras(method, params):
    for error in (
        answer(request(method, params), act=lambda _: Broken("ref1"))[0]["error"],
        legacy(method, params, act=lambda _: Broken("ref1"))["error"],
    ):
        assert error == {"code": -32603, "message": "Internal error; the server's log has it under ref1"}


@pytest.mark.requirement("RS-4", "ERR-4", "ERR-6")
@pytest.mark.parametrize(("outcome", "code"), [(NotFound("No."), -32002), (Declined("Too many."), -32602)])
def test_a_subscription_that_cannot_be_kept_is_no_missing_resource(outcome, code):
    """Clients forget a resource that is said to be missing."""
    assert legacy("resources/subscribe", READ, act=lambda _: outcome)["error"]["code"] == code


# --- who asks, and how


def whoever():
    """Callers, connections and clients of every kind."""
    yield State(), meta()
    yield State("local:alice", "planner"), meta(clientInfo={"name": "a", "version": "1"})
    yield State("local:bob", log_level=LogLevel.DEBUG), meta(capabilities={"sampling": {}, "roots": {}})
    yield State(revision=R1), meta(capabilities={"extensions": {"org.example/x": {"a": 1}}})


SAME = [
    ("server/discover", "public"),
    ("tools/list", "public"),
    ("prompts/list", "private"),
    ("resources/templates/list", "public"),
]


@pytest.mark.requirement("CA-4", "DISC-6", "TL-2", "PR-2", "AU-23", "MOD-3", "MOD-11", "ERA-18")
@pytest.mark.parametrize(("method", "scope"), SAME)
def test_the_catalogue_is_the_same_whoever_asks(method, scope):
    """Whatever was said or called before on the connection, and whichever extensions its client has.

    Prompts are private all the same: they name a team's harnesses, which a shared cache could show to strangers.
    """
    said = [answer(request(method, claim=claim), state=state)[0]["result"] for state, claim in whoever()]
    assert said == [said[0]] * len(said)
    assert said[0]["cacheScope"] == scope


@pytest.mark.requirement("MOD-3", "MOD-11", "AU-21")
def test_what_a_client_says_of_itself_decides_nothing():
    results = [answer(request("tools/call", CALL, claim=claim))[0] for _, claim in whoever()]
    assert results == [results[0]] * len(results)
    step = ENGINE.receive(
        json.dumps(request("tools/list", claim=meta(clientInfo={"name": "local:root", "principal": "x"}))).encode(),
        State("local:alice"),
    )
    assert step.slots[0].state.principal == "local:alice"


@pytest.mark.requirement("CA-4", "AU-23", "RS-2", "RS-10", "CA-2")
@pytest.mark.parametrize(("method", "params"), [("resources/list", {}), ("resources/read", READ)])
def test_what_is_a_callers_own_is_private_and_not_to_be_kept(method, params):
    result = answer(request(method, params))[0]["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.requirement("DISC-5")
@pytest.mark.parametrize(
    ("claim", "changes", "code"),
    [
        pytest.param({}, {}, -32602, id="without its metadata"),
        pytest.param(meta("v999"), {}, -32022, id="with a version that is not spoken"),
        pytest.param(meta(), {"method": ("tools/list",)}, -32020, id="with another method's header"),
        pytest.param(meta(), {"version": ()}, -32020, id="without the version's header"),
    ],
)
def test_discovery_is_held_to_what_every_request_is_held_to(claim, changes, code):
    message = request("server/discover", claim=claim)
    reply, status = answer(message, mirror(message, **changes), modern=True)
    assert (reply["error"]["code"], status) == (code, 400)


# --- what is declared works


def declaring(**offered):
    return Engine(Offer(OFFER.server, checks=OFFER.checks, **offered), (b"k",))


@pytest.mark.requirement("MOD-13", "DISC-4", "TL-1", "RS-1", "PR-1", "CP-1", "LG-1", "LIFE-9")
@pytest.mark.parametrize(
    ("engine", "declared", "works"),
    [
        pytest.param(declaring(tools=OFFER.tools), {"tools": {}}, ["tools/list"], id="tools"),
        pytest.param(
            declaring(prompts=OFFER.prompts), {"prompts": {}, "completions": {}}, ["prompts/list"], id="prompts"
        ),
        pytest.param(
            declaring(resources=OFFER.resources),
            {"resources": {}},
            ["resources/list", "resources/read"],
            id="resources",
        ),
        pytest.param(
            declaring(templates=OFFER.templates),
            {"resources": {}, "completions": {}},
            ["resources/templates/list"],
            id="templates",
        ),
        pytest.param(declaring(logging=EVERY), {"logging": {}}, ["logging/setLevel"], id="logging"),
        pytest.param(
            declaring(resources=OFFER.resources, announced=Announced(resources=True, updates=True)),
            {"resources": {"subscribe": True, "listChanged": True}},
            ["resources/subscribe", "resources/unsubscribe"],
            id="changes of resources",
        ),
        pytest.param(
            declaring(tools=OFFER.tools, announced=Announced(tools=True)),
            {"tools": {"listChanged": True}},
            ["subscriptions/listen"],
            id="changes of tools",
        ),
    ],
)
def test_what_is_declared_works_and_is_declared_in_both_eras(engine, declared, works):
    params = {"protocolVersion": R4.value, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    for result in (
        answer(request("server/discover"), engine=engine)[0]["result"],
        answer({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, engine=engine)[0]["result"],
    ):
        assert result["capabilities"] == declared
    for method in works:
        given = {**READ, "level": "info", "notifications": {}}
        handshake = method != "subscriptions/listen"
        reply = legacy(method, given, engine=engine) if handshake else answer(request(method, given), engine=engine)[0]
        assert "result" in reply, reply
    completes = legacy("completion/complete", {}, engine=engine)["error"]["code"] != -32601
    assert completes is ("completions" in declared)


@pytest.mark.requirement("CP-4")
def test_completion_that_is_not_there_and_completion_of_what_is_unknown():
    params = {"ref": {"type": "ref/prompt", "name": "no"}, "argument": {"name": "a", "value": ""}}
    assert legacy("completion/complete", params, engine=declaring())["error"]["code"] == -32601
    assert legacy("completion/complete", params, act=lambda _: NotFound("No."))["error"]["code"] == -32602


# --- content by revision


BLOCKS = (
    Text("t"),
    Image("aGk=", "image/png"),
    Audio("aGk=", "audio/wav"),
    Embedded(BlobContents("x:a", "aGk=", "a/b")),
    ResourceLink("x:a", "a", size=3),
)
LINK = {"type": "resource_link", "uri": "x:a", "name": "a", "size": 3}
SOUND = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
AS_TEXT = {"type": "text", "text": "[audio, audio/wav: this protocol revision cannot carry it]"}


@pytest.mark.requirement("CT-1", "FLD-6", "TL-10", "TL-18")
@pytest.mark.parametrize(
    ("revision", "sound", "link"),
    [
        (R1, AS_TEXT, {"type": "text", "text": "a: x:a"}),
        (R2, SOUND, {"type": "text", "text": "a: x:a"}),
        (R3, SOUND, LINK),
        (R4, SOUND, LINK),
    ],
)
def test_each_revision_gets_the_content_that_it_knows(revision, sound, link):
    content = legacy("tools/call", CALL, revision, act=lambda _: ToolResult(BLOCKS))["result"]["content"]
    assert content == [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        sound,
        {"type": "resource", "resource": {"uri": "x:a", "blob": "aGk=", "mimeType": "a/b"}},
        link,
    ]
    assert legacy("tools/call", CALL, revision, act=lambda _: ToolResult(()))["result"] == {"content": []}


@pytest.mark.requirement("PR-4")
@pytest.mark.parametrize("block", BLOCKS[:4], ids=lambda block: type(block).__name__)
def test_a_prompt_may_hold_every_kind_of_content(block):
    """Each is of the official type, as all that the engine answers here."""
    params = {"name": "plan", "arguments": {"goal": "x"}}
    said = legacy("prompts/get", params, act=lambda _: Prompt("P", (PromptMessage("user", block),)))["result"]
    assert said["messages"] == [{"role": "user", "content": encode.block(block, R4)}]


@pytest.mark.requirement("CT-3", "FLD-3")
@pytest.mark.parametrize("revision", EVERY)
def test_icons_are_told_from_2025_11_25_on(revision):
    icon = Icon("data:image/svg+xml;base64,AA==", "image/svg+xml", ("any",), "light")
    told = [{"src": icon.src, "mimeType": icon.mime_type, "sizes": ["any"], "theme": "light"}]
    encoded = [
        encode.server_info(replace(OFFER.server, icons=(icon,)), revision),
        encode.tool(replace(OFFER.tools[0], icons=(icon,)), revision),
        encode.prompt(replace(OFFER.prompts[0], icons=(icon,)), revision),
        encode.resource(replace(OFFER.resources[0], icons=(icon,)), revision),
        encode.template(replace(OFFER.templates[0], icons=(icon,)), revision),
    ]
    assert [json.loads(json.dumps(one.get("icons"))) for one in encoded] == [told if revision >= R4 else None] * 5


@pytest.mark.requirement("JS-2")
@pytest.mark.parametrize("revision", EVERY)
def test_a_schema_goes_out_word_by_word(revision):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"a": {"$anchor": "b", "type": "string"}},
        "properties": {"x": {"$ref": "#b"}},
        "if": {"required": ["x"]},
        "then": {"minProperties": 1},
        "else": False,
        "additionalProperties": False,
    }
    engine = declaring(tools=(replace(OFFER.tools[0], input_schema=schema),))
    listed = answer(request("tools/list"), engine=engine)[0] if revision is R5 else None
    listed = listed or legacy("tools/list", revision=revision, engine=engine)
    assert listed["result"]["tools"][0]["inputSchema"] == schema


# --- rounds, tasks, subscriptions


@pytest.mark.requirement("MRTR-13", "HDR-3")
def test_the_headers_of_a_retry_are_held_against_it_again():
    def asks(effect):
        return Completion(()) if effect.answers else InputRequired({"r": ListRoots()}, until=100.0)

    first = answer(request("tools/call", CALL), act=asks)[0]["result"]
    retry = request("tools/call", CALL | {"requestState": first["requestState"], "inputResponses": {}}, id=2)
    reply, status = answer(retry, mirror(retry, name=("rich",)), act=asks)
    assert (reply["error"]["code"], status) == (-32020, 400)


@pytest.mark.requirement("TSK-1")
def test_a_call_that_asks_to_be_a_task_is_run_as_a_call():
    assert legacy("tools/call", CALL | {"task": {"ttl": 60_000}}) == legacy("tools/call", CALL)


@pytest.mark.requirement("SUB-3", "SUB-4")
@pytest.mark.parametrize(
    ("announced", "honoured"),
    [
        (Announced(prompts=True), {"promptsListChanged"}),
        (Announced(tools=True, resources=True), {"toolsListChanged", "resourcesListChanged"}),
        (Announced(updates=True), {"resourceSubscriptions"}),
    ],
)
def test_what_the_server_does_not_tell_of_is_left_out_of_what_it_honours(announced, honoured):
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    wanted["resourceSubscriptions"] = [READ["uri"]]
    raw = json.dumps(request("subscriptions/listen", {"notifications": wanted})).encode()
    step = replace(ENGINE, offer=replace(OFFER, announced=announced)).receive(raw, State(), Arrival())
    (effect,) = step.effects
    named = {"toolsListChanged": effect.filter.tools, "promptsListChanged": effect.filter.prompts}
    named |= {"resourcesListChanged": effect.filter.resources, "resourceSubscriptions": effect.filter.uris}
    assert {name for name, value in named.items() if value} == honoured
    ended = ENGINE.resume(step, Outcome(0, Done()))
    assert json.loads(ended.reply.encode())["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1


@pytest.mark.requirement("MOD-12")
def test_every_pattern_of_messages_is_there():
    """A result, a result that asks, and a subscription that ends."""
    kinds = [
        answer(request("tools/call", CALL), act=perform)[0]["result"]["resultType"],
        answer(request("tools/call", CALL), act=lambda _: InputRequired({"r": ListRoots()}, 1.0))[0]["result"][
            "resultType"
        ],
        answer(request("subscriptions/listen", {"notifications": {}}))[0]["result"]["resultType"],
    ]
    assert kinds == ["complete", "input_required", "complete"]
