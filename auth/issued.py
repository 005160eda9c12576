"""Callers with a token of an OIDC issuer: from its text to a `Caller`, with a principal made on first sight.

Knows neither network nor database: keys come from a `Keyring`, principals from their store. Remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, assert_never

from auth.caller import Caller, Transport
from auth.jwt import Expected, Identified, KeyUnknown, NotGood, looks_like_jwt, verify
from auth.keyring import Keyring
from auth.ports import Also, PrincipalStore
from auth.tokens import PrincipalRecord, Reason

#: What the id of a caller's token begins with where an issuer made it; ours never do.
PREFIX: Final = "jwt:"
_LONGEST_ID: Final = 60

#: What else happens in the transaction that makes a principal, by its id.
MadeAlso = Callable[[str], Also | None]


class IssuedTokens:
    """Judges the tokens of one issuer."""

    def __init__(
        self,
        expected: Expected,
        keyring: Keyring,
        principals: PrincipalStore,
        made_also: MadeAlso = lambda _id: None,
    ) -> None:
        self._expected = expected
        self._keyring = keyring
        self._principals = principals
        self._made_also = made_also

    def looks_like_one(self, text: str) -> bool:
        """Whether the text has the form of such a token."""
        return looks_like_jwt(text)

    async def caller(self, shown: str, digest: bytes, now: Callable[[], datetime]) -> Caller | str:
        """The caller with that token, or why there is none, in words for the log. Raises StoreAway."""
        found = verify(shown, self._keyring.keys, self._expected, now())
        if isinstance(found, KeyUnknown):
            found = verify(shown, await self._keyring.newer(), self._expected, now())
        match found:
            case NotGood(why) | KeyUnknown(why):
                return f"token of the issuer: {why}"
            case Identified(principal, scopes, until, id):
                if not await self._may_enter(principal, now()):
                    return Reason.DISABLED.value
                name = PREFIX + (id or digest.hex())[:_LONGEST_ID]
                return Caller(principal, Transport.HTTP, name, scopes, until, issued=True)
            case _:
                assert_never(found)

    async def _may_enter(self, id: str, now: datetime) -> bool:
        """Whether the principal, which is made where it is missing, is not disabled."""
        known = await self._principals.get(id)
        if known is None:
            made = PrincipalRecord(id, now, self._expected.issuer)
            if await self._principals.create(made, also=self._made_also(id)):
                return True
            known = await self._principals.get(id)
        return known is not None and known.disabled is None
