"""What both interfaces refuse, and in the same words; and what hostile input to administration gets. A real server."""

import json
import os
import signal
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auth.ports import Obstacle
from gateway.admin.refusals import OBSTACLES, AdminRefusal
from mcp.protocol.errors import HttpRefusal
from tests.support.administration import TOKENS, administered, felt
from tests.support.raw_http import INITIALIZE, PING

BODY_BYTES = 2000
NEW = {"principal": "local:alice"}
JSON = {"content-type": "application/json"}
#: Headers that a client acts on.
TOLD = ("www-authenticate", "retry-after", "connection", "access-control-allow-origin", "cache-control")


@pytest.fixture(scope="module")
def office():
    bounds = {"SUPERPI_ADMIN_BODY_BYTES": str(BODY_BYTES), "SUPERPI_HTTP__BODY_BYTES": str(BODY_BYTES)}
    with administered(SUPERPI_HTTP__BODY_SECONDS="1", **bounds) as office:
        yield office


@pytest.fixture(scope="module")
def member(office):
    """A token for `/mcp`."""
    return office.create(principal="local:member")["secret"]


@pytest.fixture(scope="module")
def document(office):
    return office.ask("GET", "/admin/v1/openapi.json").json()


def exchange(office, path, lines, body=b"", method="POST"):
    """Status, headers and body of the answer to header lines as they stand here."""
    address = urlsplit(office.base)
    lines = [f"{method} {path} HTTP/1.1", *lines, "Connection: close", "", ""]
    with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
        sock.sendall("\r\n".join(lines).encode() + body)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    head, _, content = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    named = dict(line.lower().split(": ", 1) for line in headers)
    return int(status.split()[1]), {name: named.get(name) for name in TOLD if name != "connection"}, json.loads(content)


def sentence(refusal, setting):
    """What is told of a refusal; a bound that was passed is told with its number and where that comes from."""
    if refusal is not HttpRefusal.BODY_TOO_LARGE:
        return refusal.message
    return f"{refusal.message} It takes {BODY_BYTES} bytes; SUPERPI_{setting} sets that."


#: Header lines that both interfaces refuse; TOKEN stands for one that the interface takes.
LENGTH = "Content-Length: 2"
AS_JSON = "Content-Type: application/json"
HOST = "Host: localhost"
TOKEN = "Authorization: Bearer TOKEN"


@pytest.mark.parametrize(
    ("lines", "body", "refusal"),
    [
        pytest.param([HOST, AS_JSON, LENGTH], b"{}", HttpRefusal.UNAUTHENTICATED, id="no token"),
        pytest.param(
            [HOST, "Authorization: Bearer spi_pat_x", LENGTH], b"{}", HttpRefusal.UNAUTHENTICATED, id="no such token"
        ),
        pytest.param(["Host: evil.example"], b"", HttpRefusal.UNAUTHENTICATED, id="no token, under a foreign name"),
        pytest.param([HOST, "Authorization: Basic eDp5"], b"", HttpRefusal.UNAUTHENTICATED, id="another scheme"),
        pytest.param([HOST, TOKEN, TOKEN], b"", HttpRefusal.UNAUTHENTICATED, id="two tokens"),
        pytest.param([TOKEN], b"", HttpRefusal.HOST_MISSING, id="no Host"),
        pytest.param([HOST, HOST, TOKEN], b"", HttpRefusal.HOST_MISSING, id="two Hosts"),
        pytest.param(
            [HOST, TOKEN, "Origin: https://evil.example"], b"", HttpRefusal.ORIGIN_FORBIDDEN, id="a foreign page"
        ),
        pytest.param([HOST, TOKEN, LENGTH], b"{}", HttpRefusal.MEDIA_TYPE, id="no media type"),
        pytest.param(
            [HOST, TOKEN, LENGTH, "Content-Type: text/plain"],
            b"{}",
            HttpRefusal.MEDIA_TYPE,
            id="what any page may send",
        ),
        pytest.param(
            [HOST, TOKEN, LENGTH, AS_JSON, "Content-Encoding: gzip"], b"{}", HttpRefusal.MEDIA_TYPE, id="compressed"
        ),
        pytest.param(
            [HOST, TOKEN, AS_JSON, "Content-Length: 999999"],
            b"{",
            HttpRefusal.BODY_TOO_LARGE,
            id="too long by its word",
        ),
        pytest.param(
            [HOST, TOKEN, AS_JSON, "Transfer-Encoding: chunked"],
            b"7d1\r\n" + b" " * (BODY_BYTES + 1) + b"\r\n",
            HttpRefusal.BODY_TOO_LARGE,
            id="too long as it arrives",
        ),
        pytest.param(
            [HOST, TOKEN, AS_JSON, "Content-Length: 9"], b"{", HttpRefusal.BODY_TIMEOUT, id="a body that never comes"
        ),
    ],
)
def test_both_interfaces_refuse_the_same_in_the_same_words(office, member, document, lines, body, refusal):
    """One table: status, headers and sentence; only the form of the body and the setting are the interface's own."""
    answers = [
        exchange(office, path, [line.replace("TOKEN", token) for line in lines], body)
        for path, token in (("/mcp", member), (TOKENS, office.admin))
    ]
    words, own_words = (sentence(refusal, setting) for setting in ("HTTP__BODY_BYTES", "ADMIN_BODY_BYTES"))
    (status, headers, rpc), (same_status, same_headers, problem) = answers
    assert (status, rpc["error"]) == (refusal.status, {"code": refusal.status, "message": words})
    assert (same_status, same_headers) == (status, headers)
    request_id = problem.pop("request_id")
    assert request_id
    assert problem.pop("title")
    assert problem == {
        "type": "about:blank",
        "status": refusal.status,
        "detail": own_words,
        "code": refusal.name.lower(),
    }
    assert problem["code"] in document["paths"][TOKENS]["post"]["responses"][str(status)]["description"]


def test_before_any_token_a_foreign_name_is_refused_by_both_and_administration_is_closed():
    """Anonymous callers may use tools on loopback, and administer nothing."""
    with administered(SUPERPI_ANONYMOUS="always") as office:
        headers = {"host": "evil.example"}
        rpc = office.ask("POST", "/mcp", token="", headers=headers, json=PING)
        problem = office.ask("GET", TOKENS, token="", headers=headers)
        assert (rpc.status_code, problem.status_code) == (421, 421)
        assert rpc.json()["error"]["message"] == problem.json()["detail"]
        anonymous = office.ask("GET", TOKENS, token="")
        assert (anonymous.status_code, anonymous.json()["code"]) == (403, "admin_scope_missing")
        assert "superpi token create --principal local:NAME --kind adm" in anonymous.json()["detail"]
        felt(lambda: any(row["decision"] == "refused" for row in office.audit("anonymous")))


def test_with_a_token_any_name_of_the_server_will_do(office, member):
    """A page that rebinds a name has no token to show."""
    headers = {"host": "evil.example"}
    assert office.ask("GET", TOKENS, headers=headers).status_code == 200
    assert office.ask("POST", "/mcp", token=member, headers=headers, json=INITIALIZE).status_code == 200


def test_a_draining_server_says_so_on_both():
    """So that clients come again or go elsewhere."""
    with administered(SUPERPI_DRAIN_DELAY_SECONDS="2") as office:
        member = office.create()["secret"]
        os.kill(office.server.pid, signal.SIGTERM)
        felt(lambda: office.ask("GET", "/readyz").status_code == 503)
        rpc = office.ask("POST", "/mcp", token=member, json=INITIALIZE)
        problem = office.ask("GET", TOKENS)
    assert (rpc.status_code, problem.status_code) == (503, 503)
    assert [{name: answer.headers.get(name) for name in TOLD} for answer in (rpc, problem)] == [
        {"retry-after": "2", "connection": "close", "cache-control": "no-store"}
        | {"www-authenticate": None, "access-control-allow-origin": None}
    ] * 2
    assert rpc.json()["error"]["message"] == problem.json()["detail"] == HttpRefusal.DRAINING.message


def test_a_token_of_one_interface_is_refused_by_the_other(office, member):
    """Case: admin is separate."""
    assert office.ask("POST", "/mcp", json=INITIALIZE).status_code == 403
    assert office.ask("GET", TOKENS, token=member).status_code == 403


def test_every_answer_carries_the_headers_that_keep_browsers_and_caches_off(office):
    for answer in (
        office.ask("GET", TOKENS),
        office.ask("GET", TOKENS, token=""),
        office.ask("GET", "/admin/v1/nope"),
        office.ask("DELETE", TOKENS),
        office.ask("POST", TOKENS, content=b"{", headers=JSON),
        office.ask("GET", "/admin/v1/openapi.json"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", TOKENS, "GET, POST"),
        ("HEAD", TOKENS, "GET, POST"),
        ("DELETE", f"{TOKENS}/x", "GET"),
        ("GET", f"{TOKENS}/x/revoke", "POST"),
    ],
)
def test_another_method_is_405_and_learns_which_there_are(office, method, path, allow):
    """A token is never deleted, so no path has DELETE."""
    answer = office.ask(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(
    "path",
    [
        "/admin%2fv1/tokens",
        "/admin%2Fv1%2Ftokens",
        "/admin/v1%2ftokens",
        "/%61dmin/v1/tokens",
        "/admin/%76%31/tokens",
        "/admin/v1/tokens/",
        "/admin/v1//tokens",
        "//admin/v1/tokens",
        "/admin/v1/./tokens",
        "/admin/v1/../v1/tokens",
        "/livez/../admin/v1/tokens",
        "/mcp/../admin/v1/tokens",
        "/ADMIN/v1/tokens",
        "/admin/v1/tokens;x=1",
        "/admin/v1/tokens%00",
        "/admin/v1/tokens%3f",
        "/admin/v1/tokens%2fanything",
        "/admin/v1\\tokens",
        "/admin/v1/openapi.json/",
        "/admin%2fv1/openapi.json",
    ],
)
def test_no_trick_with_the_path_opens_anything(office, member, path):
    """Nor past a proxy that guards /admin: it has to have seen what is routed here. Never a redirect."""
    for token, allowed in ((office.admin, {404}), (member, {403, 404})):
        status, _, _ = exchange(office, path, [HOST, TOKEN.replace("TOKEN", token)], method="GET")
        assert status in allowed


#: A body, and what its refusal names: where in it, or nothing for what is no JSON.
HOSTILE = [
    pytest.param(b"", 400, None, id="nothing"),
    pytest.param(b"{", 400, None, id="half"),
    pytest.param(b"\xff\xfe", 400, None, id="not UTF-8"),
    pytest.param(b"NaN", 400, None, id="NaN"),
    pytest.param(b'{"principal": "local:a", "expires_days": Infinity}', 400, None, id="infinity"),
    pytest.param(b'{"principal": "local:a", "expires_days": 1e999}', 400, None, id="beyond a double"),
    pytest.param(b'{"principal": "local:a", "principal": "local:b"}', 400, None, id="the same key twice"),
    pytest.param(b"[" * 900 + b"]" * 900, 400, None, id="deep"),
    pytest.param(b'{"principal": "local:a\\u0000"}', 400, None, id="U+0000"),
    pytest.param(b'{"name": "\\ud800", "principal": "local:a"}', 400, None, id="half of a surrogate pair"),
    pytest.param(b"[]", 422, "", id="an array"),
    pytest.param(b'"local:a"', 422, "", id="a string"),
    pytest.param(b"null", 422, "", id="null"),
    pytest.param(b"{}", 422, "/principal", id="no principal"),
    pytest.param({"principal": None}, 422, "/principal", id="a null principal"),
    pytest.param({"principal": 1}, 422, "/principal", id="a number for a principal"),
    pytest.param({"principal": "alice"}, 422, "/principal", id="no kind of principal"),
    pytest.param({"principal": "local:"}, 422, "/principal", id="no name of a principal"),
    pytest.param({"principal": "local:a b"}, 422, "/principal", id="a blank in a principal"),
    pytest.param({"principal": "local:a\n"}, 422, "/principal", id="a newline after a principal"),
    pytest.param({"principal": "local:" + "a" * 65}, 422, "/principal", id="a long principal"),
    pytest.param({"principal": "https://issuer.example#a"}, 422, "/principal", id="a principal of an issuer"),
    pytest.param({"principal": "anonymous"}, 422, "/principal", id="nobody"),
    pytest.param(NEW | {"kind": "root"}, 422, "/kind", id="no such kind"),
    pytest.param(NEW | {"kind": None}, 422, "/kind", id="a null kind"),
    pytest.param(NEW | {"scopes": []}, 422, "/scopes", id="no scope"),
    pytest.param(NEW | {"scopes": "admin"}, 422, "/scopes", id="a string of scopes"),
    pytest.param(NEW | {"scopes": ["mcp:root"]}, 422, "/scopes/0", id="no such scope"),
    pytest.param(NEW | {"scopes": ["mcp:read mcp:full"]}, 422, "/scopes/0", id="two scopes in one"),
    pytest.param(NEW | {"scopes": ["admin"] * 5}, 422, "/scopes", id="more scopes than there are"),
    pytest.param(NEW | {"scopes": {"admin": True}}, 422, "/scopes", id="an object of scopes"),
    pytest.param(NEW | {"name": "x" * 101}, 422, "/name", id="a long name"),
    pytest.param(NEW | {"name": "a\tb"}, 422, "/name", id="a tab in a name"),
    pytest.param(NEW | {"name": "\u202egnp"}, 422, "/name", id="a name that reads backwards"),
    pytest.param(NEW | {"expires_days": 0}, 422, "/expires_days", id="no day"),
    pytest.param(NEW | {"expires_days": -1}, 422, "/expires_days", id="a day ago"),
    pytest.param(NEW | {"expires_days": 3651}, 422, "/expires_days", id="eleven years"),
    pytest.param(NEW | {"expires_days": 2**63 - 1}, 422, "/expires_days", id="for ever, as a number"),
    pytest.param(NEW | {"expires_days": 1.5}, 422, "/expires_days", id="half a day"),
    pytest.param(NEW | {"expires_days": True}, 422, "/expires_days", id="true for a number"),
    pytest.param(NEW | {"expires_days": "90"}, 422, "/expires_days", id="a string for a number"),
    pytest.param(NEW | {"secret": "spi_pat_mine"}, 422, "/secret", id="a secret of one's own"),
    pytest.param(NEW | {"created_by": "local:root"}, 422, "/created_by", id="somebody else's name"),
    pytest.param(NEW | {"a/b~c": 1}, 422, "/a~1b~0c", id="a key with a slash"),
    pytest.param(NEW | {str(number): 1 for number in range(200)}, 422, "/0", id="two hundred unknown fields"),
]


@pytest.mark.parametrize(("body", "status", "pointer"), HOSTILE)
def test_a_body_that_cannot_be_taken_is_a_problem_that_says_what_to_do(office, body, status, pointer):
    """Never a 5xx, never FastAPI's own body, and nothing is made."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = office.ask("POST", TOKENS, content=content, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (problem["status"], problem["request_id"]) == (status, answer.headers["x-request-id"])
    assert problem["detail"].endswith(".")
    if pointer is None:
        assert problem["code"] == "not_json"
    else:
        assert problem["code"] == "invalid"
        assert pointer in [error["pointer"] for error in problem["errors"]]
        assert all(error["detail"].endswith(".") for error in problem["errors"])
        assert len(problem["errors"]) <= 20
    assert len(answer.content) < 10_000


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=201", "limit"),
        ("limit=1e9", "limit"),
        ("limit=", "limit"),
        ("limit=99999999999999999999999999", "limit"),
        ("after=x", "after"),
        ("after=", "after"),
        ("after=%00", "after"),
        ("after=" + "9" * 400 + ".x", "after"),
        ("after=-1.x%0a", "after"),
        ("principal=%00", "principal"),
        ("principal=" + "x" * 513, "principal"),
        ("principal=bad", "principal"),
        ("principal=", "principal"),
        ("principal=local:a&principal=local:a", "principal"),
        ("limit=1&limit=2", "limit"),
        ("limit=0&%6cimit=1", "limit"),
        ("x&x", "x"),
        ("sort=name", "sort"),
        ("%00=1", "\0"),
    ],
)
def test_a_query_that_cannot_be_taken_names_its_parameter(office, query, parameter):
    answer = office.ask("GET", f"{TOKENS}?{query}")
    assert answer.status_code == 422, answer.text
    assert [error["parameter"] for error in answer.json()["errors"]] == [parameter]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.sampled_from(["principal", "kind", "scopes", "name", "expires_days"]), ANY_JSON)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=(ANY_JSON | FIELDS).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=300))
def test_no_body_is_the_servers_mistake(office, document, body):
    """Anything at all: what is refused is refused as the document says."""
    answer = office.ask("POST", TOKENS, content=body, headers=JSON)
    assert 400 <= answer.status_code < 500
    assert str(answer.status_code) in document["paths"][TOKENS]["post"]["responses"]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.text(st.characters(codec="utf-8"), max_size=40),
    query=st.dictionaries(st.sampled_from(["limit", "after", "principal"]) | st.text(max_size=5), st.text(max_size=30)),
    revoke=st.booleans(),
)
def test_no_path_and_no_query_is_the_servers_mistake(office, path, query, revoke):
    url = f"{TOKENS}/{httpx.QueryParams({'p': path})!s}".replace("p=", "", 1) + ("/revoke" if revoke else "")
    with suppress(httpx.InvalidURL):
        for method, answered in (("GET", TOKENS), ("POST" if revoke else "GET", url)):
            answer = office.ask(method, answered, params=query)
            assert answer.status_code < 500
            assert answer.status_code == 200 or answer.headers["content-type"] == "application/problem+json"


def test_what_is_refused_made_nothing(office, member):
    """After all of the above. The order of tests does not matter: each of them makes only these two principals."""
    listed = office.ask("GET", TOKENS, params={"limit": 200}).json()["items"]
    assert {token["principal"] for token in listed} == {"local:root", "local:member"}


def test_the_tables_have_a_row_for_every_obstacle_and_no_code_twice():
    """So that a program can go by the code alone."""
    assert set(OBSTACLES) == set(Obstacle)
    names = [refusal.name for refusal in (*HttpRefusal, *AdminRefusal)]
    assert [name for name in names if names.count(name) > 1] == ["METHOD_NOT_ALLOWED"] * 2
    assert all(refusal.message.endswith((".", "'.")) for refusal in AdminRefusal)
