"""Tokens: the form of a secret, and what makes a token valid."""

import hashlib
import re
from dataclasses import replace
from datetime import timedelta
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth import tokens
from auth.scopes import Scope
from auth.tokens import (
    ISSUE_BYTES,
    SECRET_BYTES,
    Kind,
    NotAToken,
    Presented,
    Reason,
    Refused,
    Valid,
    issue,
    judge,
    mint,
    recognise,
    revoked,
    succeed,
)
from tests.support.auth_stores import DAY, NOON, a_principal, a_token

ENTROPY = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)
KINDS = st.sampled_from(Kind)
MOMENTS = st.integers(-5, 5).map(lambda days: NOON + days * DAY)
SECRET = mint(Kind.PAT, bytes(range(32))).secret
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def number(digits):
    value = 0
    for digit in digits:
        value = value * 62 + BASE62.index(digit)
    return value


@pytest.mark.requirement("AU-17")
@given(KINDS, ENTROPY)
def test_a_minted_secret_is_recognised_by_the_digest_that_is_kept(kind, entropy):
    minted = mint(kind, entropy)
    assert recognise(minted.secret) == Presented(kind, minted.sha256)
    assert minted.sha256 == hashlib.sha256(minted.secret.encode()).digest()


@given(KINDS, ENTROPY)
def test_a_secret_holds_all_its_entropy_and_the_checksum_of_what_is_before(kind, entropy):
    secret = mint(kind, entropy).secret
    found = re.fullmatch(r"(spi_([a-z]{3})_([0-9A-Za-z]{43}))([0-9A-Za-z]{6})", secret)
    assert (found[2], number(found[3]), number(found[4])) == (
        kind.value,
        int.from_bytes(entropy, "big"),
        crc32(found[1].encode()),
    )


@given(ENTROPY)
def test_what_is_shown_of_a_secret_is_its_beginning_and_its_end(entropy):
    minted = mint(Kind.SVC, entropy)
    assert (minted.prefix, minted.last4) == (minted.secret[:12], minted.secret[-4:])
    assert minted.secret not in repr(minted)


def test_a_known_secret_stays_as_it_is():
    assert mint(Kind.ADM, bytes(32)).secret == "spi_adm_" + "0" * 43 + "1L8A6B"


@given(KINDS, ENTROPY, st.data())
def test_any_single_character_that_differs_is_noticed(kind, entropy, data):
    secret = mint(kind, entropy).secret
    place = data.draw(st.integers(0, len(secret) - 1))
    other = data.draw((st.sampled_from(BASE62 + "_-") | st.characters()).filter(lambda char: char != secret[place]))
    assert isinstance(recognise(secret[:place] + other + secret[place + 1 :]), NotAToken)


@given(ENTROPY, st.integers(0, 55))
def test_two_neighbours_that_are_swapped_are_noticed(entropy, place):
    secret = mint(Kind.PAT, entropy).secret
    swapped = secret[:place] + secret[place + 1] + secret[place] + secret[place + 2 :]
    assert swapped == secret or isinstance(recognise(swapped), NotAToken)


@given(st.text() | st.from_regex(r"spi_(pat|svc|adm|xxx)_[0-9A-Za-z]{40,50}", fullmatch=True))
def test_noise_is_no_token_and_nothing_raises(text):
    assert isinstance(recognise(text), NotAToken)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "wrong length", id="nothing"),
        pytest.param(SECRET + "\n", "wrong length", id="a line break behind it"),
        pytest.param(" " + SECRET[:-1], "wrong form", id="a blank before it"),
        pytest.param("x" * 10_000, "wrong length", id="10 kB"),
        pytest.param("ä" * 57, "wrong form", id="not ASCII"),
        pytest.param("\ud800" * 57, "wrong form", id="lone surrogates"),
        pytest.param("٣" * 57, "wrong form", id="digits of another script"),
        pytest.param("spi_xxx_" + SECRET[8:], "wrong form", id="an unknown kind"),
        pytest.param("spi_svc_" + SECRET[8:], "wrong checksum", id="another kind"),
        pytest.param("SPI_PAT_" + SECRET[8:], "wrong form", id="capitals"),
        pytest.param(SECRET.swapcase(), "wrong form", id="the other case"),
    ],
)
def test_what_is_no_token_says_why_and_never_what(text, why):
    assert recognise(text) == NotAToken(why)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_too_little_or_too_much_chance_is_a_bug(length):
    with pytest.raises(ValueError, match="32 random bytes"):
        mint(Kind.PAT, b"x" * length)
    with pytest.raises(ValueError, match="40 random bytes"):
        issue(Kind.PAT, "local:alice", frozenset(Scope), by="x", now=NOON, entropy=b"x" * length)


def test_an_issued_token_is_the_record_of_its_secret():
    entropy = bytes(range(ISSUE_BYTES))
    issued = issue(
        Kind.PAT, "local:alice", frozenset({Scope.WRITE}), name="laptop", by="cli", now=NOON, entropy=entropy
    )
    minted = mint(Kind.PAT, entropy[:32])
    expected = a_token(issued.record.id, prefix=minted.prefix, last4=minted.last4, expires=NOON + 90 * DAY)
    assert (issued.minted, issued.record) == (minted, expected)
    assert re.fullmatch("[0-9A-Za-z]{11}", issued.record.id)


def test_a_successor_is_the_same_but_for_its_secret_and_as_long_lived():
    old = a_token(kind=Kind.SVC, scopes=frozenset({Scope.READ}), expires=NOON + 7 * DAY, last_used=NOON)
    new = succeed(old, by="local:root", now=NOON + 3 * DAY, entropy=bytes(ISSUE_BYTES)).record
    kept = replace(old, id=new.id, prefix=new.prefix, last4=new.last4, created=NOON + 3 * DAY, created_by="local:root")
    assert new == replace(kept, expires=NOON + 10 * DAY, last_used=None)


def test_the_successor_of_a_token_without_end_has_none():
    new = succeed(a_token(expires=None), by="x", now=NOON, entropy=bytes(ISSUE_BYTES))
    assert new.record.expires is None


TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("token", "principal", "expected"),
    [
        pytest.param(None, None, Reason.UNKNOWN, id="an unknown token"),
        pytest.param(a_token(), None, Reason.UNKNOWN, id="an unknown principal"),
        pytest.param(a_token(), a_principal("local:bob"), Reason.UNKNOWN, id="another principal"),
        pytest.param(a_token(expires=NOON), a_principal(), Reason.EXPIRED, id="expired now"),
        pytest.param(a_token(expires=NOON + TICK), a_principal(), NOON + TICK, id="about to expire"),
        pytest.param(a_token(expires=None), a_principal(), None, id="without end"),
        pytest.param(a_token(revoked=NOON), a_principal(), Reason.REVOKED, id="revoked now"),
        pytest.param(a_token(revoked=NOON + TICK), a_principal(), NOON + TICK, id="about to be replaced"),
        pytest.param(a_token(revoked=NOON, expires=NOON), a_principal(), Reason.REVOKED, id="revoked and expired"),
        pytest.param(a_token(), a_principal(disabled=NOON + DAY), Reason.DISABLED, id="disabled, whenever"),
    ],
)
def test_the_verdict_on(token, principal, expected):
    verdict = Refused(expected) if isinstance(expected, Reason) else Valid(token, expected)
    assert judge(token, principal, NOON) == verdict


TOKENS = st.builds(a_token, expires=st.none() | MOMENTS, revoked=st.none() | MOMENTS)
PRINCIPALS = st.builds(a_principal, disabled=st.none() | MOMENTS)


@given(TOKENS, PRINCIPALS, MOMENTS, MOMENTS)
def test_what_is_refused_once_stays_refused(token, principal, one, other):
    earlier, later = sorted((one, other))
    if isinstance(judge(token, principal, earlier), Refused):
        assert isinstance(judge(token, principal, later), Refused)


@given(TOKENS, PRINCIPALS, MOMENTS, MOMENTS)
def test_a_verdict_holds_until_the_moment_it_names(token, principal, now, later):
    verdict = judge(token, principal, now)
    if isinstance(verdict, Valid) and later >= now:
        ended = verdict.until is not None and verdict.until <= later
        assert isinstance(judge(token, principal, later), Refused) == ended


@given(TOKENS, PRINCIPALS, MOMENTS, MOMENTS)
def test_revoking_or_disabling_never_makes_a_token_valid(token, principal, now, at):
    if isinstance(judge(token, principal, now), Refused):
        assert isinstance(judge(revoked(token, at, "x"), principal, now), Refused)
        assert isinstance(judge(token, replace(principal, disabled=at), now), Refused)


@given(TOKENS, MOMENTS, MOMENTS)
def test_the_earliest_revocation_stands(token, one, other):
    both = revoked(revoked(token, one, "x"), other, "x")
    assert both.revoked == min(moment for moment in (token.revoked, one, other) if moment is not None)


@pytest.mark.parametrize(
    ("id", "is_one"),
    [
        ("local:alice", True),
        ("local:A.b_c-9", True),
        ("local:" + "x" * 64, True),
        ("local:" + "x" * 65, False),
        ("local:", False),
        ("local:é", False),
        ("local:a b", False),
        ("local:a\n", False),
        ("local:a/b", False),
        ("LOCAL:a", False),
        ("alice", False),
        ("anonymous", False),
        ("https://issuer#sub", False),
        ("", False),
    ],
)
def test_what_a_local_principal_is_called(id, is_one):
    assert tokens.is_local_principal(id) is is_one


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("", True), ("søren's laptop 🦀", True), ("x" * 100, True), ("x" * 101, False), ("a\nb", False), ("\0", False)],
)
def test_what_a_token_may_be_named(name, is_one):
    assert tokens.is_name(name) is is_one
