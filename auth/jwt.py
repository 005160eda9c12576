"""JSON Web Tokens of an OIDC issuer: a text, keys and the time in; whose it is, or why it is none, out. Pure.

The only module that lets python-jose judge a signature, and it expects nothing else of it. The header is read here, one
key and one algorithm are chosen here, and the claims are held to their rules here: the library takes a missing `exp` or
`aud` for a good one, ignores `crit` and `typ`, and raises what it does not declare. Whatever it raises is a refusal
(RFC 7519, RFC 8725, RFC 9068).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jose import jws

from auth.jwks import ALGORITHMS, KeySet, PublicKey
from auth.scopes import Scope, Scopes
from auth.strict import Json, StrictError, read_object

MAX_LENGTH: Final = 8192
#: How far the issuer's clock and ours may be apart.
LEEWAY: Final = timedelta(seconds=30)
#: Characters of a subject (OpenID Connect Core section 2).
LONGEST_SUBJECT: Final = 255
#: As an issuer's tokens begin, so that other credentials are told apart without work: `{"` in base64url.
_FORM: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
#: Access tokens by RFC 9068, and the plain type that most issuers give theirs.
_ACCESS_TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
_TYPES: Final = _ACCESS_TYPES | {"jwt"}
#: Parameters that bring a key along, or change what the signature means: nobody who signs for us needs them.
_REFUSED_PARAMETERS: Final = frozenset({"crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc"})
#: Claims that only an ID token has, which says who logged in and opens nothing.
_ID_TOKEN_CLAIMS: Final = frozenset({"nonce", "at_hash", "c_hash", "s_hash"})
_SCOPES: Final = {scope.value: scope for scope in Scope}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must be to count here: from that issuer, for one of these audiences, signed in one of these ways.

    `scope_claims` are the claims that may hold scopes; the first that is there counts.
    """

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str] = frozenset({"RS256", "ES256"})
    scope_claims: tuple[str, ...] = ("scope", "scp")
    leeway: timedelta = LEEWAY


@dataclass(frozen=True, slots=True)
class Header:
    """What a token says of its own signature; nothing of it is trusted but to choose a key by."""

    algorithm: str
    kid: str | None
    is_access: bool


@dataclass(frozen=True, slots=True)
class Identified:
    """A good token: whose it is, what it may be used for, and until when, UTC. `id` is its `jti`, where it has one."""

    principal: str
    scopes: Scopes
    until: datetime
    id: str | None


@dataclass(frozen=True, slots=True)
class NotGood:
    """A token that opens nothing; `why` is for the log and names nothing of the token's own."""

    why: str


@dataclass(frozen=True, slots=True)
class KeyUnknown:
    """No key of the set fits. The issuer may have a newer one."""

    why: str = "no key of the issuer's fits"


def looks_like_jwt(text: str) -> bool:
    """Whether the text has the form of a signed token, and not of one of our own."""
    return len(text) <= MAX_LENGTH and _FORM.fullmatch(text) is not None


def read_header(text: str, expected: Expected) -> Header | NotGood:
    """What the token says of its signature, if that may be looked at at all. Never raises."""
    if not looks_like_jwt(text):
        return NotGood("not three parts in base64url")
    try:
        parts = tuple(map(_decoded, text.split(".")))
        header = read_object(parts[0])
    except (ValueError, StrictError):
        return NotGood("the header cannot be read")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in expected.algorithms or algorithm not in ALGORITHMS:
        return NotGood("the algorithm is not allowed")
    if not (kid is None or isinstance(kid, str)):
        return NotGood("the key's id is no text")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        return NotGood("not an access token by its type")
    if _REFUSED_PARAMETERS & header.keys():
        return NotGood("the header has parameters that are not taken")
    return Header(algorithm, kid, kind.lower() in _ACCESS_TYPES)


def verify(text: str, keys: KeySet, expected: Expected, now: datetime) -> Identified | NotGood | KeyUnknown:
    """Whose token it is at that time, aware. Never raises."""
    header = read_header(text, expected)
    if isinstance(header, NotGood):
        return header
    key = keys.chosen(header.kid, header.algorithm)
    if key is None:
        return KeyUnknown()
    payload = _signed(text, key, header.algorithm)
    if payload is None:
        return NotGood("the signature does not fit")
    try:
        claims = read_object(payload)
    except StrictError as error:
        return NotGood(f"the claims cannot be read: {error}")
    return _judged(claims, header, expected, now)


def _signed(text: str, key: PublicKey, algorithm: str) -> bytes | None:
    """What the signature covers; None when it does not fit."""
    try:
        return jws.verify(text, key.made_for(algorithm), algorithms=[algorithm])
    except Exception:  # noqa: BLE001 - it raises more than it declares, and all of it means no
        return None


def _judged(claims: Json, header: Header, expected: Expected, now: datetime) -> Identified | NotGood:
    if claims.get("iss") != expected.issuer:
        return NotGood("another issuer")
    if not (_audiences(claims.get("aud")) & expected.audiences):
        return NotGood("for another audience")
    if not header.is_access and (_ID_TOKEN_CLAIMS & claims.keys() or claims.get("typ") == "ID"):
        return NotGood("an ID token")
    until = _moment(claims.get("exp"))
    if until is None or until + expected.leeway <= now:
        return NotGood("expired, or without an end")
    for name in ("nbf", "iat"):
        if name in claims and ((begins := _moment(claims[name])) is None or begins - expected.leeway > now):
            return NotGood(f"{name} lies ahead, or is no time")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        return NotGood("no subject that can be told")
    id = claims.get("jti")
    return Identified(
        f"{expected.issuer}#{subject}",
        _scopes(claims, expected.scope_claims),
        until + expected.leeway,
        id if isinstance(id, str) and id.isprintable() else None,
    )


def _audiences(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset({value})
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()


def _moment(value: Any) -> datetime | None:
    """A NumericDate (RFC 7519 section 2); None for whatever is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _scopes(claims: Json, names: tuple[str, ...]) -> Scopes:
    """The scopes that are ours; an issuer's others mean nothing here."""
    value = next((claims[name] for name in names if name in claims), ())
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
    return frozenset(_SCOPES[word] for word in words if isinstance(word, str) and word in _SCOPES)


def _decoded(part: str) -> bytes:
    """The bytes of a part; ValueError when another text stands for the same bytes."""
    raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise ValueError("not the one form of these bytes")
    return raw
