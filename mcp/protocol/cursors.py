"""Signed cursors: where a list goes on, readable by the server alone.

A cursor names the list it belongs to and the principal it was made for, so that it works on any replica and for
nobody else (PG-4). The first key signs; every key verifies, so that keys can be rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

_MAC_BYTES: Final = 16


def sign(keys: tuple[bytes, ...], principal: str, method: str, position: str) -> str:
    """A cursor for `position` in the list of `method`, in URL-safe Base64."""
    body = position.encode()
    return _text(_mac(keys[0], principal, method, body) + body)


def verify(keys: tuple[bytes, ...], principal: str, method: str, cursor: str) -> str | None:
    """The position that `sign` put into the cursor, or None for any other text."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = raw[_MAC_BYTES:].decode()
    except (binascii.Error, ValueError):
        return None
    mac = raw[:_MAC_BYTES]
    if _text(raw) != cursor or not any(
        hmac.compare_digest(mac, _mac(key, principal, method, raw[_MAC_BYTES:])) for key in keys
    ):
        return None
    return position


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _mac(key: bytes, principal: str, method: str, body: bytes) -> bytes:
    context = b"\x00".join((principal.encode(), method.encode(), body))
    return hmac.digest(key, context, hashlib.sha256)[:_MAC_BYTES]
