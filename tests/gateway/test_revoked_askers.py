"""A question whose call's credential ends while a person thinks: it ends as fast as a listener, and nothing runs."""

import json
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from mcp.consent import ONCE
from mcp.pending import EXPIRED, REVOKED, SHUT
from tests.support.asking import Asked, harness_settings, says, silence, tool
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: How long a change in one process may take to be felt in another, in seconds, and some for a busy machine.
FELT_WITHIN = 2.0 + 3.0


@contextmanager
def team_server():
    """With a harness that asks, for longer than any test takes."""
    with folder() as workspace, folder() as home, folder() as harnesses:
        settings = harness_settings(harnesses) | {"SUPERPI_HTTP__ASK_SECONDS": "120"}
        own(harnesses)
        with serving(unprivileged(), workspace, home, **settings) as running:
            yield running


@pytest.fixture(scope="module")
def server():
    with team_server() as running:
        yield running


def superpi(server, *arguments):
    launcher = unprivileged()
    places = {"HOME": str(server.home), "SUPERPI_WORKSPACE": str(server.workspace)}
    places |= {"SUPERPI_DATA_DIR": str(server.home / "data")}
    return subprocess.run(
        launcher.superpi(*arguments),
        env={**launcher.env, **places},
        cwd=server.workspace,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@dataclass
class Waiting(Asked):
    """A client whose person thinks until the test goes on."""

    asked: threading.Event = field(default_factory=threading.Event)
    reply: dict = field(default_factory=dict)
    thread: threading.Thread | None = None

    def wait_with(self, message):
        """Call, and come back once the person was asked."""

        def call():
            self.reply.update(self.call(message))

        self.thread = threading.Thread(target=call)
        self.thread.start()
        assert self.asked.wait(30)
        return self

    def replied(self):
        """The text of the refusal, which came in time."""
        began = time.monotonic()
        self.thread.join(60)
        assert time.monotonic() - began < FELT_WITHIN
        assert self.reply["result"]["isError"], self.reply
        return self.reply["result"]["content"][0]["text"]

    def withdrawn(self):
        return [note["params"] for note in self.notes if note["method"] == "notifications/cancelled"]

    def _take(self, message):
        found = super()._take(message)
        if self.questions:
            self.asked.set()
        return found


def waiting(http, server, name, token=None):
    """A call of that person that waits for an answer; and what it would make."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    client = Waiting(http, server.url, silence, headers=headers).begin()
    return client.wait_with(tool("bash", command=f"touch {name}"))


def token_of(server, name):
    return superpi(server, "token", "create", "--principal", f"local:{name}")


def id_of(server, name):
    """The id of that person's token."""
    return json.loads(superpi(server, "token", "list", "--principal", f"local:{name}", "--json"))[0]["id"]


@pytest.fixture
def http():
    with httpx.Client(timeout=60, trust_env=False) as client:
        yield client


@pytest.mark.requirement("LIFE-10")
@pytest.mark.parametrize(
    ("name", "how", "why"),
    [
        pytest.param("revoked", ("token", "revoke", "{id}"), REVOKED, id="its token is revoked"),
        pytest.param("disabled", ("principal", "disable", "local:disabled"), REVOKED, id="its principal is disabled"),
        pytest.param("rotated", ("token", "rotate", "{id}", "--overlap-seconds", "2"), EXPIRED, id="its token expires"),
    ],
)
def test_a_question_ends_with_the_credential_of_its_call(server, http, name, how, why):
    """The refusal says why, and the question is withdrawn; nothing ran, also later."""
    client = waiting(http, server, name, token_of(server, name))
    superpi(server, *(id_of(server, name) if part == "{id}" else part for part in how))
    text = client.replied()
    assert why in text
    assert "Nothing was changed" in text
    assert client.withdrawn() == [{"requestId": client.questions[0]["id"], "reason": why}]
    assert not (server.workspace / name).exists()


def test_a_question_goes_on_where_somebody_elses_credential_ends(server, http):
    """And where a change of its own leaves it good; the answer counts."""
    token_of(server, "somebody")
    client = waiting(http, server, "goes-on", token_of(server, "other"))
    superpi(server, "principal", "disable", "local:somebody")
    superpi(server, "token", "rotate", id_of(server, "other"), "--overlap-seconds", "60")
    time.sleep(2)  # until the changes were felt
    yes = {"jsonrpc": "2.0", "id": client.questions[0]["id"]} | says(ONCE)({})
    headers = {"accept": "application/json, text/event-stream", "mcp-session-id": client.session}
    headers |= client.headers
    assert http.post(server.url, json=yes, headers=headers).status_code == 202
    client.thread.join(30)
    assert not client.reply["result"].get("isError"), client.reply
    assert (server.workspace / "goes-on").exists()


def test_the_first_token_ends_the_questions_of_callers_without_one(http):
    """From then on they would not be let in."""
    with team_server() as server:
        client = waiting(http, server, "anonymous")
        token_of(server, "first")
        assert SHUT in client.replied()
        assert not (server.workspace / "anonymous").exists()
