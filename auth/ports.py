"""What a store of principals and tokens must offer. Knows no database.

Times come in aware; text must be storable on every database (no U+0000, no lone surrogate), else ValueError. Where
a method takes `also`, it is called within the same transaction, once the change is certain, with what the store
writes through (a connection): so a record of the change is kept with it or not at all.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from auth.tokens import PrincipalRecord, TokenRecord

T = TypeVar("T")
Also = Callable[[Any], None]
#: A token and whose it is.
Found = tuple[TokenRecord, PrincipalRecord]


class StoreAway(Exception):  # noqa: N818 - a state of the world, like the 503 it becomes
    """The store cannot be asked now. Any method of a port may raise it."""


class Obstacle(enum.Enum):
    """Why a change was not made; `value` is a sentence for whoever asked for it."""

    PRINCIPAL_UNKNOWN = "There is no such principal."
    PRINCIPAL_DISABLED = "The principal is disabled."
    TOKEN_UNKNOWN = "There is no such token."  # noqa: S105 - a sentence
    TOKEN_ENDED = "The token is revoked, replaced or expired: create a new one."  # noqa: S105


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; `after` continues it, None at its end."""

    items: tuple[T, ...]
    after: str | None = None


class TokenStore(Protocol):
    """Tokens, by id and by the SHA-256 of their secret. A token is never deleted."""

    async def lookup(self, sha256: bytes) -> Found | None:
        """The token with that digest and its principal, in one statement."""

    async def ever_any(self) -> bool:
        """Whether a token was ever made."""

    async def create(
        self, token: TokenRecord, sha256: bytes, *, make_principal: bool = False, also: Also | None = None
    ) -> Obstacle | None:
        """Keep a new token, with its principal if that is missing and asked for; None when it is done.

        Raises ValueError when the id or the digest is taken.
        """

    async def get(self, id: str) -> TokenRecord | None:
        """The token with that id."""

    async def list(
        self, *, principal: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page[TokenRecord]:
        """Tokens, newest first. Raises ValueError for an `after` that no page carried."""

    async def revoke(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> TokenRecord | None:
        """Revoke from `at` on and answer the token as it is then; an earlier revocation stands. None: no such token."""

    async def rotate(
        self, id: str, successor: TokenRecord, sha256: bytes, *, ends: datetime, also: Also | None = None
    ) -> Obstacle | None:
        """Keep the successor, and revoke the token `id` from `ends` on by whoever made the successor.

        Only one rotation of a token succeeds, and none of one that is revoked or, when the successor is made,
        expired. None when it is done.
        """

    async def touch(self, used: Mapping[str, datetime]) -> None:
        """Note when tokens were last used; a time never goes back, and unknown ids are passed over."""


class PrincipalStore(Protocol):
    """Principals by id."""

    async def create(self, principal: PrincipalRecord, *, also: Also | None = None) -> bool:
        """Keep a new principal; False when the id is there already, which is left as it is."""

    async def get(self, id: str) -> PrincipalRecord | None:
        """The principal with that id."""

    async def list(self, *, after: str | None = None, limit: int = 100) -> Page[PrincipalRecord]:
        """Principals in the order of their ids; `after` is the last id seen."""

    async def disable(self, id: str, *, at: datetime, by: str, also: Also | None = None) -> PrincipalRecord | None:
        """Disable and answer the principal as it is then; who did it first stands. None: no such principal."""

    async def enable(self, id: str, *, also: Also | None = None) -> PrincipalRecord | None:
        """Take a disabling back and answer the principal as it is then. None: no such principal."""
