"""What hosts that people use really do, one habit each, against a real server."""

import httpx
import pytest

from tests.support.asking import Asked
from tests.support.eras import meta
from tests.support.raw_http import ANSWER, BOTH, INITIALIZE, INITIALIZED, PING, begin
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

LEGACY = {"accept": BOTH, "content-type": "application/json"}


def discover(http, url, **headers):
    """The probe of a host that speaks 2026-07-28."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}}
    given = LEGACY | {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"} | headers
    return http.post(url, json=message, headers=given)


@pytest.fixture(scope="module")
def guarded():
    """A server that asks for a token, because it never lets anybody in without."""
    settings = {"SUPERPI_ANONYMOUS": "never"}
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


def test_no_host_shakes_hands_again_so_a_session_outlives_its_server(http):
    """They go on with the id that they have, whatever happened to the server."""
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home) as server:
        client = Asked(http, server.url).begin()
        server.kill9()
        server.restart()
        assert client.call(PING)["result"] == {}


def test_a_call_on_a_lost_session_fails_alone(post, session):
    """404 for each, with a body that says what to do, and nothing else ends by it."""
    assert [post(PING, session="gone").status_code for _ in range(3)] == [404] * 3
    assert "initialize" in post(PING, session="gone").json()["error"]["message"]
    assert post(PING, session=session).status_code == 200


def test_gemini_never_names_a_version_and_asks_for_an_older_one(post):
    """2025-06-18, as Codex does, and no `MCP-Protocol-Version` on any request."""
    answer = post(INITIALIZE)
    assert answer.json()["result"]["protocolVersion"] == "2025-06-18"
    session = answer.headers["mcp-session-id"]
    assert post(INITIALIZED, session=session).status_code == 202
    assert post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, session=session).status_code == 200


def test_claude_code_listens(server, http):
    """`subscriptions/listen`, and calls beside it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    message["params"] = {"_meta": meta(), "notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    headers = LEGACY | {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    with http.stream("POST", server.url, json=message, headers=headers) as answer:
        first = next(line for line in answer.iter_lines() if line.startswith("data:"))
        assert "notifications/subscriptions/acknowledged" in first
        assert discover(http, server.url).status_code == 200


def test_most_hosts_never_end_their_session(post):
    """OpenCode, Gemini and Claude send no DELETE: a hundred sessions that are left behind disturb nobody."""
    left = [begin(post, "2025-06-18") for _ in range(100)]
    assert post(PING, session=left[0]).status_code == 200
    assert post(PING, session=left[-1]).status_code == 200


def test_claude_ai_numbers_every_request_one(post, session):
    """Over several chats in one session: each answer is to its own request."""
    assert [post(PING, session=session).json()["id"] for _ in range(3)] == [1, 1, 1]


def test_mcp_remote_looks_around_first(server, post, http):
    """A GET without a session is 405; there is no OAuth metadata where tokens are static."""
    assert http.get(server.url, headers={"accept": "text/event-stream"}).status_code == 405
    base = server.url.removesuffix("/mcp")
    for name in (
        "oauth-protected-resource",
        "oauth-protected-resource/mcp",
        "oauth-authorization-server",
        "openid-configuration",
    ):
        assert http.get(f"{base}/.well-known/{name}").status_code == 404


def test_supergateway_shakes_hands_within_its_session(post, session):
    """The second `initialize` opens another session; the first goes on."""
    again = post(INITIALIZE | {"id": 7}, session=session)
    assert (again.status_code, again.headers["mcp-session-id"] == session) == (200, False)
    assert post(PING, session=session).status_code == 200


def test_typescript_raises_when_a_delete_is_refused_so_it_is_not(server, post, http, session):
    """200 while there is something to end."""
    assert http.delete(server.url, headers={"mcp-session-id": session}).status_code == 200


def test_every_host_takes_any_answer_to_get(server, http, session):
    """405 with what is allowed instead; no stream is opened."""
    answer = http.get(server.url, headers={"accept": "text/event-stream", "mcp-session-id": session})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")


def test_a_host_that_answers_what_nobody_asked_is_not_told_off(post, session):
    """Some answer a ping that another connection sent."""
    assert post(ANSWER, session=session).status_code == 202


def test_a_probe_without_a_token_is_401_without_a_way_to_a_login(guarded, http):
    """TypeScript stops there, Python goes on to `initialize`: both show the reason, not a login that leads nowhere."""
    answer = discover(http, guarded.url)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "resource_metadata" not in answer.headers["www-authenticate"]
    assert http.post(guarded.url, json=INITIALIZE, headers=LEGACY).status_code == 401


def test_a_probe_is_never_answered_500_or_403(server, http):
    """At which TypeScript refuses to connect: a server that stops says 503 and when to come again."""
    assert discover(http, server.url).status_code == 200
    assert discover(http, server.url, accept="application/json").status_code == 200
    with folder() as workspace, folder() as home:
        settings = {"SUPERPI_DRAIN_DELAY_SECONDS": "3"}
        with serving(unprivileged(), workspace, home, **settings) as draining:
            draining.process.terminate()
            seen = set()
            try:
                while 503 not in seen:
                    answer = discover(http, draining.url)
                    seen.add(answer.status_code)
            except httpx.TransportError:
                pytest.fail("the listener closed before anybody was told")
            assert answer.headers["retry-after"]
            assert seen <= {200, 503}
            draining.stop()
