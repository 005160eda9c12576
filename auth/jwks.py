"""The public keys of an issuer (RFC 7517): a document in, the key that fits a signature out. Pure; fetches nothing.

python-jose is handed one key at a time, as a key object made here: given a whole set it raises on keys of different
types, and given a text it takes a public key for a shared secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jose import jwk
from jose.backends.base import Key

from auth.strict import Json, StrictError, read_object

#: Algorithms that can be allowed, and the type of key and the curve that each needs (RFC 7518 section 3.1).
ALGORITHMS: Final = MappingProxyType(
    {
        "RS256": ("RSA", None),
        "RS384": ("RSA", None),
        "RS512": ("RSA", None),
        "ES256": ("EC", "P-256"),
        "ES384": ("EC", "P-384"),
        "ES512": ("EC", "P-521"),
    }
)
#: Keys that are looked at; issuers have a handful.
MOST_KEYS: Final = 100
_LONGEST_KID: Final = 256
#: Bits below which an RSA key protects nothing (RFC 7518 section 3.3).
_LEAST_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key: its name, and what it may verify."""

    kid: str | None
    kty: str
    curve: str | None
    algorithm: str | None
    material: Json

    def fits(self, algorithm: str) -> bool:
        """Whether it may verify a signature of that algorithm."""
        return ALGORITHMS[algorithm] == (self.kty, self.curve) and self.algorithm in (None, algorithm)

    def made_for(self, algorithm: str) -> Key:
        """The key as python-jose takes it. Raises whatever that raises."""
        return jwk.construct(self.material, algorithm)


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys that an issuer signs with."""

    keys: tuple[PublicKey, ...] = ()

    def chosen(self, kid: str | None, algorithm: str) -> PublicKey | None:
        """The one key of that name that fits; without a name the one that fits at all. None for none or several."""
        fitting = [key for key in self.keys if key.fits(algorithm) and (kid is None or key.kid == kid)]
        return fitting[0] if len(fitting) == 1 else None


def key_set(document: bytes) -> KeySet:
    """The keys of a JWK Set that verify signatures. Others are passed over (RFC 7517 section 5). Raises StrictError."""
    keys = read_object(document).get("keys")
    if not isinstance(keys, list):
        raise StrictError("no list of keys")
    found = KeySet(tuple(_public_keys(keys[:MOST_KEYS])))
    if not found.keys:
        raise StrictError("no key that verifies signatures")
    return found


def _public_keys(keys: Iterable[Any]) -> Iterable[PublicKey]:
    for key in keys:
        if isinstance(key, dict) and (found := _public_key(key)) is not None:
            yield found


def _public_key(key: Json) -> PublicKey | None:
    kid, kty, algorithm, operations = key.get("kid"), key.get("kty"), key.get("alg"), key.get("key_ops")
    if key.get("use", "sig") != "sig" or (operations is not None and "verify" not in _texts(operations)):
        return None
    if not (kid is None or (isinstance(kid, str) and len(kid) <= _LONGEST_KID)):
        return None
    if not (algorithm is None or isinstance(algorithm, str)):
        return None
    curve = key.get("crv") if kty == "EC" else None
    parts = {"RSA": ("n", "e"), "EC": ("crv", "x", "y")}.get(kty) if isinstance(kty, str) else None
    if parts is None or not all(isinstance(key.get(part), str) and key[part] for part in parts):
        return None
    if kty == "RSA" and len(key["n"]) * 6 < _LEAST_RSA_BITS:
        return None
    # Only the public part, whatever else the document shows.
    return PublicKey(kid, str(kty), curve, algorithm, {"kty": kty} | {part: key[part] for part in parts})


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
