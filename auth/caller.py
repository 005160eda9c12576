"""Who asks: one frozen value that every request carries, set at the edge and only read after it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from auth.scopes import Scope

#: The principal of a caller that showed no credential.
ANONYMOUS: Final = "anonymous"


class Transport(enum.StrEnum):
    """How a call reached the server; the default cap on its mode depends on it."""

    HTTP = "http"
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller: an opaque principal id (`anonymous`, `local:alice`, `https://issuer#sub`) and its transport.

    `token` is the id of the token it showed, never the secret; None when it showed none. Scopes bind only a caller
    with a token: without any it may call nothing, while a caller without a token is bound by the other caps.
    """

    principal: str = ANONYMOUS
    transport: Transport = Transport.HTTP
    token: str | None = None
    scopes: frozenset[Scope] = frozenset()
    #: From when on the credential is no longer good, as far as that is known; no part of who it is.
    until: datetime | None = field(default=None, compare=False)
    #: Whether an OIDC issuer made the token, so that the client can get one with more scopes.
    issued: bool = False
