"""Two people on one server, on both databases: each under their own name, with what they did on record."""

import json
import subprocess
import time
from dataclasses import dataclass

import httpx
import pytest

from tests.support.doors import DATABASES
from tests.support.eras import meta
from tests.support.postgres import running
from tests.support.raw_http import INITIALIZE, INITIALIZED, PING
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, unprivileged

#: How long a change in one process may take to be felt in another, in seconds (security promises).
FELT_WITHIN = 2.0


@dataclass(slots=True)
class Team:
    """A server, and the command beside it."""

    server: Server
    settings: dict

    def superpi(self, *arguments, status=0):
        """What the command printed."""
        launcher = unprivileged()
        home = {"HOME": str(self.server.home), "SUPERPI_WORKSPACE": str(self.server.workspace)}
        home |= {"SUPERPI_DATA_DIR": str(self.server.home / "data")}
        done = subprocess.run(
            launcher.superpi(*arguments),
            env={**launcher.env, **home, **self.settings},
            cwd=self.server.workspace,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr
        return done.stdout.strip()

    def token(self, name, *arguments):
        return self.superpi("token", "create", "--principal", f"local:{name}", *arguments)

    def post(self, message, token=None, session=None, **headers):
        given = {"accept": "application/json"} | ({"mcp-session-id": session} if session else {})
        given |= {"authorization": f"Bearer {token}"} if token else {}
        return httpx.post(self.server.url, json=message, headers=given | headers, timeout=30, trust_env=False)

    def session(self, token=None):
        return self.post(INITIALIZE, token).headers["mcp-session-id"]

    def call(self, tool, token, session, **arguments):
        params = {"name": tool, "arguments": arguments}
        return self.post(PING | {"method": "tools/call", "params": params}, token, session).json()["result"]

    def audit(self):
        return [json.loads(line) for line in self.superpi("audit", "export").splitlines()]


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@pytest.fixture(params=DATABASES)
def team(request):
    with folder() as workspace, folder() as home:
        if request.param == "sqlite":
            with serving(unprivileged(), workspace, home) as server:
                yield Team(server, {})
            return
        with request.getfixturevalue("postgres").database() as url:
            settings = {"SUPERPI_DATABASE_URL": url}
            with serving(unprivileged(), workspace, home, **settings) as server:
                yield Team(server, settings)


def felt(condition):
    """Wait until a change made in another process is felt here, at most as long as promised."""
    deadline = time.monotonic() + FELT_WITHIN + 1
    while not condition():
        assert time.monotonic() < deadline, "the change was not felt in time"
        time.sleep(0.05)


@pytest.mark.requirement("AU-1", "AU-4", "HL-3", "AU-25")
def test_the_first_token_closes_the_door_for_good(team):
    """The sticky rule: also when that token is revoked, and after a restart."""
    assert team.post(INITIALIZE).status_code == 200
    token = team.token("alice")
    felt(lambda: team.post(INITIALIZE).status_code == 401)
    challenge = team.post(INITIALIZE).headers["www-authenticate"]
    assert (challenge.split()[0], "resource_metadata" in challenge, "error" in challenge) == ("Bearer", False, False)
    assert team.post(INITIALIZE, token).status_code == 200
    id = json.loads(team.superpi("token", "list", "--json"))[0]["id"]
    team.superpi("token", "revoke", id)
    felt(lambda: team.post(INITIALIZE, token).status_code == 401)
    assert 'error="invalid_token"' in team.post(INITIALIZE, token).headers["www-authenticate"]
    team.server.stop()
    team.server.restart()
    assert [team.post(INITIALIZE, given).status_code for given in (None, token)] == [401, 401]


@pytest.mark.requirement("AU-3", "AU-6", "AU-22", "SES-6")
def test_everything_needs_the_token_and_only_in_its_header(team):
    """Before anything is looked at: no session is found, and nothing is parsed."""
    token = team.token("alice")
    felt(lambda: team.post(INITIALIZE).status_code == 401)
    session, url = team.session(token), team.server.url
    claim = {"_meta": meta()}
    modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    discover = PING | {"method": "server/discover", "params": claim}
    statuses = [
        team.post(PING, session=session).status_code,
        team.post(PING, session="x" * 43).status_code,
        team.post(INITIALIZED, session=session).status_code,
        team.post([PING], session=session).status_code,
        team.post(discover, **modern).status_code,
        httpx.post(url, content=b"{", headers={"content-type": "application/json"}, trust_env=False).status_code,
        httpx.post(f"{url}?access_token={token}", json=INITIALIZE, trust_env=False).status_code,
        httpx.post(f"{url}?token={token}", json=INITIALIZE, trust_env=False).status_code,
        httpx.get(url, headers={"mcp-session-id": session}, trust_env=False).status_code,
        httpx.delete(url, headers={"mcp-session-id": session}, trust_env=False).status_code,
    ]
    assert statuses == [401] * len(statuses)
    assert team.post(discover, token, **modern).json()["result"]["resultType"] == "complete"
    assert team.post(PING, token, session).status_code == 200


@pytest.mark.requirement("SES-6", "SES-7", "AU-19", "AU-21")
def test_two_people_work_side_by_side_and_neither_finds_the_others_session(team):
    """And each call is on record under the name of who made it."""
    alice, bob = team.token("alice"), team.token("bob")
    hers, his = team.session(alice), team.session(bob)
    assert "isError" not in team.call("write", alice, hers, path="a.txt", content="x")
    assert "isError" not in team.call("read", bob, his, path="a.txt")
    assert [team.post(PING, token, session).status_code for token, session in ((alice, his), (bob, hers))] == [404] * 2
    assert team.post(PING, alice, hers).status_code == 200
    felt(lambda: len([row for row in team.audit() if row["action"] == "tools/call"]) == 2)
    calls = [row for row in team.audit() if row["action"] == "tools/call"]
    assert [(row["principal"], row["object"], row["decision"]) for row in calls] == [
        ("local:alice", "write", "allowed"),
        ("local:bob", "read", "allowed"),
    ]
    assert all(row["arguments_sha256"] and row["request_id"] for row in calls)
    made = [(row["principal"], row["action"]) for row in team.audit() if row["action"] == "token.create"]
    assert len(made) == 2


@pytest.mark.requirement("SES-6", "TL-15", "AU-4")
def test_each_call_has_the_scope_of_its_own_token(team):
    """Case C18: one session, two tokens of one principal; a refusal names the layer and is on record."""
    reader, writer = team.token("alice", "--scope", "mcp:read"), team.token("alice", "--scope", "mcp:write")
    session = team.session(writer)
    refused = team.call("write", reader, session, path="a.txt", content="x")
    assert refused["_meta"]["io.superpi/refusal"]["layer"] == "scope"
    assert "isError" not in team.call("write", writer, session, path="a.txt", content="x")
    assert "isError" not in team.call("read", reader, session, path="a.txt")
    felt(lambda: len([row for row in team.audit() if row["action"] == "tools/call"]) == 3)
    assert [row["decision"] for row in team.audit() if row["action"] == "tools/call"].count("refused") == 1


@pytest.mark.requirement("AU-2")
def test_a_token_for_administration_opens_no_tool(team):
    """Design: admin is separate, REST only."""
    token = team.token("root", "--kind", "adm")
    assert team.post(INITIALIZE, token).status_code == 403


@pytest.mark.requirement("SES-4", "AU-1")
def test_a_disabled_principal_and_a_deleted_session_are_felt_elsewhere(team):
    """Also by a second server on the same database."""
    token = team.token("alice")
    with (
        folder() as home,
        serving(
            unprivileged(),
            team.server.workspace,
            home,
            **({"SUPERPI_DATA_DIR": str(team.server.home / "data")} | team.settings),
        ) as other,
    ):
        session = team.session(token)
        there = Team(other, team.settings)
        assert there.post(PING, token, session).status_code == 200
        headers = {"authorization": f"Bearer {token}", "mcp-session-id": session}
        assert httpx.delete(team.server.url, headers=headers, trust_env=False).status_code == 200
        felt(lambda: there.post(PING, token, session).status_code == 404)
        team.superpi("principal", "disable", "local:alice")
        felt(lambda: there.post(INITIALIZE, token).status_code == 401)
        felt(lambda: team.post(INITIALIZE, token).status_code == 401)


def test_metrics_count_what_was_done_and_show_no_callers_words(team):
    """Probes need no token."""
    token = team.token("alice")
    team.call("ls", token, team.session(token))
    team.post(PING | {"method": "canary/method"}, token, team.session(token))
    text = httpx.get(team.server.url.removesuffix("/mcp") + "/metrics", trust_env=False).text
    assert 'superpi_tool_calls_total{outcome="ok",tool="ls"} 1.0' in text
    assert "canary" not in text


@pytest.mark.requirement("AU-17")
def test_no_planted_secret_is_shown_anywhere(team):
    """Case C12, as far as there is something to plant: log at debug, audit rows, metrics, the process's arguments."""
    token = team.token("alice")
    session = team.session(token)
    team.post(PING, token, session, **{"x-canary": token})
    team.call("read", token, session, path=token)
    httpx.post(f"{team.server.url}?access_token={token}", json=PING, trust_env=False)
    httpx.post(f"{team.server.url}/{token}", json=PING, headers={"authorization": f"Bearer {token}"}, trust_env=False)
    team.post({"jsonrpc": "2.0", "id": 1, "method": token}, token, session)
    metrics = httpx.get(team.server.url.removesuffix("/mcp") + "/metrics", trust_env=False).text
    with open(f"/proc/{team.server.pid}/cmdline", "rb") as arguments:
        shown = [team.server.said, metrics, json.dumps(team.audit()), arguments.read().decode()]
    assert [token in text for text in shown] == [False] * 4
