"""An issuer of tokens for tests: keys of its own, and tokens that are good, or wrong in just the way asked for."""

import base64
import json
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def b64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def number(value, length=None):
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


@dataclass
class RsaKey:
    """A key for RS256."""

    kid: str
    bits: int = 2048
    private: object = field(init=False)

    def __post_init__(self):
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=self.bits)

    algorithm = "RS256"

    @property
    def jwk(self):
        public = self.private.public_key().public_numbers()
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "n": number(public.n), "e": number(public.e)}

    def sign(self, message):
        return self.private.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def forms(self):
        """The public key in the forms that a forger could take for a shared secret."""
        public, encoding, form = self.private.public_key(), serialization.Encoding, serialization.PublicFormat
        return {
            "PEM": public.public_bytes(encoding.PEM, form.SubjectPublicKeyInfo),
            "DER": public.public_bytes(encoding.DER, form.SubjectPublicKeyInfo),
            "SSH": public.public_bytes(encoding.OpenSSH, form.OpenSSH),
        }


@dataclass
class EcKey:
    """A key for ES256."""

    kid: str
    private: object = field(init=False)

    def __post_init__(self):
        self.private = ec.generate_private_key(ec.SECP256R1())

    algorithm = "ES256"

    @property
    def jwk(self):
        public = self.private.public_key().public_numbers()
        return {"kty": "EC", "kid": self.kid, "crv": "P-256", "x": number(public.x, 32), "y": number(public.y, 32)}

    def sign(self, message):
        r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def okp_jwk(kid):
    """A key of a type that nothing here verifies with."""
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(raw)}


def document(*keys):
    """A JWK Set as it is served."""
    return json.dumps({"keys": [key if isinstance(key, dict) else key.jwk for key in keys]}).encode()


def text(value):
    """JSON as a part of a token; bytes go in as they are."""
    return b64(value if isinstance(value, bytes) else json.dumps(value).encode())


def signed(key, claims, **header):
    """A token of these claims, signed by that key, with what its header says besides; None leaves a parameter out."""
    head = {"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid} | header
    head = {name: value for name, value in head.items() if value is not None}
    message = f"{text(head)}.{text(claims)}"
    return f"{message}.{b64(key.sign(message.encode()))}"
