"""Calls that come to no tool are on record too: over both eras, in a batch, over stdio, and at the door."""

import hashlib
import json
import subprocess

import pytest

from tests.support.administration import administered, felt
from tests.support.eras import request as stateless
from tests.support.raw_http import BOTH, INITIALIZE
from tests.support.unprivileged import unprivileged

#: What only a caller wrote must never be a label.
NOWHERE = "canary-tool"
UNKNOWN = {"name": NOWHERE, "arguments": {"a": 1}}
INVALID = {"name": "read", "arguments": {"path": 7}}
ROWS = {(NOWHERE, "refused", "no such tool"), ("read", "failed", "the arguments are not valid")}


@pytest.fixture(scope="module")
def office():
    with administered() as office:
        yield office


def calling(params, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


class Member:
    """A principal of the office that calls tools and looks what is on record of it."""

    def __init__(self, office, name):
        self.office, self.name = office, f"local:{name}"
        self.token = office.token(name)

    def post(self, message, **headers):
        headers = {"accept": BOTH} | headers
        return self.office.ask("POST", "/mcp", token=self.token, json=message, headers=headers)

    def begin(self, revision="2025-06-18"):
        hello = INITIALIZE | {"params": INITIALIZE["params"] | {"protocolVersion": revision}}
        return {"mcp-session-id": self.post(hello).headers["mcp-session-id"]}

    def rows(self):
        return self.office.audit(self.name)

    def recorded(self, most):
        felt(lambda: len(self.rows()) >= most)
        return {(row["object"], row["decision"], row["reason"]) for row in self.rows()}


def test_on_a_session(office):
    """With whose call it was, in which request, and the digest of its arguments."""
    alice = Member(office, "alice")
    session = alice.begin()
    for id, params in enumerate((UNKNOWN, INVALID)):
        alice.post(calling(params), **session, **{"x-request-id": f"rejected-{id}"})
    assert alice.recorded(2) == ROWS
    row = alice.rows()[0]
    canonical = json.dumps(UNKNOWN["arguments"], separators=(",", ":")).encode()
    assert (row["action"], row["request_id"], row["address"]) == ("tools/call", "rejected-0", "127.0.0.1")
    assert (row["arguments_sha256"], row["token"] is not None) == (hashlib.sha256(canonical).hexdigest(), True)


def test_in_a_batch(office):
    """Beside a call that ran."""
    bob = Member(office, "bob")
    session = bob.begin("2025-03-26")
    ran = calling({"name": "ls", "arguments": {}}, 3)
    assert len(bob.post([calling(UNKNOWN), calling(INVALID, 2), ran], **session).json()) == 3
    assert bob.recorded(3) == ROWS | {("ls", "allowed", None)}


def test_statelessly(office):
    """By a request without a session."""
    carol = Member(office, "carol")
    for params in (UNKNOWN, INVALID):
        message = stateless("tools/call", params)
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": params["name"]}
        carol.post(message, **headers)
    assert carol.recorded(2) == ROWS


def test_metrics_count_them_without_the_callers_words(office):
    """Case C12: an unknown tool is `other`."""
    dave = Member(office, "dave")
    session = dave.begin()

    def counted(tool):
        text = office.ask("GET", "/metrics", token="").text
        wanted = f'superpi_tool_calls_total{{outcome="invalid",tool="{tool}"}} '
        return sum(float(line.removeprefix(wanted)) for line in text.splitlines() if line.startswith(wanted))

    before = counted("other"), counted("read")
    for params in (UNKNOWN, INVALID):
        dave.post(calling(params), **session)
    assert (counted("other"), counted("read")) == (before[0] + 1, before[1] + 1)
    assert NOWHERE not in office.ask("GET", "/metrics", token="").text


def test_a_token_that_may_not_use_the_endpoint(office):
    """It is the administrator's, and only that."""
    eve = office.create(principal="local:eve", kind="adm", scopes=["admin"])
    answer = office.ask(
        "POST", "/mcp", token=eve["secret"], json={}, headers={"accept": BOTH, "x-request-id": "door-1"}
    )
    assert answer.status_code == 403
    felt(lambda: bool(office.audit("local:eve")))
    (row,) = office.audit("local:eve")
    told = ("request_id", "action", "object", "decision", "reason", "token", "address")
    assert tuple(row[name] for name in told) == (
        ("door-1", "mcp", "POST /mcp", "refused", "scope_missing", eve["id"], "127.0.0.1")
    )


def test_over_stdio(tmp_path):
    """By the machine's own user."""
    with administered() as office:
        home, workspace = office.server.home, office.server.workspace
        launcher = unprivileged()
        settings = {"HOME": str(home), "SUPERPI_WORKSPACE": str(workspace), "SUPERPI_DATA_DIR": str(home / "data")}
        lines = [INITIALIZE, calling(UNKNOWN, 2), calling(INVALID, 3)]
        done = subprocess.run(
            launcher.superpi("stdio"),
            input="\n".join(map(json.dumps, lines)) + "\n",
            env={**launcher.env, **settings},
            cwd=workspace,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr
        rows = [row for row in office.audit() if row["action"] == "tools/call"]
    assert {(row["object"], row["decision"], row["reason"]) for row in rows} == ROWS
    assert [row["address"] for row in rows] == [None, None]
