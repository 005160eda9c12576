"""What the engine answers from its offer: lists and pages, tools, prompts, resources, completion."""

import json

import pytest

from mcp.protocol.engine import Engine
from tests.support.exchanges import R1, R2, R3, R4, answer, call, opened, request
from tests.support.offers import ENGINE, OFFER

# --- lists and pages


@pytest.mark.requirement("FLD-1", "FLD-2", "LIFE-8", "LIFE-9", "TL-4", "TL-16", "RS-3", "PG-3")
@pytest.mark.parametrize(
    ("method", "member", "revision", "fields"),
    [
        ("tools/list", "tools", R1, {"name", "description", "inputSchema"}),
        ("tools/list", "tools", R2, {"name", "description", "inputSchema", "annotations"}),
        (
            "tools/list",
            "tools",
            R3,
            {"name", "title", "description", "inputSchema", "outputSchema", "annotations"},
        ),
        ("prompts/list", "prompts", R2, {"name", "description", "arguments"}),
        ("prompts/list", "prompts", R3, {"name", "title", "description", "arguments"}),
        ("resources/list", "resources", R1, {"uri", "name", "description", "mimeType"}),
        ("resources/list", "resources", R4, {"uri", "name", "title", "description", "mimeType"}),
        ("resources/templates/list", "resourceTemplates", R1, {"uriTemplate", "name", "description", "mimeType"}),
        (
            "resources/templates/list",
            "resourceTemplates",
            R3,
            {"uriTemplate", "name", "title", "description", "mimeType"},
        ),
    ],
)
def test_lists_hold_the_fields_of_the_revision(method, member, revision, fields):
    """Section 30."""
    result = answer(request(method), opened(revision))["result"]
    assert set(result[member][0]) == fields
    assert "nextCursor" not in result


def pages(method, member, engine, state):
    items, params = [], {}
    for _ in range(20):
        result = answer(request(method, params), state, engine)["result"]
        assert len(result[member]) <= engine.page_size
        items += result[member]
        if "nextCursor" not in result:
            return items
        params = {"cursor": result["nextCursor"]}
    raise AssertionError("the list does not end")


@pytest.mark.requirement("PG-1", "PG-2", "PG-3", "TL-3")
@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 100])
@pytest.mark.parametrize(
    ("method", "member"), [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")]
)
def test_pages_together_are_the_whole_list(method, member, size):
    """PG-1, PG-3: whatever the size of a page; fixed resources first, then the conversations."""
    whole = pages(method, member, ENGINE, opened())
    assert pages(method, member, Engine(OFFER, (b"k",), size), opened()) == whole
    assert len(whole) == {"tools": 2, "resources": 6, "prompts": 1}[member]


@pytest.mark.requirement("PG-2", "PG-3", "PG-4")
def test_a_cursor_is_good_for_its_list_its_principal_and_its_key_alone():
    """PG-2, PG-4: anything else is invalid params."""
    small = Engine(OFFER, (b"k",), 1)
    cursor = answer(request("tools/list"), opened(), small)["result"]["nextCursor"]

    def outcome(method, cursor, state=None, engine=small):
        reply = answer(request(method, {"cursor": cursor}), state or opened(), engine)
        return reply["error"]["code"] if "error" in reply else "accepted"

    assert outcome("tools/list", cursor) == "accepted"
    assert outcome("tools/list", cursor, engine=Engine(OFFER, (b"new", b"k"), 1)) == "accepted"
    assert outcome("resources/list", cursor) == -32602
    assert outcome("tools/list", cursor, opened(principal="local:b")) == -32602
    assert outcome("tools/list", cursor, engine=Engine(OFFER, (b"x",), 1)) == -32602
    for bad in ("", "0", "AAAA", cursor[:-1] + ("A" if cursor[-1] != "A" else "B"), cursor + "A", "é", None, 3, {}):
        if bad is not None:
            assert outcome("tools/list", bad) == -32602


# --- tools, prompts, resources, completion


@pytest.mark.requirement("TL-10")
def test_a_tool_call_gives_text_and_structure():
    """The whole result."""
    assert answer(call("echo", text="hi"))["result"] == {
        "content": [{"type": "text", "text": "hi"}],
        "structuredContent": {"text": "hi"},
    }


@pytest.mark.requirement("CT-1", "FLD-2", "TL-14", "TL-18")
def test_what_a_revision_does_not_know_becomes_what_it_does():
    """Section 30: no structure and no links before 2025-06-18."""
    new, old = (answer(call("rich", text="hi"), opened(revision))["result"] for revision in (R4, R1))
    assert new == {
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A"},
        ],
        "structuredContent": {"text": "hi"},
        "isError": True,
        "_meta": {"io.superpi/refusal": {"tool": "rich"}},
    }
    assert old["content"][2] == {"type": "text", "text": "A: file:///a"}
    assert "structuredContent" not in old


@pytest.mark.requirement("TL-13", "TL-15")
def test_bad_arguments_are_the_tools_error_in_words():
    """TL-13: the model sees them and can mend them."""
    result = answer(call("echo", text=7))["result"]
    assert result == {
        "content": [{"type": "text", "text": 'The arguments of echo are not valid:\n- "text" is a required property'}],
        "isError": True,
    }


@pytest.mark.requirement("TL-11", "TL-13", "PR-3", "PR-6", "RS-4", "CP-4", "ERR-4", "ERR-6")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        pytest.param("tools/call", {"name": "nope"}, -32602, id="a tool that does not exist"),
        pytest.param("tools/call", {"name": 3}, -32602, id="a tool's name that is a number"),
        pytest.param("tools/call", {}, -32602, id="no tool's name"),
        pytest.param("tools/call", {"name": "echo", "arguments": []}, -32602, id="arguments in an array"),
        pytest.param("prompts/get", {"name": "nope"}, -32602, id="a prompt that does not exist"),
        pytest.param("prompts/get", {"name": "plan"}, -32602, id="a prompt without its argument"),
        pytest.param("prompts/get", {"name": "plan", "arguments": {"goal": 3}}, -32602, id="an argument, no string"),
        pytest.param("prompts/get", {"arguments": {}}, -32602, id="no prompt's name"),
        pytest.param("resources/read", {}, -32602, id="no resource's URI"),
        pytest.param("resources/read", {"uri": "superpi://nope"}, -32002, id="a resource that does not exist"),
        pytest.param("completion/complete", {}, -32602, id="nothing to complete"),
        pytest.param(
            "completion/complete",
            {"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "a", "value": ""}},
            -32602,
            id="completion of another kind",
        ),
        pytest.param(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "a"}},
            -32602,
            id="completion without a value",
        ),
    ],
)
def test_refuses_params(method, params, code):
    """Section 28, with words that name what is wrong."""
    error = answer(request(method, params))["error"]
    assert error["code"] == code
    assert error.get("data") == ({"uri": params["uri"]} if code == -32002 else None)


def test_a_prompt_is_rendered():
    """The whole result."""
    assert answer(request("prompts/get", {"name": "plan", "arguments": {"goal": "it"}}))["result"] == {
        "description": "Plan it.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Plan it."}}],
    }


@pytest.mark.requirement("RS-3", "RS-9")
def test_a_resource_may_have_several_contents():
    """RS-3, RS-9."""
    uri = "superpi://workspace/context"
    assert answer(request("resources/read", {"uri": uri}))["result"] == {
        "contents": [
            {"uri": uri, "mimeType": "text/markdown", "text": "# Context"},
            {"uri": uri, "blob": "aGk="},
        ]
    }


@pytest.mark.requirement("CP-2")
def test_at_most_a_hundred_completions_go_out():
    """CP-2."""
    params = {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "goal", "value": "g"}}
    completion = answer(request("completion/complete", params))["result"]["completion"]
    assert completion == {"values": [f"g{n}" for n in range(100)], "total": 150, "hasMore": True}


@pytest.mark.requirement("CP-3")
@pytest.mark.parametrize(("revision", "context"), [(R2, {}), (R3, {"other": "x"})])
def test_completion_context_counts_from_2025_06_18(revision, context):
    """CP-3."""
    params = {
        "ref": {"type": "ref/resource", "uri": "u"},
        "argument": {"name": "id", "value": ""},
        "context": {"arguments": {"other": "x"}},
    }
    step = ENGINE.receive(json.dumps(request("completion/complete", params)).encode(), opened(revision))
    assert step.effects[0].context == context
