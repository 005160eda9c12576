"""Habits of hosts that people use, one test each, on a real server: what each of them does, and that it is served."""

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from auth.tokens import SECRET_BYTES, Kind, mint
from tests.support import postgres
from tests.support.administration import administered
from tests.support.eras import VERSION
from tests.support.eras import request as stateless
from tests.support.raw_http import ANSWER, BOTH, INITIALIZE, INITIALIZED, PING, bash, begin
from tests.support.relay import linked
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

#: Sessions of a principal on the server under test.
SESSIONS = 12
LIST = PING | {"method": "tools/list"}
DISCOVER = stateless("server/discover", id="d")
#: Where hosts look for a login that they could offer.
WELL_KNOWN = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
]


@pytest.fixture(scope="module")
def server():
    settings = {"SUPERPI_SESSIONS_PER_PRINCIPAL": str(SESSIONS)}
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def office():
    """A server that lets nobody in without a token."""
    with administered() as found:
        yield found


def discover(http, url, token=None):
    headers = {"accept": BOTH, "mcp-protocol-version": VERSION, "mcp-method": "server/discover"}
    headers |= {} if token is None else {"authorization": f"Bearer {token}"}
    return http.post(url, json=DISCOVER, headers=headers)


def said(answer):
    """What a tool's result says in words, which it does on every revision."""
    return answer.json()["result"]["content"][0]["text"]


@pytest.mark.requirement("SES-4")
def test_no_host_begins_anew_on_404_so_a_session_outlives_a_restart(server, post):
    """A host that is told 404 fails that one call, and sends the next under the same id."""
    id = begin(post, "2025-11-25")
    server.kill9()
    server.restart()
    assert [post(LIST, session=session).status_code for session in ("x" * 43, id, "x" * 43, id)] == [404, 200] * 2


@pytest.mark.requirement("HL-16")
@pytest.mark.parametrize(
    ("host", "headers"),
    [("Gemini", {}), ("Codex", {"mcp_protocol_version": "2025-06-18"})],
)
def test_gemini_and_codex_ask_for_2025_06_18_and_gemini_never_sends_the_version(post, host, headers):
    """What they are told is of the revision that they asked for."""
    initialized = post(INITIALIZE)
    assert initialized.json()["result"]["protocolVersion"] == "2025-06-18"
    session = initialized.headers["mcp-session-id"]
    assert post(INITIALIZED, session=session, **headers).status_code == 202
    assert post(LIST, session=session, **headers).json()["result"].keys() == {"tools"}
    assert said(post(bash("echo here"), session=session, **headers)) == "here"


@pytest.mark.requirement("SUB-4", "SUB-8")
def test_claude_code_listens_for_everything_while_it_works(server, http, post):
    """The stream stands while calls come and go, and costs nobody anything when the editor is gone."""
    kinds = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    listen = stateless("subscriptions/listen", {"notifications": kinds}, id=7)
    call = stateless("tools/call", bash("echo here")["params"])
    routed = {"accept": BOTH, "mcp-protocol-version": VERSION}
    with http.stream("POST", server.url, json=listen, headers=routed | {"mcp-method": listen["method"]}) as stream:
        first = next(line for line in stream.iter_lines() if line.startswith("data:"))
        assert json.loads(first[5:])["method"] == "notifications/subscriptions/acknowledged"
        answer = post(call, mcp_protocol_version=VERSION, mcp_method="tools/call", mcp_name="bash")
        assert said(answer) == "here"
    assert discover(http, server.url).status_code == 200


def test_opencode_gemini_and_claude_never_end_a_session_so_the_idlest_makes_room(post):
    """Nobody is refused a session, and whoever is at work keeps theirs."""
    first, *rest = [begin(post, "2025-11-25") for _ in range(SESSIONS)]
    assert post(LIST, session=first).status_code == 200
    latest = begin(post, "2025-11-25")
    found = [post(LIST, session=id).status_code for id in (latest, first, *rest)]
    assert found == [200, 200, 404, *[200] * (SESSIONS - 2)]


@pytest.mark.requirement("RPC-4")
def test_claude_ai_pools_a_session_over_chats_and_numbers_each_request_1(server, post):
    """Each chat gets the answer to what it asked, and none of them can withdraw the call of another."""
    session = begin(post, "2025-11-25")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    def chat(number):
        command = f"touch chat-{number}; until [ -e go ]; do sleep 0.05; done; echo {number}"
        answer = post(bash(command), session=session)
        return answer.json()["id"], said(answer)

    with ThreadPoolExecutor(3) as chats:
        asked = [chats.submit(chat, number) for number in range(3)]
        while len(list(server.workspace.glob("chat-*"))) < len(asked):
            assert not any(one.done() for one in asked)
        assert post(cancel, session=session).status_code == 202
        (server.workspace / "go").touch()
        assert [one.result() for one in asked] == [(1, str(number)) for number in range(3)]


@pytest.mark.requirement("HL-1", "SSE-3")
@pytest.mark.parametrize("named", [False, True], ids=["without a session", "with its session"])
def test_mcp_remote_and_typescript_open_a_get_stream_and_do_without(server, http, post, named):
    """They swallow whatever they are answered; 405 is what they take for `there is none`."""
    session = begin(post, "2025-11-25")
    headers = {"accept": "text/event-stream"} | ({"mcp-session-id": session} if named else {})
    answer = http.get(server.url, headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")
    assert post(LIST, session=session).status_code == 200


@pytest.mark.parametrize("path", WELL_KNOWN)
def test_mcp_remote_looks_for_a_login_and_is_told_that_there_is_none(office, path):
    """Without a token, for it has none yet: 404 is `there is no such document`, 401 would be `log in to read it`."""
    headers = {"accept": "application/json", "mcp-protocol-version": "2025-11-25"}
    assert office.ask("GET", path, token="", headers=headers).status_code == 404


def test_supergateway_shakes_hands_again_inside_its_session_and_goes_on_with_it(post):
    """One for each client behind it, with the id of the first on every request."""
    session = begin(post, "2025-03-26")
    again = post(INITIALIZE | {"id": "second"}, session=session)
    assert (again.status_code, again.json()["id"]) == (200, "second")
    assert post(INITIALIZED, session=session).status_code == 202
    assert said(post(bash("echo here"), session=session)) == "here"


def test_a_host_that_answers_what_nobody_asked_is_not_told_off(post):
    """Some answer a ping that another connection sent."""
    assert post(ANSWER, session=begin(post, "2025-11-25")).status_code == 202


@pytest.mark.requirement("SES-5")
@pytest.mark.parametrize("at_work", [False, True], ids=["idle", "while a call runs"])
def test_typescript_takes_nothing_but_success_for_an_answer_to_delete(server, http, post, at_work):
    """It raises on 400 and 404, so the end of a session that there is must be neither, whatever goes on in it."""
    session = begin(post, "2025-11-25")
    headers = {"accept": "*/*", "mcp-protocol-version": "2025-11-25", "mcp-session-id": session}
    running = threading.Thread(target=lambda: post(bash("touch works; sleep 20"), session=session))
    if at_work:
        running.start()
        while not (server.workspace / "works").exists():
            running.join(0.02)
    assert http.delete(server.url, headers=headers).status_code == 200
    if at_work:
        running.join()


# --- the first question of clients that speak both eras


@pytest.fixture(scope="module")
def situations(server, office):
    """What `server/discover` is asked, by situation: a URL and a token."""
    unknown = mint(Kind.PAT, bytes(SECRET_BYTES)).secret
    return {
        "no token is needed": (server.url, None),
        "a token": (office.server.url, office.create()["secret"]),
        "no token": (office.server.url, None),
        "an unknown token": (office.server.url, unknown),
        "a token for administration alone": (office.server.url, office.admin),
    }


@pytest.mark.requirement("ERA-1", "AU-1", "AU-2")
@pytest.mark.parametrize(
    ("situation", "status", "handshake"),
    [
        ("no token is needed", 200, 200),
        ("a token", 200, 200),
        # TypeScript stops here and shows it; Python goes on to `initialize`, and must hear the same.
        ("no token", 401, 401),
        ("an unknown token", 401, 401),
        # It makes TypeScript refuse to connect, rightly: this token never is good for MCP.
        ("a token for administration alone", 403, 403),
    ],
)
def test_discover_is_answered_like_the_handshake_that_may_follow(http, situations, situation, status, handshake):
    """So that no client takes the door for an older server."""
    url, token = situations[situation]
    answer = discover(http, url, token)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert VERSION in answer.json()["result"]["supportedVersions"]
        assert answer.json()["id"] == "d"
    headers = {"accept": BOTH} | ({} if token is None else {"authorization": f"Bearer {token}"})
    assert http.post(url, json=INITIALIZE, headers=headers).status_code == handshake


def test_a_refused_token_shows_no_login(http, situations):
    """With static tokens a host that found OAuth metadata would open a login that leads nowhere."""
    answer = discover(http, *situations["no token"])
    assert answer.headers["www-authenticate"].partition(" ")[0] == "Bearer"
    assert "resource_metadata" not in answer.headers["www-authenticate"]
    assert "Send a valid token" in answer.json()["error"]["message"]


def test_discover_on_a_server_that_drains_is_told_to_come_again(http):
    """Neither 500 nor 403, which TypeScript takes for the last word, and by id."""
    settings = {"SUPERPI_DRAIN_DELAY_SECONDS": "1.5"}
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as draining:
        assert discover(http, draining.url).status_code == 200
        os.kill(draining.pid, signal.SIGTERM)
        while (answer := discover(http, draining.url)).status_code == 200:
            pass
        assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
        assert (answer.json()["id"], answer.headers["connection"]) == ("d", "close")


def test_discover_needs_no_database_once_the_caller_is_known(http):
    """Before that nobody can be let in: 503, to come again. Afterwards all that it takes is in memory."""
    with ExitStack() as stack:
        port = postgres.free_port()
        link = stack.enter_context(linked(port))
        settings = {
            "SUPERPI_DATABASE_URL": f"postgresql://superpi:{postgres.PASSWORD}@127.0.0.1:{link.relay.port}/postgres",
            "SUPERPI_DATABASE_SECONDS": "1",
            "SUPERPI_DATABASE_WAIT_SECONDS": "1",
        }
        workspace, home = stack.enter_context(folder()), stack.enter_context(folder())
        server = stack.enter_context(serving(unprivileged(), workspace, home, **settings))
        answer = discover(http, server.url)
        assert (answer.status_code, answer.headers["retry-after"].isdigit()) == (503, True)
        stack.enter_context(postgres.running(port))
        stack.callback(link.thaw)
        while discover(http, server.url).status_code != 200:
            assert server.process.poll() is None
        link.freeze()
        assert discover(http, server.url).status_code == 200
