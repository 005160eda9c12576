"""Grants over REST on a real server, on both databases: given by answers, listed, withdrawn, and ended with tokens."""

import json
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest

from mcp.consent import ALWAYS, NO
from tests.support.administration import administered, felt
from tests.support.asking import HARNESS, Asked, harness_settings, says, tool
from tests.support.doors import DATABASES
from tests.support.postgres import running
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

GRANTS = "/admin/v1/grants"


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def harnesses():
    with folder() as found:
        yield found


@pytest.fixture(scope="module", params=DATABASES)
def office(request, harnesses):
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    # What is asked again and again here is a command.
    settings = harness_settings(harnesses) | {"SUPERPI_RATES__RUNS": "0"}
    own(harnesses)
    with administered(server, **settings) as office:
        yield office


@pytest.fixture(params=["a session", "no session"])
def client(request, office):
    """Clients of a principal of this test's own; each has a token of its own, made by the interface."""
    principal = f"local:{request.node.name[-90:].translate(dict.fromkeys(map(ord, '[] /'), '-'))[-60:]}"

    def client(session=""):
        made = office.create(principal=principal)
        client = Asked(office.http, office.base + "/mcp")
        client.headers["authorization"] = f"Bearer {made['secret']}"
        client.principal, client.token = principal, made["id"]
        if request.param == "a session":
            if session:
                client.session = session
            else:
                client.begin()
        return client

    return client


def called(client, command, answer):
    """Whether a call is asked about, and its result."""
    before = len(client.questions)
    client.person = says(answer)
    call = client.call if client.session else client.stateless
    result = call(tool("bash", command=command))["result"]
    return len(client.questions) > before, result


def is_asked(client, command, answer=NO):
    """Whether the call is asked about, and that it is run only after a yes."""
    asked, result = called(client, command, answer)
    assert bool(result.get("isError")) == (asked and answer == NO), result
    return asked


def allowed(client, command):
    assert is_asked(client, command, ALWAYS)
    assert not is_asked(client, command)


def listed(office, client):
    return office.ask("GET", GRANTS, params={"principal": client.principal}).json()["items"]


def test_a_yes_from_now_on_is_listed_with_all_that_it_hangs_on(office, client):
    me = client()
    allowed(me, "touch listed")
    (grant,) = listed(office, me)
    created = datetime.fromisoformat(grant.pop("created"))
    reach = {"reach": "session", "harness": None, "expires": None}
    if not me.session:
        assert datetime.fromisoformat(grant["expires"]) - created == timedelta(hours=8)
        reach = {"reach": "harness", "harness": "careful", "expires": grant["expires"]}
    id = grant.pop("id")
    about = {"principal": me.principal, "tool": "bash", "subject": "touch listed", "token": me.token}
    assert grant == about | reach
    (shown,) = json.loads(office.superpi("grant", "list", "--principal", me.principal, "--json"))
    assert (shown["id"], shown["subject"], shown["token"]) == (id, "touch listed", me.token)


def test_a_deleted_grant_is_gone_and_the_person_is_asked_by_the_next_call(office, client):
    """At once, and there is a row that says whose it was."""
    me = client()
    allowed(me, "touch deleted")
    allowed(me, "touch stays")
    id = listed(office, me)[1]["id"]
    headers = {"x-request-id": f"deleted-{id}"[:64]}
    answers = [office.ask("DELETE", f"{GRANTS}/{id}", headers=headers) for _ in range(2)]
    assert [(answer.status_code, answer.content == b"") for answer in answers] == [(204, True), (404, False)]
    assert answers[1].json()["code"] == "grant_unknown"
    assert is_asked(me, "touch deleted")
    assert not is_asked(me, "touch stays")
    assert [grant["subject"] for grant in listed(office, me)] == ["touch stays"]
    rows = [row for row in office.audit("local:root") if row["object"] == id]
    told = ("action", "decision", "reason", "request_id", "address")
    assert [tuple(row[name] for name in told) for row in rows] == [
        ("grant.revoke", "allowed", f"bash, of {me.principal}", headers["x-request-id"], "127.0.0.1")
    ]


def test_a_grant_that_the_command_revokes_is_asked_about_by_the_next_call(office, client):
    me = client()
    allowed(me, "touch revoked")
    office.superpi("grant", "revoke", listed(office, me)[0]["id"])
    assert is_asked(me, "touch revoked")


def test_a_withdrawal_holds_at_once_on_every_server(office, client):
    """No process remembers a grant: there is nothing to wait for."""
    me = client()
    data = {"SUPERPI_DATA_DIR": str(office.server.home / "data")}
    with folder() as home, serving(unprivileged(), office.server.workspace, home, **data | dict(office.settings)) as at:
        allowed(me, "touch everywhere")
        me.url = at.url
        assert not is_asked(me, "touch everywhere")
        office.ask("DELETE", f"{GRANTS}/{listed(office, me)[0]['id']}")
        assert is_asked(me, "touch everywhere")


def test_after_its_token_is_revoked_a_new_token_of_the_principal_is_asked_again(office, client):
    """Whether the session goes on or there never was one; what another token was allowed stays."""
    first = client()
    other = client(first.session)
    allowed(first, "touch through-the-first")
    allowed(other, "touch through-the-other")
    office.ask("POST", f"/admin/v1/tokens/{first.token}/revoke")
    second = client(first.session)
    assert [grant["subject"] for grant in listed(office, second)] == ["touch through-the-other"]
    assert is_asked(second, "touch through-the-first")
    assert not is_asked(second, "touch through-the-other")


def test_after_its_token_is_replaced_the_successor_is_asked_again(office, client):
    me = client()
    allowed(me, "touch replaced")
    secret = office.superpi("token", "rotate", me.token)
    me.headers["authorization"] = f"Bearer {secret}"
    assert is_asked(me, "touch replaced")


def test_a_principal_that_is_disabled_and_comes_back_is_asked_again(office, client):
    me = client()
    allowed(me, "touch disabled")
    office.superpi("principal", "disable", me.principal)
    assert listed(office, me) == []
    office.superpi("principal", "enable", me.principal)
    felt(lambda: office.is_let_in(me.headers["authorization"].removeprefix("Bearer ")))
    assert is_asked(me, "touch disabled")


def test_a_yes_to_one_rule_is_none_to_the_one_that_takes_its_place(office, client, harnesses):
    """The harness is changed under the server, and back: each rule has its own yes, which a grant keeps apart."""
    me = client()
    allowed(me, "touch ruled")
    allowed(me, "touch  ruled")
    file = harnesses / "careful.md"
    # The change may come between two rounds of a call, so only what was asked is looked at here.
    refused = lambda: called(me, "touch ruled", NO)[1].get("isError", False)  # noqa: E731
    with ExitStack() as stack:
        stack.callback(felt, lambda: not refused(), 10)
        stack.callback(file.write_text, HARNESS, "utf-8")
        file.write_text(HARNESS.replace('"touch *"', '"touch r*"'), "utf-8")
        felt(refused, 10)
        assert is_asked(me, "touch  ruled", ALWAYS)
        assert not is_asked(me, "touch  ruled")
    assert not is_asked(me, "touch  ruled")


def test_pages_hold_every_grant_once_the_newest_first(office, client):
    me = client()
    for n in range(3):
        allowed(me, f"touch page-{n}")
    query, found = {"principal": me.principal, "limit": 2}, []
    while True:
        page = office.ask("GET", GRANTS, params=query).json()
        found.append([grant["subject"] for grant in page["items"]])
        if (after := page["after"]) is None:
            break
        query |= {"after": after}
    assert found == [["touch page-2", "touch page-1"], ["touch page-0"]]
    everybodys = office.ask("GET", GRANTS, params={"limit": 200}).json()["items"]
    assert [grant["subject"] for grant in everybodys[:3]] == ["touch page-2", "touch page-1", "touch page-0"]


@pytest.mark.parametrize(
    ("method", "path", "refused"),
    [
        pytest.param("GET", f"{GRANTS}?after=x", (422, "invalid"), id="a place in no list"),
        pytest.param("GET", f"{GRANTS}?limit=0", (422, "invalid"), id="a page of nothing"),
        pytest.param("DELETE", f"{GRANTS}/nosuchgrant", (404, "grant_unknown"), id="no grant"),
        pytest.param("DELETE", f"{GRANTS}/a%00b", (404, "grant_unknown"), id="an id that no database takes"),
        pytest.param("POST", f"{GRANTS}/x", (405, "method_not_allowed"), id="another method"),
        pytest.param("POST", GRANTS, (405, "method_not_allowed"), id="to make one"),
    ],
)
def test_what_is_not_there_is_refused_in_words(office, method, path, refused):
    answer = office.ask(method, path)
    assert (answer.status_code, answer.json()["code"]) == refused


def test_a_body_is_refused_and_ends_nothing(office, client):
    me = client()
    allowed(me, "touch body")
    (grant,) = listed(office, me)
    assert office.ask("DELETE", f"{GRANTS}/{grant['id']}", json={"id": grant["id"]}).status_code == 422
    assert listed(office, me) == [grant]


def test_whoever_lacks_the_scope_sees_and_ends_no_grant(office, client):
    """Not even their own: a model that has the token could."""
    me = client()
    allowed(me, "touch own")
    secret = me.headers["authorization"].removeprefix("Bearer ")
    id = listed(office, me)[0]["id"]
    for method, path in (("GET", GRANTS), ("DELETE", f"{GRANTS}/{id}")):
        assert office.ask(method, path, token=secret).status_code == 403
    assert not is_asked(me, "touch own")


@pytest.mark.parametrize(
    ("principal", "status"), [("anonymous", 200), ("https://issuer.example#4f1c", 200), ("bad", 422)]
)
def test_a_principal_that_there_cannot_be_is_told(office, principal, status):
    """An empty list would say that there is such a principal, which allowed nothing."""
    assert office.ask("GET", GRANTS, params={"principal": principal}).status_code == status
