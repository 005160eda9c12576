"""What the administrative interface says of an input that it does not take, to the letter. A real server."""

import pytest

from tests.support.administration import TOKENS, administered

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def office():
    with administered() as office:
        yield office


def test_what_is_wrong_is_said_in_words_that_say_what_to_do(office):
    """To the letter, for those that people meet first."""
    bad = {"principal": "alice", "scopes": [], "expires_days": 0, "name": 1, "kind": "root"}
    assert office.ask("POST", TOKENS, json=bad).json()["errors"] == [
        {
            "pointer": "/principal",
            "detail": "This is no local principal: write local: and a name of up to 64 letters, digits and . _ -.",
        },
        {"pointer": "/kind", "detail": "This must be 'pat', 'svc' or 'adm'."},
        {"pointer": "/scopes", "detail": "Give at least 1 here."},
        {"pointer": "/name", "detail": "This must be a string."},
        {"pointer": "/expires_days", "detail": "This must be at least 1."},
    ]
    assert office.ask("GET", f"{TOKENS}?limit=1&limit=2").json()["errors"] == [
        {"parameter": "limit", "detail": "Give this once."}
    ]
    assert office.ask("GET", f"{TOKENS}?principal=bad").json()["errors"] == [
        {
            "parameter": "principal",
            "detail": "This is no local principal: write local: and a name of up to 64 letters, digits and . _ -.",
        }
    ]
    assert office.ask("POST", TOKENS, content=b"", headers=JSON).json()["detail"] == "Send the body as JSON."


@pytest.mark.parametrize(
    ("content", "headers"), [(b"", {}), (b"", JSON), (b"{}", JSON), (b" { }\n", {"content-type": "text/plain"})]
)
def test_a_revocation_takes_nothing_to_say(office, content, headers):
    """An unknown id, so that the body is all that could be refused before."""
    assert office.ask("POST", f"{TOKENS}/x/revoke", content=content, headers=headers).status_code == 404


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b'{"overlap": 5}', JSON),
        (b"[]", JSON),
        (b"null", JSON),
        (b"{", JSON),
        (b"\xff", {}),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}),
    ],
)
def test_a_revocation_that_is_told_something_is_refused_and_changes_nothing(office, content, headers):
    """Whoever says when or why would otherwise believe that it was heard."""
    made = office.create()
    answer = office.ask("POST", f"{TOKENS}/{made['id']}/revoke", content=content, headers=headers)
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"pointer": "", "detail": "Send no body, or {}: there is nothing to be said here."}],
    )
    assert office.ask("GET", f"{TOKENS}/{made['id']}").json()["state"] == "valid"


def test_the_body_of_a_revocation_is_bounded_like_any_other(office):
    answer = office.ask("POST", f"{TOKENS}/x/revoke", content=b" " * (64 * 1024 + 1))
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    assert "65536 bytes; SUPERPI_ADMIN_BODY_BYTES" in answer.json()["detail"]
