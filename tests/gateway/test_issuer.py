"""An issuer over the network: its keys are found, and nothing that it answers instead does any harm (C09)."""

import gzip
import json
import time

import pytest

from auth.jwks import KeySet, key_set
from auth.keyring import KeysAway
from gateway.issuer import MOST_BYTES, SECONDS, Issuer, address_fault
from tests.support.issuer import EcKey, document
from tests.support.issuer_server import DISCOVERY, KEYS, issuer_server

KEY = EcKey("k1")


@pytest.fixture
def issuer():
    with issuer_server(KEY) as found:
        yield found


async def test_the_keys_are_where_its_metadata_says(issuer):
    assert await Issuer(issuer.url).fetch() == key_set(document(KEY))
    assert issuer.asked == {DISCOVERY: 1, KEYS: 1}


async def test_a_given_address_of_keys_needs_no_metadata(issuer):
    assert await Issuer(issuer.url, issuer.url + KEYS).fetch() != KeySet()
    assert issuer.asked == {KEYS: 1}


ANSWERS = {
    "a failure": (500, {}, b"{}"),
    "a page": (200, {}, b"<html></html>"),
    "10 MB": (200, {}, b" " * 10_000_000),
    "one byte too many": (200, {}, document(KEY).ljust(MOST_BYTES + 1)),
    "a small answer that unpacks to a large one": (200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * 10_000_000)),
    "less than it said": (200, {"Content-Length": "100000", "Connection": "close"}, b"{}"),
    "nothing, ever": (200, {}, None),
}


@pytest.mark.parametrize("path", [DISCOVERY, KEYS])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
async def test_whatever_it_answers_instead_ends_in_time(issuer, path, answer):
    """In no more than the time that it has, with nothing but the news that there are no keys."""
    issuer.answers[path] = answer
    began = time.monotonic()
    with pytest.raises(KeysAway, match=r"."):
        await Issuer(issuer.url).fetch()
    assert time.monotonic() - began < SECONDS + 2


@pytest.mark.parametrize("path", [DISCOVERY, KEYS])
async def test_a_redirect_leads_nowhere(issuer, path):
    with issuer_server(KEY) as other:
        issuer.answers[path] = (302, {"Location": other.url + path}, b"")
        with pytest.raises(KeysAway, match="answered 302"):
            await Issuer(issuer.url).fetch()
        assert other.asked == {}


METADATA = {
    "of another issuer": {"issuer": "https://other.example"},
    "with a slash more in its name": {"issuer": "SELF/"},
    "without keys": {"jwks_uri": None},
    "with keys in the open": {"jwks_uri": "http://issuer.example/keys"},
    "with keys in a file": {"jwks_uri": "file:///keys"},
    "with keys that are no address": {"jwks_uri": ["https://issuer.example"]},
}


@pytest.mark.parametrize("wrong", METADATA.values(), ids=METADATA.keys())
async def test_metadata_that_is_not_trusted(issuer, wrong):
    changed = {name: f"{issuer.url}/" if value == "SELF/" else value for name, value in wrong.items()}
    issuer.answers[DISCOVERY] = (200, {}, json.dumps(issuer.metadata | changed).encode())
    with pytest.raises(KeysAway):
        await Issuer(issuer.url).fetch()
    assert issuer.asked[KEYS] == 0


async def test_nobody_at_that_address():
    with issuer_server(KEY) as gone:
        pass
    with pytest.raises(KeysAway):
        await Issuer(gone.url).fetch()


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://issuer.example", True),
        ("https://issuer.example:8443/realms/team", True),
        ("http://127.0.0.1:9000", True),
        ("http://localhost:9000/realms/team", True),
        ("http://issuer.example", False),
        ("https://user:password@issuer.example", False),
        ("https://issuer.example?x=1", False),
        ("https://issuer.example#x", False),
        ("https://", False),
        ("https://issuer.example:port", False),
        ("ftp://issuer.example", False),
        ("issuer.example", False),
        ("", False),
    ],
)
def test_which_addresses_may_be_asked_for_keys(url, is_taken):
    assert (address_fault(url) is None) == is_taken
