"""Tokens of an issuer: what is taken, and every way that one was ever got around."""

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.jwks import KeySet, key_set
from auth.jwt import Expected, Identified, KeyUnknown, NotGood, looks_like_jwt, verify
from auth.scopes import Scope
from tests.support.issuer import EcKey, RsaKey, b64, document, okp_jwk, signed, text

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
ISSUER = "https://issuer.example"
OURS = "https://team.example/mcp"
RSA, EC = RsaKey("rsa"), EcKey("ec")
KEYS = key_set(document(EC, okp_jwk("okp"), RSA))
EXPECTED = Expected(ISSUER, frozenset({OURS}))


def at(seconds):
    return int((NOW + timedelta(seconds=seconds)).timestamp())


def claims(**given):
    """Good claims, with what is given instead; None leaves one out."""
    good = {"iss": ISSUER, "aud": OURS, "sub": "alice", "exp": at(300), "iat": at(-10), "scope": "openid mcp:read"}
    return {name: value for name, value in (good | given).items() if value is not None}


def judged(token, expected=EXPECTED, keys=KEYS):
    return verify(token, keys, expected, NOW)


@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
def test_a_good_token_says_whose_it_is_what_for_and_until_when(key):
    """In a set whose keys are of several types, in any order (C08)."""
    token = signed(key, claims(jti="j1"))
    until = NOW + timedelta(seconds=330)
    assert judged(token) == Identified(f"{ISSUER}#alice", frozenset({Scope.READ}), until, "j1")


TAKEN = {
    "an audience among others": claims(aud=["https://other.example", OURS]),
    "expired within the leeway": claims(exp=at(-20)),
    "not yet begun within the leeway": claims(nbf=at(20)),
    "a time with a fraction": claims(exp=at(300) + 0.5),
    "no time of issue": claims(iat=None),
}


@pytest.mark.parametrize("good", TAKEN.values(), ids=TAKEN.keys())
def test_taken(good):
    """What other issuers do, and clocks that differ."""
    assert isinstance(judged(signed(RSA, good)), Identified)


REFUSED_CLAIMS = {
    "expired": claims(exp=at(-40)),
    "not yet begun": claims(nbf=at(40)),
    "issued in an hour": claims(iat=at(3600)),
    "no end": claims(exp=None),
    "an end of null": claims() | {"exp": None},
    "an end in a list": claims(exp=[at(300)]),
    "an end in words": claims(exp="soon"),
    "an end in digits that are a text": claims(exp=str(at(300))),
    "an end that is true": claims(exp=True),
    "an end beyond all calendars": claims(exp=10**30),
    "a beginning that is no time": claims(nbf="now"),
    "no audience": claims(aud=None),
    "another audience": claims(aud="https://other.example/mcp"),
    "an audience with a slash more": claims(aud=OURS + "/"),
    "an audience that is a number": claims(aud=7),
    "no issuer": claims(iss=None),
    "an issuer with a slash more": claims(iss=ISSUER + "/"),
    "another issuer": claims(iss="https://other.example", sub="admin"),
    "no subject": claims(sub=None),
    "a subject that is a number": claims(sub=7),
    "an empty subject": claims(sub=""),
    "a subject of 10 kB": claims(sub="a" * 10_000),
    "a subject with a control character": claims(sub="a\nb"),
    "a subject of half a surrogate pair": claims(sub="\ud800"),
}


@pytest.mark.parametrize("bad", REFUSED_CLAIMS.values(), ids=REFUSED_CLAIMS.keys())
def test_claims_that_open_nothing(bad):
    """All of them signed correctly (C07, C08)."""
    assert isinstance(judged(signed(RSA, bad)), NotGood)


RAW = {
    "1e999": b'"exp": 1e999',
    "NaN": b'"exp": NaN',
    "a digit too many": b'"exp": ' + b"9" * 4000,
    "two subjects": b'"exp": %d, "sub": "admin"' % at(300),
    "deep nesting": b'"exp": %d, "x": ' % at(300) + b"[" * 2000 + b"]" * 2000,
}


@pytest.mark.parametrize("part", RAW.values(), ids=RAW.keys())
def test_claims_that_are_read_in_two_ways(part):
    """What a lenient parser takes."""
    raw = b'{"iss": "%s", "aud": "%s", "sub": "alice", %s}' % (ISSUER.encode(), OURS.encode(), part)
    assert isinstance(judged(signed(RSA, raw)), NotGood)


HEADERS = {
    "an extension that must be understood": {"crit": ["x"]},
    "a key along with it": {"jwk": RSA.jwk},
    "keys from elsewhere": {"jku": "http://127.0.0.1:9/"},
    "a certificate from elsewhere": {"x5u": "http://127.0.0.1:9/"},
    "no algorithm": {"alg": None},
    "the algorithm none": {"alg": "none"},
    "an algorithm of another key": {"alg": "ES256"},
    "an algorithm that is not allowed": {"alg": "RS512"},
    "an algorithm in a list": {"alg": ["RS256"]},
    "another type": {"typ": "JOSE"},
    "a key's id that is a number": {"kid": 7},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_headers_that_choose_how_they_are_judged(header):
    """Nothing but an allowed algorithm and the name of a key is taken from there."""
    assert not isinstance(judged(signed(RSA, claims(), **header)), Identified)


@pytest.mark.parametrize("form", ["PEM", "DER", "SSH"])
def test_a_public_key_is_no_shared_secret(form):
    """HS256 keyed with what everybody can download, whether HS256 was allowed by mistake or not."""
    message = f"{text({'alg': 'HS256', 'typ': 'at+jwt', 'kid': 'rsa'})}.{text(claims())}"
    forged = f"{message}.{b64(hmac.digest(RSA.forms()[form], message.encode(), hashlib.sha256))}"
    careless = Expected(ISSUER, frozenset({OURS}), frozenset({"HS256", "RS256"}))
    assert isinstance(judged(forged), NotGood)
    assert isinstance(judged(forged, careless), NotGood)


@pytest.mark.parametrize("tail", ["!!!!", "=", ".", ".e30", " ", "\n", "AA"])
def test_what_follows_the_signature_is_part_of_it(tail):
    """The library reads over it."""
    assert isinstance(judged(signed(RSA, claims()) + tail), NotGood)


def test_an_encrypted_token_is_none_of_ours():
    """Five parts."""
    assert isinstance(judged(".".join([signed(RSA, claims()), "e30", "e30"])), NotGood)


def test_an_id_token_opens_nothing():
    """It is of the plain type, and tells of a login."""
    assert isinstance(judged(signed(RSA, claims(nonce="n"), typ="JWT")), NotGood)
    assert isinstance(judged(signed(RSA, claims(), typ="JWT")), Identified)


def test_another_keys_signature_does_not_fit():
    """By an issuer with the same names."""
    assert isinstance(judged(signed(RsaKey("rsa"), claims())), NotGood)


def test_a_key_that_is_not_there_is_said_to_be_missing():
    """So that newer keys can be fetched."""
    assert judged(signed(RsaKey("new"), claims())) == KeyUnknown()
    assert judged(signed(RSA, claims()), keys=KeySet()) == KeyUnknown()


def test_without_a_name_the_one_key_that_fits_is_taken():
    """Of two nobody can tell which."""
    assert isinstance(judged(signed(RSA, claims(), kid=None)), Identified)
    two = key_set(document(RSA, RsaKey("other")))
    assert judged(signed(RSA, claims(), kid=None), keys=two) == KeyUnknown()


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ({"scope": "mcp:read mcp:write admin offline_access"}, {Scope.READ, Scope.WRITE, Scope.ADMIN}),
        ({"scope": None, "scp": ["mcp:full", 7]}, {Scope.FULL}),
        ({"scope": None}, set()),
        ({"scope": 7}, set()),
        ({"scope": "", "scp": "mcp:full"}, set()),
    ],
    ids=["a text", "a list", "none", "a number", "the first claim counts"],
)
def test_scopes_are_those_of_ours_that_the_claim_has(given, scopes):
    """An issuer's others mean nothing here."""
    found = judged(signed(RSA, claims(**given)))
    assert isinstance(found, Identified)
    assert found.scopes == scopes


@given(
    st.text(max_size=80) | st.binary(max_size=60).map(lambda raw: "eyJ" + b64(raw) + "." + b64(raw) + "." + b64(raw))
)
def test_no_text_makes_it_raise(shown):
    """Whatever comes in the header of a request."""
    assert not isinstance(judged(shown), Identified)


@given(st.data())
def test_no_changed_character_is_overlooked(data):
    """Each of a good token's."""
    token = signed(EC, claims())
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("ABab019-_.").filter(lambda one: one != token[place]))
    assert not isinstance(judged(token[:place] + other + token[place + 1 :]), Identified)


def test_our_own_tokens_do_not_look_like_one():
    """They are told apart before anything is decoded."""
    assert not looks_like_jwt("spi_pat_" + "a" * 49)
    assert looks_like_jwt(signed(RSA, claims()))
    assert not looks_like_jwt(signed(RSA, claims(padding="x" * 8192)))


KEY_SETS = {
    "no object": b"[]",
    "no list": b'{"keys": {}}',
    "no key": b'{"keys": []}',
    "two lists": b'{"keys": [], "keys": []}',
    "a page": b"<html></html>",
    "a short key": document(RsaKey("weak", bits=1024)),
    "a shared secret": json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}).encode(),
    "a key for encryption": document(RSA.jwk | {"use": "enc"}),
    "a key that only signs": document(RSA.jwk | {"key_ops": ["sign"]}),
    "keys of no sense": b'{"keys": [1, null, {"kty": ["RSA"]}, {"kty": "RSA", "n": 1, "e": "AQAB"}]}',
}


@pytest.mark.parametrize("served", KEY_SETS.values(), ids=KEY_SETS.keys())
def test_no_keys(served):
    """What an issuer, or whoever answers for it, may send instead."""
    with pytest.raises(ValueError, match=r"."):
        key_set(served)


def test_a_key_for_one_algorithm_verifies_no_other():
    """Its own `alg` binds it."""
    keys = key_set(document(RSA.jwk | {"alg": "RS512"}))
    assert judged(signed(RSA, claims()), keys=keys) == KeyUnknown()
