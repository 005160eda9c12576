"""Tokens over REST on a real server, on both databases: made, listed, shown, revoked, and each change on record."""

import json
import re
import time
from datetime import datetime, timedelta

import pytest

from tests.support.administration import TOKENS, administered, felt
from tests.support.doors import DATABASES
from tests.support.postgres import running
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

SECRET = re.compile(r"spi_(pat|svc|adm)_[0-9A-Za-z]{49}")
#: Fields of a token that chance or the clock decides.
CHANCE = ("id", "token", "secret", "created", "expires")


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@pytest.fixture(scope="module", params=DATABASES)
def office(request):
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    with administered(server, SUPERPI_LOG_LEVEL="debug") as office:
        yield office


def settled(token):
    return {name: value for name, value in token.items() if name not in CHANCE}


def moment(text):
    return datetime.fromisoformat(text)


def test_a_token_is_made_and_its_secret_is_shown_this_once(office):
    answer = office.ask("POST", TOKENS, json={"principal": "local:alice", "name": "laptop"})
    created = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"{TOKENS}/{created['id']}")
    assert answer.headers["cache-control"] == "no-store"
    assert settled(created) == {
        "kind": "pat",
        "principal": "local:alice",
        "name": "laptop",
        "scopes": ["mcp:write"],
        "state": "valid",
        "created_by": "local:root",
        "last_used": None,
        "revoked": None,
        "revoked_by": None,
    }
    assert SECRET.fullmatch(created["secret"])
    assert moment(created["expires"]) - moment(created["created"]) == timedelta(days=90)
    shown = office.ask("GET", answer.headers["location"]).json()
    assert shown == {name: value for name, value in created.items() if name != "secret"}
    assert office.is_let_in(created["secret"])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({"kind": "adm"}, {"kind": "adm", "scopes": ["admin"]}, id="a kind decides the scope"),
        pytest.param({"scopes": ["mcp:read", "admin"]}, {"scopes": ["admin", "mcp:read"]}, id="scopes of its own"),
        pytest.param({"scopes": None}, {"scopes": ["mcp:write"]}, id="null is nothing"),
        pytest.param({"expires_days": None}, {"expires": None}, id="null never expires"),
        pytest.param({"name": "Zoë's 🖥"}, {"name": "Zoë's 🖥"}, id="a name in any script"),
        pytest.param({"name": "x" * 100}, {"name": "x" * 100}, id="the longest name"),
        pytest.param({"expires_days": 3650}, {"state": "valid"}, id="the longest life"),
    ],
)
def test_what_is_asked_for_is_what_is_made(office, wanted, expected):
    created = office.create(**wanted)
    assert {name: created[name] for name in expected} == expected


def test_the_command_and_the_interface_show_the_same_token(office):
    """Two interfaces, one set of rules; the command writes times to the second."""
    made = office.create(principal="local:bob", kind="svc", name="ci")
    listed = json.loads(office.superpi("token", "list", "--principal", "local:bob", "--json"))
    shown = office.ask("GET", f"{TOKENS}/{made['id']}").json()
    assert [settled(token) for token in listed] == [settled(shown)]


def test_pages_hold_every_token_once_the_newest_first(office):
    made = [office.create(principal="local:carol", name=str(number))["id"] for number in range(5)]
    found, after = [], None
    while True:
        query = {"principal": "local:carol", "limit": 2} | ({"after": after} if after else {})
        page = office.ask("GET", TOKENS, params=query).json()
        found.append([token["id"] for token in page["items"]])
        if (after := page["after"]) is None:
            break
    assert found == [made[:2:-1], made[2:0:-1], made[:1]]


def test_a_principal_without_tokens_has_an_empty_page(office):
    for query in ({"principal": "local:nobody"}, {"principal": "https://issuer.example#a"}):
        assert office.ask("GET", TOKENS, params=query).json() == {"items": [], "after": None}


def test_a_revoked_token_stops_at_once_and_stays_on_the_list(office):
    """The promise is one second in this process; here it is the next request."""
    created = office.create()
    assert office.is_let_in(created["secret"])
    began = time.monotonic()
    answer = office.ask("POST", f"{TOKENS}/{created['id']}/revoke")
    assert not office.is_let_in(created["secret"])
    assert time.monotonic() - began < 1.0
    revoked = answer.json()
    assert (answer.status_code, revoked["state"], revoked["revoked_by"]) == (200, "revoked", "local:root")
    listed = office.ask("GET", TOKENS, params={"principal": "local:alice"}).json()["items"]
    assert revoked["id"] in [token["id"] for token in listed]


def test_revoking_again_changes_nothing(office):
    """A client that did not hear the answer may ask again."""
    path = f"{TOKENS}/{office.create()['id']}/revoke"
    first, second = office.ask("POST", path), office.ask("POST", path)
    assert (second.status_code, second.json()) == (200, first.json())


def test_a_revocation_is_felt_by_other_servers_within_two_seconds(office):
    data = {"SUPERPI_DATA_DIR": str(office.server.home / "data")}
    with (
        folder() as home,
        serving(unprivileged(), office.server.workspace, home, **data | dict(office.settings)) as other,
    ):
        elsewhere = other.url.removesuffix("/mcp")
        created = office.create()
        assert office.is_let_in(created["secret"], elsewhere)
        office.ask("POST", f"{TOKENS}/{created['id']}/revoke")
        felt(lambda: not office.is_let_in(created["secret"], elsewhere))


def test_an_administrator_who_is_disabled_or_revoked_administers_no_more(office):
    """Also by the interface itself."""
    other = office.create(principal="local:deputy", kind="adm")
    assert office.ask("GET", TOKENS, token=other["secret"]).status_code == 200
    office.superpi("principal", "disable", "local:deputy")
    felt(lambda: office.ask("GET", TOKENS, token=other["secret"]).status_code == 401)
    refused = office.ask("POST", TOKENS, json={"principal": "local:deputy"})
    assert (refused.status_code, refused.json()["code"]) == (409, "principal_disabled")
    assert office.ask("GET", f"{TOKENS}/{other['id']}").json()["state"] == "disabled"
    itself = office.create(principal="local:leaver", kind="adm")
    path = f"{TOKENS}/{itself['id']}/revoke"
    assert office.ask("POST", path, token=itself["secret"]).status_code == 200
    assert office.ask("POST", path, token=itself["secret"]).status_code == 401


@pytest.mark.parametrize("id", ["nosuchtoken", "x" * 64, "a.b", "é", "..", "a%00b", "%F0%9F%98%80"])
def test_an_unknown_token_is_404(office, id):
    """Whatever its form, shown or revoked."""
    for method, path in (("GET", f"{TOKENS}/{id}"), ("POST", f"{TOKENS}/{id}/revoke")):
        answer = office.ask(method, path)
        assert answer.status_code == 404, answer.text
        assert answer.headers["content-type"] == "application/problem+json"


def test_each_change_has_a_row_that_says_who_what_and_from_where(office):
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"x-request-id": "audited-1", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    id = office.ask("POST", TOKENS, json={"principal": "local:dora"}, headers=headers).json()["id"]
    office.ask("POST", f"{TOKENS}/{id}/revoke", headers=headers | {"x-request-id": "audited-2"})
    office.ask("POST", f"{TOKENS}/{id}/revoke", headers=headers | {"x-request-id": "audited-3"})
    root = office.ask("GET", TOKENS, params={"principal": "local:root"}).json()["items"][0]["id"]
    about = {"principal": "local:root", "token": root, "object": id, "decision": "allowed", "reason": None}
    about |= {"address": "127.0.0.1", "trace_id": trace}
    rows = [row for row in office.audit("local:root") if row["request_id"].startswith("audited-")]
    assert [{name: row[name] for name in ("request_id", "action", *about)} for row in rows] == [
        {"request_id": "audited-1", "action": "token.create"} | about,
        {"request_id": "audited-2", "action": "token.revoke"} | about,
    ]


def test_whoever_lacks_the_scope_is_refused_and_on_record(office):
    """Rows of refusals are written behind."""
    member = office.create(principal="local:mallory")
    body = {"principal": "local:mallory", "kind": "adm"}
    answer = office.ask("POST", TOKENS, token=member["secret"], json=body, headers={"x-request-id": "refused-1"})
    office.ask("PUT", "/admin/v1/canary", token=member["secret"], headers={"x-request-id": "refused-2"})
    assert (answer.status_code, answer.json()["code"]) == (403, "admin_scope_missing")
    assert "superpi token create" in answer.json()["detail"]
    felt(lambda: len(office.audit("local:mallory")) == 2)
    rows = office.audit("local:mallory")
    told = ("request_id", "action", "object", "decision", "reason", "token", "address")
    about = ("refused", "admin_scope_missing", member["id"], "127.0.0.1")
    assert [tuple(row[name] for name in told) for row in rows] == [
        ("refused-1", "admin", f"POST {TOKENS}", *about),
        ("refused-2", "admin", "PUT other", *about),
    ]
    listed = office.ask("GET", TOKENS, params={"principal": "local:mallory"}).json()["items"]
    assert [token["id"] for token in listed] == [member["id"]]


def test_no_secret_is_shown_a_second_time(office):
    """In no list, row, log, metric or document; planted where a client might put one by mistake."""
    created = office.create(principal="local:eve", name="canary")
    secret = created["secret"]
    office.ask("GET", f"{TOKENS}/{secret}")
    office.ask("GET", TOKENS, params={"after": secret, "principal": secret, secret: "x"})
    office.ask("POST", TOKENS, json={"principal": secret, "name": secret, secret: 1})
    office.ask("POST", TOKENS, content=secret.encode(), headers={"content-type": secret})
    office.ask("GET", f"/admin/v1/{secret}", token=secret)
    office.ask("POST", f"{TOKENS}/{created['id']}/revoke")
    answers = [office.ask("GET", path).text for path in (TOKENS, f"{TOKENS}/{created['id']}", "/metrics")]
    answers.append(office.ask("GET", "/admin/v1/openapi.json").text)
    felt(lambda: bool(office.audit("local:eve")))
    shown = [*answers, json.dumps(office.audit()), office.server.said]
    assert [(secret in text, office.admin in text) for text in shown] == [(False, False)] * len(shown)


def test_a_token_of_the_interface_works_on_the_command_line_and_the_other_way_round(office):
    """Made there and revoked here."""
    there = office.token("frank")
    felt(lambda: office.is_let_in(there))
    id = office.ask("GET", TOKENS, params={"principal": "local:frank"}).json()["items"][0]["id"]
    assert office.ask("POST", f"{TOKENS}/{id}/revoke").json()["state"] == "revoked"
    assert not office.is_let_in(there)
    here = office.create(principal="local:frank")
    office.superpi("token", "revoke", here["id"])
    felt(lambda: not office.is_let_in(here["secret"]))
    felt(lambda: office.ask("GET", f"{TOKENS}/{here['id']}").json()["revoked_by"] == "cli")
