"""Principals, sessions, the audit log and harnesses over REST on a real server, on both databases."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from gateway.naming import id_of, key_of
from gateway.routes import AUDIT, EXPORT_AUDIT, HARNESSES, PRINCIPALS, SESSIONS
from tests.support.administration import ELSEWHERE, TOKENS, administered, felt
from tests.support.doors import DATABASES
from tests.support.postgres import running
from tests.support.raw_http import BOTH, INITIALIZE, PING, bash
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@pytest.fixture(scope="module", params=DATABASES)
def office(request):
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    with administered(server) as office:
        yield office


def connect(office, token, client="t"):
    """A session of that token; its id."""
    params = INITIALIZE["params"] | {"clientInfo": {"name": client, "version": "1"}}
    answer = post(office, token, INITIALIZE | {"params": params})
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def post(office, token, message, session=None, base=None):
    headers = {"authorization": f"Bearer {token}", "accept": BOTH} | ({"mcp-session-id": session} if session else {})
    return office.http.post((base or office.base) + "/mcp", json=message, headers=headers)


def whole(office, path, **query):
    """Every item of a list, in pages of two."""
    found, after = [], None
    while True:
        asked = query | {"limit": 2} | ({} if after is None else {"after": after})
        page = office.ask("GET", path, params=asked).json()
        found += page["items"]
        if (after := page["after"]) is None:
            return found


# --- principals


def test_a_principal_is_made_once(office):
    """To ask again is answered with what is there, and makes no row."""
    first = office.ask("POST", PRINCIPALS, json={"id": "local:nina"})
    again = office.ask("POST", PRINCIPALS, json={"id": "local:nina"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["location"] == again.headers["location"] == f"{PRINCIPALS}/local:nina"
    assert again.json()["created"] == first.json()["created"]
    assert (first.json()["state"], first.json()["created_by"]) == ("enabled", "local:root")
    assert office.ask("GET", first.headers["location"]).json() == again.json()
    rows = [row for row in office.audit("local:root") if row["object"] == "local:nina"]
    assert [row["action"] for row in rows] == ["principal.create"]


def test_a_disabled_principal_is_refused_until_it_is_enabled(office):
    secret = office.create(principal="local:otto")["secret"]
    assert office.is_let_in(secret)
    for _ in range(2):
        disabled = office.ask("POST", f"{PRINCIPALS}/local:otto/disable").json()
    assert (disabled["state"], disabled["disabled_by"]) == ("disabled", "local:root")
    assert not office.is_let_in(secret)
    assert office.ask("POST", f"{PRINCIPALS}/local:otto/enable").json()["state"] == "enabled"
    felt(lambda: office.is_let_in(secret))
    rows = [row["action"] for row in office.audit("local:root") if row["object"] == "local:otto"]
    assert rows == ["principal.disable", "principal.enable"]


@pytest.mark.parametrize("act", ["", "/disable", "/enable", "/permissions"])
@pytest.mark.parametrize("key", ["local:nobody", "b64.!!!", "b64.", "b64.AAAA", "%00", "x" * 1024])
def test_an_unknown_principal_is_not_found(office, act, key):
    method = "POST" if act in ("/disable", "/enable") else "GET"
    answer = office.ask(method, f"{PRINCIPALS}/{key}{act}")
    assert (answer.status_code, answer.json()["code"]) == (404, "principal_missing")


@pytest.mark.parametrize("id", ["local:alice", "https://issuer.example/a#b/c", "https://x#ü", "anonymous", "local:"])
def test_a_principal_is_named_by_one_step_of_a_path(id):
    """Also one of an issuer, whose id is an address."""
    key = key_of(id)
    assert (id_of(key), quote(key, safe=":.-_"), "/" in key) == (id, key, False)


def test_principals_are_listed_in_pages(office):
    for name in ("pia", "paul", "petra"):
        office.ask("POST", PRINCIPALS, json={"id": f"local:{name}"})
    listed = [principal["id"] for principal in whole(office, PRINCIPALS)]
    assert listed == sorted(set(listed))
    assert {"local:pia", "local:paul", "local:petra", "local:root"} <= set(listed)


# --- tokens


def test_a_token_is_rotated_with_an_overlap(office):
    """The new one counts at once, the old one until the overlap is over; a token is replaced once."""
    old = office.create(principal="local:quinn", name="laptop", scopes=["mcp:read"], expires_days=7)
    answer = office.ask("POST", f"{TOKENS}/{old['id']}/rotate", json={"overlap_seconds": 2})
    new = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"{TOKENS}/{new['id']}")
    assert [new[name] for name in ("principal", "name", "scopes")] == ["local:quinn", "laptop", ["mcp:read"]]
    assert office.is_let_in(new["secret"])
    assert office.is_let_in(old["secret"])
    felt(lambda: not office.is_let_in(old["secret"]), 3)
    again = office.ask("POST", f"{TOKENS}/{old['id']}/rotate", json={})
    assert (again.status_code, again.json()["code"]) == (409, "token_ended")
    assert office.ask("POST", f"{TOKENS}/unknown/rotate", json={}).status_code == 404


# --- sessions


def test_sessions_are_listed_and_ended_by_their_label(office):
    """The id, which a client shows, is nowhere: without tokens it would let one in."""
    token = office.create(principal="local:rita")["secret"]
    ids = [connect(office, token, client) for client in ("first", "second", "third")]
    listed = whole(office, SESSIONS, principal="local:rita")
    assert [session["client"]["name"] for session in listed] == ["third", "second", "first"]
    assert not any(id in json.dumps(listed) for id in ids)
    one = listed[0]
    assert (one["principal"], one["revision"], one["harness"]) == ("local:rita", "2025-06-18", None)
    assert office.ask("GET", f"{SESSIONS}/{one['label']}").json() == one
    assert [office.ask("DELETE", f"{SESSIONS}/{one['label']}").status_code for _ in range(2)] == [204, 404]
    assert [post(office, token, PING, id).status_code for id in ids] == [200, 200, 404]
    rows = [row for row in office.audit("local:root") if row["object"] == one["label"]]
    assert [(row["action"], row["reason"]) for row in rows] == [("session.end", "of local:rita")]


@pytest.mark.parametrize("act", ["end", "revoke", "disable"])
def test_taking_access_away_stops_what_runs_on_every_replica(postgres, act):
    """Case C10: within two seconds, and a command writes nothing more."""
    with administered(postgres) as office, ExitStack() as stack:
        workspace, home = stack.enter_context(folder()), stack.enter_context(folder())
        other = stack.enter_context(serving(unprivileged(), workspace, home, **office.settings))
        made = office.create(principal="local:sven")
        session = connect(office, made["secret"])
        base = other.url.removesuffix("/mcp")
        command = bash("touch begun; sleep 5; touch late", timeout=60)
        threads = stack.enter_context(ThreadPoolExecutor(1))
        call = threads.submit(post, office, made["secret"], command, session, base)
        felt((workspace / "begun").exists, 10)
        (label,) = [one["label"] for one in whole(office, SESSIONS, principal="local:sven")]
        method, path = {
            "end": ("DELETE", f"{SESSIONS}/{label}"),
            "revoke": ("POST", f"{TOKENS}/{made['id']}/revoke"),
            "disable": ("POST", f"{PRINCIPALS}/local:sven/disable"),
        }[act]
        assert office.ask(method, path).is_success
        answer = call.result(ELSEWHERE + 1)
        assert answer.json()["error"]["code"] == -32800
        status = 404 if act == "end" else 401
        felt(lambda: post(office, made["secret"], PING, session, base).status_code == status, ELSEWHERE)
        time.sleep(5)
        assert not (workspace / "late").exists()


# --- audit


def test_the_log_is_read_in_pages_and_exported_as_lines(office):
    """The newest first, and the oldest first; to export is a row of its own."""
    for name in ("tina", "theo", "tom"):
        office.ask("POST", PRINCIPALS, json={"id": f"local:{name}"})
    listed = whole(office, AUDIT, action="principal.create")
    assert [row["seq"] for row in listed] == sorted((row["seq"] for row in listed), reverse=True)
    assert {"local:tina", "local:theo", "local:tom"} <= {row["object"] for row in listed}
    answer = office.ask("GET", EXPORT_AUDIT, params={"action": "principal.create"})
    assert answer.headers["content-type"].startswith("application/jsonl")
    exported = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["seq"] for row in exported] == sorted(row["seq"] for row in listed)
    assert answer.text.isascii()
    assert whole(office, AUDIT, action="audit.export", principal="local:root")[0]["decision"] == "allowed"


def test_the_log_is_filtered_by_time(office):
    before = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    after = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert office.ask("GET", AUDIT, params={"since": before}).json()["items"]
    assert office.ask("GET", AUDIT, params={"since": after}).json() == {"items": [], "after": None}
    for wrong in ("yesterday", "2026-01-31", "2026-01-31T12:00:00", "1700000000"):
        assert office.ask("GET", AUDIT, params={"since": wrong}).status_code == 422, wrong
    assert office.ask("GET", AUDIT, params={"after": "x"}).status_code == 422


# --- harnesses and permissions


def test_harnesses_are_shown_as_they_are(office):
    listed = office.ask("GET", HARNESSES).json()["items"]
    assert [one["id"] for one in listed if one["is_default"]] == ["super-pi-code"]
    planner = office.ask("GET", f"{HARNESSES}/super-pi-planner").json()
    assert planner in listed
    assert (planner["mode"], "write" in planner["tools"]) == ("read_only", False)
    assert office.ask("GET", f"{HARNESSES}/none").json()["code"] == "harness_missing"


def permissions(office, principal, **query):
    answer = office.ask("GET", f"{PRINCIPALS}/{principal}/permissions", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_a_principal_may_do_is_what_it_can_do(office):
    """By the scopes of its tokens, with the layer that decides; a call with the token says the same."""
    made = [office.create(principal="local:uma", scopes=[scope]) for scope in ("mcp:read", "mcp:write")]
    told = permissions(office, "local:uma")
    by_scope = {item["scopes"][0]: item for item in told["items"]}
    assert {scope: item["mode"] for scope, item in by_scope.items()} == {
        "mcp:read": "read_only",
        "mcp:write": "workspace_write",
    }
    for token in made:
        item = by_scope[token["scopes"][0]]
        assert item["tokens"] == [token["id"]]
        write = next(tool for tool in item["tools"] if tool["name"] == "write")
        session = connect(office, token["secret"])
        params = {"name": "write", "arguments": {"path": "u", "content": "u"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = post(office, token["secret"], call, session).json()["result"]
        assert write["allowed"] == (not result.get("isError", False))
        if not write["allowed"]:
            assert write["refusal"]["layer"] == "scope"
            assert write["message"] in result["content"][0]["text"]


def test_what_it_might_do_is_told_by_harness_and_scope(office):
    office.ask("POST", PRINCIPALS, json={"id": "local:vera"})
    assert permissions(office, "local:vera")["items"] == []
    (full,) = permissions(office, "local:vera", scope="mcp:full", harness="super-pi-planner")["items"]
    assert full["mode"] == "read_only"
    (admin,) = permissions(office, "local:vera", scope="admin")["items"]
    assert (admin["mode"], {tool["allowed"] for tool in admin["tools"]}) == ("none", {False})
    answer = office.ask("GET", f"{PRINCIPALS}/local:vera/permissions", params={"harness": "none"})
    assert answer.json()["code"] == "harness_missing"
