"""How paths name principals, whose ids may be addresses. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from auth.tokens import is_local_principal

#: What begins the key of a principal whose id cannot stand in a path.
_ENCODED: Final = "b64."


def key_of(id: str) -> str:
    """What names a principal in a path: no slash, which proxies decode, and nothing that ends a path."""
    if is_local_principal(id):
        return id
    return _ENCODED + base64.urlsafe_b64encode(id.encode()).decode().rstrip("=")


def id_of(key: str) -> str:
    """The id that `key_of` was given; what it never gives is nobody's."""
    if not key.startswith(_ENCODED):
        return key
    text = key.removeprefix(_ENCODED)
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""
