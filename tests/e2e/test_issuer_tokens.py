"""An OIDC issuer beside our own tokens, on a real server process: the tables of C07 and C08, and the way to a token."""

import time

import httpx
import pytest

from tests.support.eras import meta
from tests.support.issuer import EcKey, RsaKey, document, okp_jwk, signed
from tests.support.issuer_server import DISCOVERY, KEYS, issuer_server
from tests.support.raw_http import BOTH, INITIALIZE, INITIALIZED, PING
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

PUBLIC = "https://team.example"
RESOURCE = f"{PUBLIC}/mcp"
METADATA = f"{PUBLIC}/.well-known/oauth-protected-resource/mcp"
RSA, EC, NEXT = RsaKey("rsa"), EcKey("ec"), EcKey("next")


class Door:
    """A server with an issuer, and requests with its tokens."""

    def __init__(self, server, issuer, http):
        self.server, self.issuer, self.http = server, issuer, http

    def claims(self, **given):
        now = int(time.time())
        good = {"iss": self.issuer.url, "aud": RESOURCE, "sub": "alice", "exp": now + 300, "scope": "mcp:write"}
        return {name: value for name, value in (good | given).items() if value is not None}

    def token(self, key=RSA, **given):
        return signed(key, self.claims(**given))

    def post(self, message, token, session=None, **headers):
        given = {"accept": BOTH, "authorization": f"Bearer {token}"} | headers
        return self.http.post(
            self.server.url, json=message, headers=given | ({"mcp-session-id": session} if session else {})
        )

    def status(self, token):
        return self.post({"jsonrpc": "2.0", "method": "notifications/none"}, token).status_code

    def is_let_in(self, token):
        """Whether it is judged good; without a session it leads no further."""
        return self.status(token) != 401

    def session(self, token):
        session = self.post(INITIALIZE, token).headers["mcp-session-id"]
        self.post(INITIALIZED, token, session)
        return session

    def get(self, path):
        return self.http.get(self.server.url.removesuffix("/mcp") + path)


def client():
    return httpx.Client(trust_env=False, timeout=30)


@pytest.fixture(scope="module")
def door():
    with issuer_server(EC, okp_jwk("okp"), RSA) as issuer, folder() as workspace, folder() as home:
        settings = {"SUPERPI_OIDC_ISSUER": issuer.url, "SUPERPI_PUBLIC_URL": PUBLIC, "SUPERPI_REMOTE_MODE": "full"}
        with serving(unprivileged(), workspace, home, **settings) as server, client() as http:
            yield Door(server, issuer, http)


@pytest.mark.requirement("AU-8", "AU-9", "AU-16")
@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_both_well_known_places_say_where_tokens_come_from(door, path):
    answer = door.get(path)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "resource": RESOURCE,
            "authorization_servers": [door.issuer.url],
            "scopes_supported": ["mcp:write"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Super-Pi",
        },
    )


@pytest.mark.requirement("AU-9", "AU-10", "AU-14", "AU-15")
def test_whoever_has_no_token_is_told_where_to_get_one(door):
    """Also before the first message of a host that does not look first; no token was ever made here."""
    answer = door.http.post(door.server.url, json=INITIALIZE, headers={"accept": BOTH})
    asked = f'Bearer realm="superpi", scope="mcp:write", resource_metadata="{METADATA}"'
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, asked)


@pytest.mark.requirement("AU-1", "AU-5")
def test_a_token_for_somebody_else_is_401(door):
    """And not 403 (AU-5): the same challenge as for any bad one."""
    answer = door.post(INITIALIZE, door.token(aud="https://other.example/mcp"))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Bearer realm="superpi", error="invalid_token", scope=')


@pytest.mark.requirement("AU-5", "AU-21")
@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
def test_a_person_works_with_a_token_of_the_issuer(door, key):
    token = door.token(key, sub="bob")
    session = door.session(token)
    message = PING | {"method": "tools/call", "params": {"name": "write", "arguments": {"path": "a", "content": "b"}}}
    assert "isError" not in door.post(message, token, session).json()["result"]


def test_sessions_belong_to_the_subject_and_not_to_the_token(door):
    session = door.session(door.token(sub="carol"))
    assert door.post(PING, door.token(sub="carol", jti="next"), session).status_code == 200
    assert door.post(PING, door.token(sub="dave"), session).status_code == 404


CLOCKS = [
    ({"exp": -20}, True),
    ({"exp": -40}, False),
    ({"nbf": 20}, True),
    ({"nbf": 40}, False),
    ({"iat": 3600}, False),
]


@pytest.mark.parametrize(("moved", "is_good"), CLOCKS, ids=[str(moved) for moved, _ in CLOCKS])
def test_clocks_may_differ_by_half_a_minute(door, moved, is_good):
    """C07; each lies ten seconds from where it changes."""
    given = {name: int(time.time()) + seconds for name, seconds in moved.items()}
    assert door.is_let_in(door.token(**given)) == is_good


BAD = {
    "no end": {"exp": None},
    "an end in a list": {"exp": [1]},
    "an end in words": {"exp": "soon"},
    "an end in digits": {"exp": "4000000000"},
    "no audience": {"aud": None},
    "no subject": {"sub": None},
    "a subject that is a number": {"sub": 1},
    "an empty subject": {"sub": ""},
    "a subject of 10 kB": {"sub": "a" * 10_000},
    "an issuer with a slash more": {"iss": "SLASH"},
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD.keys())
def test_claims_that_open_nothing(door, given):
    """C08: 401 for each, and never 500."""
    given = given | ({"iss": door.issuer.url + "/"} if given.get("iss") == "SLASH" else {})
    assert door.status(door.token(**given)) == 401


@pytest.mark.parametrize("header", ["jku", "x5u", "jwk"])
def test_no_address_in_a_token_is_ever_asked(door, header):
    """C08: a listener on loopback hears nothing."""
    with issuer_server(RSA) as listener:
        value = RSA.jwk if header == "jwk" else listener.url + KEYS
        assert door.status(signed(RSA, door.claims(), **{header: value})) == 401
        assert listener.asked == {}


def test_an_audience_among_others_is_ours(door):
    assert door.is_let_in(door.token(aud=["https://other.example", RESOURCE]))


@pytest.mark.requirement("AU-11", "AU-12", "AU-13")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_a_scope_that_is_too_low_is_403_with_the_one_that_would_do(door, era):
    """Where more scope alone would allow it; a call that the scope allows goes through."""
    token = door.token(scope="mcp:read")
    arguments = {"name": "write", "arguments": {"path": "a", "content": "b"}}
    if era == "handshake":
        answer = door.post(PING | {"method": "tools/call", "params": arguments}, token, door.session(token))
    else:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments | {"_meta": meta()}}
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "write"}
        answer = door.post(message, token, **headers)
    wanted = f'Bearer realm="superpi", error="insufficient_scope", scope="mcp:write", resource_metadata="{METADATA}"'
    assert (answer.status_code, answer.headers["www-authenticate"]) == (403, wanted)
    assert answer.json()["error"]["data"] == {"scope": "mcp:write"}


def test_what_no_scope_would_allow_is_an_ordinary_refusal(door):
    """A harness that cannot write, whoever asks."""
    token = door.token(scope="mcp:read")
    answer = door.http.post(
        f"{door.server.url}?harness=super-pi-planner",
        json=INITIALIZE,
        headers={"accept": BOTH, "authorization": f"Bearer {token}"},
    )
    message = PING | {"method": "tools/call", "params": {"name": "write", "arguments": {"path": "a", "content": "b"}}}
    answer = door.post(message, token, answer.headers["mcp-session-id"])
    assert (answer.status_code, answer.json()["result"]["isError"]) == (200, True)


@pytest.mark.requirement("AU-11")
def test_a_token_without_a_scope_of_ours_says_which_one_to_ask_for(door):
    answer = door.post(INITIALIZE, door.token(scope="openid profile"))
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="mcp:read"' in answer.headers["www-authenticate"]


def test_invented_keys_do_not_make_the_server_call_its_issuer(door):
    """C09: 300 tokens with keys that there are not, at most one fetch, and everybody else is served meanwhile."""
    good = door.token()
    assert door.is_let_in(good)
    before = door.issuer.asked[KEYS]
    for number in range(300):
        assert door.status(signed(RSA, door.claims(), kid=f"invented-{number}")) == 401
    assert door.is_let_in(good)
    assert door.issuer.asked[KEYS] - before <= 1


def test_known_keys_go_on_to_count_while_the_issuer_is_away_and_new_ones_are_refused_in_time(door):
    """C09, C26: nothing of the issuer's is needed to let in who is known."""
    assert door.is_let_in(door.token(jti="before"))
    answers, door.issuer.answers = door.issuer.answers, {DISCOVERY: (500, {}, b""), KEYS: (500, {}, b"")}
    try:
        assert door.is_let_in(door.token(jti="after"))
        began = time.monotonic()
        assert door.status(signed(NEXT, door.claims())) == 401
        assert time.monotonic() - began < 5
    finally:
        door.issuer.answers = answers


def test_a_new_key_is_known_by_its_first_use():
    """C09: without a restart, and the old one until it leaves the set."""
    with issuer_server(RSA) as issuer, folder() as workspace, folder() as home:
        settings = {"SUPERPI_OIDC_ISSUER": issuer.url, "SUPERPI_OIDC_AUDIENCE": "superpi", "SUPERPI_PUBLIC_URL": PUBLIC}
        issuer.answers[KEYS] = (503, {}, b"")
        with serving(unprivileged(), workspace, home, **settings) as server, client() as http:
            door = Door(server, issuer, http)
            issuer.answers[KEYS] = (200, {}, document(RSA, NEXT))
            deadline = time.monotonic() + 40
            while not door.is_let_in(door.token(NEXT, aud="superpi", jti=str(time.monotonic_ns()))):
                assert time.monotonic() < deadline, "a new key was not fetched within the time that fetches are apart"
                time.sleep(0.5)
            assert door.is_let_in(door.token(RSA, aud="superpi"))
            assert not door.is_let_in(door.token(RSA))
