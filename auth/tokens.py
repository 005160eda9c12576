"""Tokens and principals as values: the secret's form, the records of both, and what makes a token valid. Pure.

A secret is `spi_<kind>_`, 43 characters of base62 that hold 256 random bits, and 6 of base62 that hold the CRC32
of everything before them. Typing errors and a scanner's noise are told from a token without asking anybody.
Chance and the time of day come in as arguments; a secret is never kept, only its SHA-256.
"""

from __future__ import annotations

import enum
import hashlib
import re
import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from auth.scopes import Scope, Scopes

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM: Final = 43
_CHECK: Final = 6
#: Characters of an id; it names a token in lists and logs and is no secret.
_ID: Final = 11
#: How much of the random part is shown, so that a person can tell tokens apart.
_SHOWN: Final = 4

#: Random bytes that `mint` takes, and those that `issue` takes: the secret's and the id's.
SECRET_BYTES: Final = 32
ISSUE_BYTES: Final = SECRET_BYTES + 8
#: How long a token is valid when nobody says otherwise, and at most unless it never expires.
DEFAULT_LIFETIME: Final = timedelta(days=90)
LONGEST_LIFETIME: Final = timedelta(days=3650)
MOST_NAME: Final = 100
#: The prefix of principals that are kept here, as opposed to those of an issuer.
LOCAL: Final = "local:"
_LOCAL_PRINCIPAL: Final = re.compile(r"local:[A-Za-z0-9._-]{1,64}")


class Kind(enum.StrEnum):
    """What a token is for: a person, a service, or administration. It is a label; the scopes decide."""

    PAT = "pat"
    SVC = "svc"
    ADM = "adm"


_FORM: Final = re.compile(rf"spi_({'|'.join(Kind)})_[0-9A-Za-z]{{{_RANDOM}}}[0-9A-Za-z]{{{_CHECK}}}")
_LENGTH: Final = len("spi_pat_") + _RANDOM + _CHECK
_KINDS: Final = {kind.value: kind for kind in Kind}
#: The scopes of a token of that kind when nobody says otherwise.
DEFAULT_SCOPES: Final[dict[Kind, Scopes]] = {
    Kind.PAT: frozenset({Scope.WRITE}),
    Kind.SVC: frozenset({Scope.WRITE}),
    Kind.ADM: frozenset({Scope.ADMIN}),
}


@dataclass(frozen=True, slots=True)
class Minted:
    """A new secret, to be shown once, and what is kept of it."""

    secret: str
    sha256: bytes
    prefix: str
    last4: str

    def __repr__(self) -> str:
        """Without the secret, so that no log shows it."""
        return f"Minted({self.prefix}...{self.last4})"


@dataclass(frozen=True, slots=True)
class Presented:
    """A text that has the form of a token, by the digest under which one would be kept."""

    kind: Kind
    sha256: bytes


@dataclass(frozen=True, slots=True)
class NotAToken:
    """A text that cannot be a token; `why` is for the log and never shows the text."""

    why: str


@dataclass(frozen=True, slots=True)
class PrincipalRecord:
    """Somebody whose things are kept here."""

    id: str
    created: datetime
    created_by: str
    disabled: datetime | None = None
    disabled_by: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """All that is kept of a token but its digest. `revoked` may lie ahead: until then a replaced token works."""

    id: str
    kind: Kind
    prefix: str
    last4: str
    principal: str
    name: str
    scopes: Scopes
    created: datetime
    created_by: str
    expires: datetime | None
    last_used: datetime | None = None
    revoked: datetime | None = None
    revoked_by: str | None = None

    @property
    def until(self) -> datetime | None:
        """The moment from which it is not valid whatever happens; None when there is none."""
        ends = [end for end in (self.expires, self.revoked) if end is not None]
        return min(ends, default=None)


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token: the secret to show once, and the record to keep."""

    minted: Minted
    record: TokenRecord


class Reason(enum.StrEnum):
    """Why a token is not valid: for logs and audit. Outside there is one text for all of them."""

    UNKNOWN = "unknown token"
    REVOKED = "revoked token"
    EXPIRED = "expired token"
    DISABLED = "disabled principal"


@dataclass(frozen=True, slots=True)
class Valid:
    """The token may be used, until that moment unless something changes; None for no end."""

    token: TokenRecord
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The token may not be used."""

    reason: Reason


def mint(kind: Kind, entropy: bytes) -> Minted:
    """A secret of that kind from `SECRET_BYTES` random bytes."""
    body = f"spi_{kind.value}_{_base62(_exactly(entropy, SECRET_BYTES), _RANDOM)}"
    secret = body + _check(body)
    shown = len(body) - _RANDOM + _SHOWN
    return Minted(secret, _digest(secret), secret[:shown], secret[-_SHOWN:])


def recognise(text: str) -> Presented | NotAToken:
    """Whether the text has the form of a token. Never raises; the work does not grow with the text."""
    if len(text) != _LENGTH:
        return NotAToken("wrong length")
    found = _FORM.fullmatch(text)
    if found is None:
        return NotAToken("wrong form")
    if _check(text[:-_CHECK]) != text[-_CHECK:]:
        return NotAToken("wrong checksum")
    return Presented(_KINDS[found[1]], _digest(text))


def fingerprint(text: str) -> bytes | None:
    """The digest under which a token of that text would be kept; None where the text cannot be one.

    Quicker than `recognise`, which also tells noise from a token.
    """
    return _digest(text) if len(text) == _LENGTH and text.isascii() else None


def judge(token: TokenRecord | None, principal: PrincipalRecord | None, now: datetime) -> Valid | Refused:
    """Whether the token may be used now. What is refused once stays so as time goes on."""
    if token is None or principal is None or token.principal != principal.id:
        return Refused(Reason.UNKNOWN)
    if token.revoked is not None and token.revoked <= now:
        return Refused(Reason.REVOKED)
    if token.expires is not None and token.expires <= now:
        return Refused(Reason.EXPIRED)
    if principal.disabled is not None:
        return Refused(Reason.DISABLED)
    return Valid(token, token.until)


def issue(
    kind: Kind,
    principal: str,
    scopes: Scopes,
    *,
    name: str = "",
    lifetime: timedelta | None = DEFAULT_LIFETIME,
    by: str,
    now: datetime,
    entropy: bytes,
) -> Issued:
    """A new token from `ISSUE_BYTES` random bytes; a `lifetime` of None never ends. Checks nothing of the rest."""
    _exactly(entropy, ISSUE_BYTES)
    minted = mint(kind, entropy[:SECRET_BYTES])
    record = TokenRecord(
        id=_base62(entropy[SECRET_BYTES:], _ID),
        kind=kind,
        prefix=minted.prefix,
        last4=minted.last4,
        principal=principal,
        name=name,
        scopes=scopes,
        created=now,
        created_by=by,
        expires=None if lifetime is None else now + lifetime,
    )
    return Issued(minted, record)


def succeed(old: TokenRecord, *, by: str, now: datetime, entropy: bytes) -> Issued:
    """A token that takes the place of `old`: the same in everything but the secret, and as long-lived from now."""
    lifetime = None if old.expires is None else old.expires - old.created
    return issue(old.kind, old.principal, old.scopes, name=old.name, lifetime=lifetime, by=by, now=now, entropy=entropy)


def revoked(token: TokenRecord, at: datetime, by: str) -> TokenRecord:
    """The token once it is revoked from `at` on; an earlier revocation stands."""
    if token.revoked is not None and token.revoked <= at:
        return token
    return replace(token, revoked=at, revoked_by=by)


def is_local_principal(id: str) -> bool:
    """Whether the id is `local:` and a name of up to 64 letters, digits, dots, hyphens and underscores."""
    return _LOCAL_PRINCIPAL.fullmatch(id) is not None


def is_name(text: str) -> bool:
    """Whether the text may name a token: one line of up to `MOST_NAME` printable characters; empty is fine."""
    return len(text) <= MOST_NAME and text.isprintable()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def _check(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")).to_bytes(4, "big"), _CHECK)


def _base62(value: bytes, length: int) -> str:
    """The number that the bytes are, big-endian, in exactly that many digits."""
    number, digits = int.from_bytes(value, "big"), ["0"] * length
    for place in range(length - 1, -1, -1):
        number, digit = divmod(number, len(_DIGITS))
        digits[place] = _DIGITS[digit]
    return "".join(digits)


def _exactly(entropy: bytes, length: int) -> bytes:
    if len(entropy) != length:
        raise ValueError(f"{length} random bytes are needed")
    return entropy
