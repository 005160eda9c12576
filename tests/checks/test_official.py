"""The judge of what servers send sees what is wrong, so that its silence in every other test says something."""

import httpx
import pytest

from tests.support.eras import meta, request
from tests.support.official import Connection, check

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MODERN = request("tools/list")
RIGHT = {"tools": []}
WHOLE = RIGHT | {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def reply(result, id=1):
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error(code, id=1):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "No."}}


def note(method, params=None):
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


@pytest.mark.parametrize(
    ("received", "sent", "revision"),
    [
        pytest.param(reply({}), LIST, "2025-11-25", id="a result without its list"),
        pytest.param(reply({"tools": [{"name": "a"}]}), LIST, None, id="a tool without a schema"),
        pytest.param(reply(RIGHT), MODERN, None, id="a stateless result that does not say its kind"),
        pytest.param(reply(RIGHT, "1"), LIST, None, id="an id of another type"),
        pytest.param(reply(RIGHT, 2), LIST, None, id="an answer to nothing"),
        pytest.param([reply(RIGHT), reply({}, 2)], [LIST, LIST | {"id": 2}], None, id="one of two"),
        pytest.param(error(-32603, None), LIST, None, id="a null id"),
        pytest.param(error(-32002), MODERN, None, id="a code of the other era"),
        pytest.param(error(-32021), LIST, "2025-11-25", id="a code of this era on the other"),
        pytest.param(error(-32001), LIST, None, id="a code that is kept for nobody"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": -1}}, LIST, None, id="an error without words"),
        pytest.param(note("notifications/no/such"), LIST, None, id="a notification that there is not"),
        pytest.param(note("notifications/progress", {"progress": 1}), LIST, None, id="progress without a token"),
        pytest.param({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}, MODERN, None, id="a request in this era"),
        pytest.param(
            {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "?"}},
            LIST,
            "2025-11-25",
            id="a question without its form",
        ),
    ],
)
def test_what_is_wrong_is_seen(received, sent, revision):
    with pytest.raises((AssertionError, ValueError)):
        check(received, sent, revision)


@pytest.mark.parametrize(
    ("received", "sent", "revision"),
    [
        pytest.param(reply(RIGHT), LIST, "2024-11-05", id="a list"),
        pytest.param(reply(WHOLE), MODERN, None, id="a stateless list"),
        pytest.param(error(-32022), request("tools/list", claim=meta("v999")), None, id="a version that is none"),
        pytest.param({"jsonrpc": "2.0", "error": {"code": -32700, "message": "No."}}, None, None, id="no id at all"),
        pytest.param(note("notifications/tools/list_changed"), LIST, None, id="a notification"),
        pytest.param({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}, LIST, None, id="a request of a session"),
    ],
)
def test_what_is_right_goes_through(received, sent, revision):
    assert check(received, sent, revision) is received


def test_a_connection_is_judged_by_what_it_agreed_on():
    connection = Connection()
    connection.sent({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
    agreed = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "t", "version": "1"}}
    connection.received(reply(agreed, 0))
    with pytest.raises(AssertionError):
        connection.received({"jsonrpc": "2.0", "id": 9, "method": "server/discover"})


def test_every_http_client_is_watched():
    """Whoever makes one, and however."""
    assert httpx.HTTPTransport.handle_request.__module__ == check.__module__
    assert httpx.ASGITransport.handle_async_request.__module__ == check.__module__
