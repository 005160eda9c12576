"""What a request came to, as children of its span: on a real server with a collector, over both databases."""

from contextlib import ExitStack

import httpx
import pytest

from tests.support import postgres
from tests.support.asking import Asked, does, harness_settings, tool
from tests.support.collector import attributes, collector, spans
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: In what a caller sends; no span may hold it.
CANARY = "canary-7431"
INTERNAL, SERVER, CLIENT = 1, 2, 3


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def told(request):
    """The database's name, and all spans of some calls."""
    with collector() as found, ExitStack() as stack:
        workspace, home, harnesses = [stack.enter_context(folder()) for _ in range(3)]
        settings = {"SUPERPI_OTLP_ENDPOINT": found.url, "NO_PROXY": "*"} | harness_settings(harnesses)
        own(harnesses)
        if request.param == "postgresql":
            settings["SUPERPI_DATABASE_URL"] = stack.enter_context(stack.enter_context(postgres.running()).database())
        (workspace / CANARY).write_text("x", "utf-8")
        with serving(unprivileged(), workspace, home, **settings) as server, httpx.Client(trust_env=False) as http:
            client = Asked(http, server.url, does("decline")).begin()
            client.call(tool("read", 1, path=CANARY))
            client.call(tool("read", 2, path=f"{CANARY}-2"))
            client.call(tool("bash", 3, command=f"touch {CANARY}-3"))
            client.call(tool("write", 4, path=7, content=CANARY))
            client.call(tool(CANARY, 5))
    assert CANARY.encode() not in b"".join(found.raw)
    return request.param, [span for span, _ in spans(found)]


def tools(told, name):
    return [span for span in told[1] if span.name == f"execute_tool {name}"]


def parent(told, span):
    return next(one for one in told[1] if one.span_id == span.parent_span_id)


def test_a_tool_call_is_a_part_of_its_request(told):
    fine, failed = tools(told, "read")
    assert {(parent(told, span).name, parent(told, span).kind, span.kind) for span in (fine, failed)} == {
        ("POST /mcp", SERVER, INTERNAL)
    }
    common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read"}
    assert attributes(fine) == common | {"superpi.decision": "allowed"}
    assert attributes(failed) == common | {"superpi.decision": "failed", "error.type": "tool_error"}
    assert (fine.status.code, failed.status.code, parent(told, failed).status.code) == (0, 2, 0)


def test_a_call_that_was_refused_says_by_which_layer(told):
    """Here a person said no; the question took statements, which are parts of the call."""
    (span,) = tools(told, "bash")
    said = attributes(span)
    assert (said["superpi.decision"], said["error.type"], said["superpi.refusal.layer"]) == (
        ("refused", "refused", "rule")
    )
    assert {one.name for one in told[1] if one.parent_span_id == span.span_id} >= {"SELECT grant"}


def test_a_call_that_comes_to_no_tool_is_no_part(told):
    """Its request says what became of it, and not what the caller wrote."""
    assert (tools(told, "write"), tools(told, CANARY)) == ([], [])
    decisions = [attributes(span).get("superpi.decision") for span in told[1] if span.kind == SERVER]
    assert [one for one in decisions if one] == ["failed", "refused"]


def test_a_statement_is_a_part_of_what_it_serves(told):
    """By what it does and to which table; its text is no part of it."""
    database, found = told
    (inserted,) = [span for span in found if span.name == "INSERT session"]
    assert (inserted.kind, parent(told, inserted).name) == (CLIENT, "POST /mcp")
    assert attributes(inserted) == {
        "db.system.name": database,
        "db.operation.name": "INSERT",
        "db.collection.name": "session",
    }
    does = {span.name.partition(" ")[0] for span in found if span.kind == CLIENT}
    assert does <= {"BEGIN", "SELECT", "INSERT", "UPDATE", "DELETE"}


def test_what_the_server_does_for_itself_is_no_part_of_a_request(told):
    """Rows of the audit log are written behind, and changes are read all the time."""
    assert not [span.name for span in told[1] if "audit" in span.name or "change" in span.name.partition(" ")[2]]
    assert all(span.parent_span_id for span in told[1] if span.kind != SERVER)
