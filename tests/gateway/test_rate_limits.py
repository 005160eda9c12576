"""Case C11: how much one caller may ask for, on a real server."""

import json
import time

import httpx
import pytest

from gateway.routes import PROBES, is_admin
from tests.support.administration import TOKENS, administered, felt
from tests.support.eras import request as stateless
from tests.support.postgres import running
from tests.support.raw_http import BOTH, INITIALIZE
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

CALLS, SECONDS, RUNS, WRONG = 20, 6, 4, 5


@pytest.fixture(scope="module")
def office():
    rates = {"CALLS": CALLS, "SECONDS": SECONDS, "RUNS": RUNS, "CREDENTIALS": WRONG}
    with administered(**{f"SUPERPI_RATES__{name}": str(most) for name, most in rates.items()}) as office:
        yield office


def tool(name, id=1, **arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


class Member:
    def __init__(self, office, name):
        self.office, self.token = office, office.token(name)

    def post(self, message, query="", **headers):
        return self.office.ask(
            "POST", f"/mcp{query}", token=self.token, json=message, headers={"accept": BOTH} | headers
        )

    def call(self, id, **headers):
        """Without a session, so that nothing but the principal tells callers apart."""
        params = {"name": "ls", "arguments": {}}
        modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ls"}
        return self.post(stateless("tools/call", params, id=id), **modern | headers)

    def exhaust(self):
        """Call until there is no room; the answer that says so."""
        for id in range(CALLS + 1):
            answer = self.call(id)
            if answer.status_code == 429:
                return answer
        raise AssertionError("there is no bound")


def test_beyond_the_budget_a_call_is_refused_until_there_is_room(office):
    """The first twenty are answered, whatever else happens; then its id comes back with the wait in whole seconds."""
    alice = Member(office, "alice")
    answers = [alice.call(id) for id in range(30)]
    assert [answer.status_code for answer in answers[:CALLS]] == [200] * CALLS
    assert {answer.status_code for answer in answers[CALLS:]} == {429}
    refused = answers[-1]
    assert (refused.json()["id"], refused.json()["error"]["code"]) == (29, 429)
    wait = int(refused.headers["retry-after"])
    assert 1 <= wait <= SECONDS
    assert refused.headers["ratelimit-policy"] == f'"calls";q={CALLS};w={SECONDS}'
    assert refused.headers["ratelimit"] == f'"calls";r=0;t={wait}'
    assert Member(office, "bob").call(1).status_code == 200
    time.sleep(wait)
    assert alice.call(1).status_code == 200


def test_nothing_gives_a_caller_a_second_budget(office):
    """Neither a session, nor a header, nor a query, nor another token of the same principal."""
    carol = Member(office, "carol")
    session = carol.post(INITIALIZE).headers["mcp-session-id"]
    carol.exhaust()
    second = Member(office, "carol")
    answers = [
        carol.post(tool("ls"), **{"mcp-session-id": session}),
        carol.post(INITIALIZE),
        carol.post(INITIALIZE, "?harness=super-pi-planner"),
        carol.call(1, **{"x-forwarded-for": "10.1.2.3", "x-request-id": "another"}),
        second.call(1),
    ]
    assert [answer.status_code for answer in answers] == [429] * 5


def test_cheap_requests_have_a_budget_of_their_own(office):
    """An agent that has called too much still finds out what there is, and may withdraw what runs."""
    dave = Member(office, "dave")
    dave.exhaust()
    for method in ("tools/list", "server/discover"):
        assert dave.post(stateless(method), **headers(method)).status_code == 200
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    session = dave.post(INITIALIZE)
    assert session.status_code == 429
    assert dave.post(note).status_code != 429


def headers(method):
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": method}


def test_commands_have_a_bound_of_their_own(office):
    """Case C11, second bucket: reading goes on."""
    erin = Member(office, "erin")
    session = {"mcp-session-id": erin.post(INITIALIZE).headers["mcp-session-id"]}
    answers = [erin.post(tool("bash", id, command="true"), **session) for id in range(RUNS + 1)]
    assert [answer.status_code for answer in answers] == [200] * RUNS + [429]
    assert answers[-1].headers["ratelimit-policy"] == f'"runs";q={RUNS};w={SECONDS}'
    assert erin.post(tool("ls"), **session).status_code == 200


def test_a_flood_is_one_row_and_counted(office):
    """The log must not grow with what is refused."""
    frank = Member(office, "frank")
    before = counted(office)
    frank.exhaust()
    for id in range(20):
        assert frank.call(id).status_code == 429
    assert counted(office) == before + 21
    felt(lambda: any(row["action"] == "mcp" for row in office.audit("local:frank")))
    rows = [row for row in office.audit("local:frank") if row["action"] == "mcp"]
    assert [(row["object"], row["decision"], row["reason"]) for row in rows] == [
        ("POST /mcp", "refused", "rate: calls")
    ]


def counted(office):
    text = office.ask("GET", "/metrics", token="").text
    start = 'superpi_rate_limited_total{budget="calls"} '
    return sum(float(line.removeprefix(start)) for line in text.splitlines() if line.startswith(start))


def test_administration_is_limited_and_says_so_as_a_problem(office):
    """Case C11: every documented route, so the walk takes them from the document."""
    root = office.token("overworked", "--kind", "adm")
    document = office.ask("GET", "/admin/v1/openapi.json").json()
    while (answer := office.ask("GET", TOKENS, token=root)).status_code == 200:
        pass
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    routes = [(method, path) for path, item in document["paths"].items() if is_admin(path) for method in item]
    assert len(routes) > 5
    for method, path in routes:
        refused = office.ask(method.upper(), path.replace("{id}", "x"), token=root)
        assert (method, path, refused.status_code) == (method, path, 429)
        assert "429" in document["paths"][path][method]["responses"]


def test_the_probes_are_never_limited(office):
    alice = Member(office, "grace")
    alice.exhaust()
    for path in PROBES:
        assert {office.ask("GET", path, token="").status_code for _ in range(15 * CALLS)} == {200}


def test_wrong_credentials_are_counted_by_address(office):
    """Case C11: whoever is known goes on from the same address, and somebody new gets in; a header moves nobody."""
    known, new, answers = Member(office, "heidi"), Member(office, "ivan"), []
    # The server hears that these tokens were made, and only then remembers one that it has looked up.
    time.sleep(1)
    assert known.call(1).status_code == 200

    def guess(n):
        forged = {"x-forwarded-for": f"10.0.0.{n}"}
        answers.append(office.ask("POST", "/mcp", token=f"wrong-{n}", json=INITIALIZE, headers=forged))

    for n in range(4 * WRONG):
        guess(n)
    assert [answer.status_code for answer in answers[:WRONG]] == [401] * WRONG
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) >= 2 * WRONG
    assert refused[0].headers["ratelimit-policy"] == f'"credentials";q={WRONG};w={SECONDS}'
    assert known.call(2).status_code == 200
    # Of a credential that is not known yet one a second is looked at.
    felt(lambda: new.call(1).status_code == 200, SECONDS)


def test_no_credential_is_no_guess(office):
    """Hosts probe without one to find out where to log in."""
    with httpx.Client(trust_env=False) as http:
        answers = [http.post(office.server.url, content=json.dumps(INITIALIZE)) for _ in range(4 * WRONG)]
    assert {answer.status_code for answer in answers} == {401}


def test_replicas_on_one_database_share_a_bound():
    """Each allows its part once it knows of the others."""
    settings = {"SUPERPI_RATES__CALLS": "20", "SUPERPI_RATES__SECONDS": "60", "SUPERPI_SESSION_IDLE_SECONDS": "4"}
    with running() as postgres, administered(postgres, **settings) as office, folder() as workspace, folder() as home:
        alone = calls(office, "alice")
        assert alone.count(200) == 20
        with serving(unprivileged(), workspace, home, **office.settings):
            time.sleep(5)
            shared = calls(office, "bob")
    assert shared.count(200) == 10


def calls(office, name):
    member = Member(office, name)
    return [member.call(id).status_code for id in range(25)]
