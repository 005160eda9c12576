"""Who calls: Authorization headers in, a `Caller` or a refusal out.

A token that was seen before costs no query and no await. What is remembered is forgotten as soon as the feed tells of
a change; when the feed has been silent for too long nothing remembered counts, and the store is asked each time.
Knows no HTTP beyond the value of one header and of one challenge, and never keeps a secret.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, assert_never

from auth import token_cache
from auth.caller import Caller, Transport
from auth.challenges import Challenges
from auth.changes import Change, ChangeFeed, Subject
from auth.ports import StoreAway, TokenStore
from auth.token_cache import Known, RefusedTokens, Uses, ValidTokens
from auth.tokens import NotAToken, Presented, Refused, Valid, fingerprint, judge, recognise

#: Seconds for which a refusal is remembered, and the news that no token was ever made.
NEGATIVE_TTL: Final = 1.0
#: Seconds without news of changes after which nothing remembered counts.
STALE_AFTER: Final = 60.0


class Anonymous(enum.StrEnum):
    """Whether a caller without credentials is let in."""

    #: Until a token was ever made.
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """Nobody that is known: 401. `reason` is for the log, `challenge` the value of WWW-Authenticate."""

    reason: str
    challenge: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """It cannot be told now: 503. `reason` is for the log."""

    reason: str


Answer = Caller | Unauthenticated | Unavailable


@dataclass(frozen=True, slots=True)
class NoCredential:
    """There is no Authorization header."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A text of the form that an issuer's tokens have, and its digest."""

    text: str
    sha256: bytes


Credential = Presented | Issued | NotAToken | NoCredential


class IssuerJudge(Protocol):
    """Judges the tokens of an OIDC issuer, where one is configured."""

    def looks_like_one(self, text: str) -> bool:
        """Whether the text has the form of such a token."""

    async def caller(self, shown: str, digest: bytes, now: Callable[[], datetime]) -> Caller | str:
        """The caller with that token, or why there is none, in words for the log. Raises StoreAway."""


def credential(headers: Sequence[str], issued: IssuerJudge | None = None) -> Credential:
    """What the values of all Authorization headers show. Never raises."""
    if not headers:
        return NoCredential()
    if len(headers) > 1:
        return NotAToken("more than one Authorization header")
    shown = _bearer(headers[0])
    if shown is None:
        return NotAToken("not the scheme Bearer")
    if issued is not None and issued.looks_like_one(shown):
        return Issued(shown, hashlib.sha256(shown.encode()).digest())
    return recognise(shown)


def _bearer(header: str) -> str | None:
    """The credential of the scheme Bearer; None for another scheme."""
    scheme, _, rest = header.partition(" ")
    return rest.strip(" ") if scheme.lower() == "bearer" else None


class Authenticator:
    """Judges the callers of one process. For use on one event loop.

    `now` gives the time, aware. The feed has to be heard on the same loop.
    """

    def __init__(
        self,
        tokens: TokenStore,
        feed: ChangeFeed,
        now: Callable[[], datetime],
        *,
        anonymous: Anonymous = Anonymous.AUTO,
        issued: IssuerJudge | None = None,
        challenges: Challenges | None = None,
        negative_ttl: float = NEGATIVE_TTL,
        stale_after: float = STALE_AFTER,
        most: int = token_cache.MOST_VALID,
    ) -> None:
        self._tokens = tokens
        self._feed = feed
        # Counts the changes that may concern a credential: what was looked up before one must not be remembered.
        self._heard = 0
        self._now = now
        self._issued = issued
        self._challenges = challenges or Challenges()
        self._stale_after = stale_after
        self._valid = ValidTokens(most)
        self._refused = RefusedTokens(timedelta(seconds=negative_ttl))
        self._uses = Uses()
        self._door = _Door(anonymous, timedelta(seconds=negative_ttl))
        feed.listen(self._hear)

    def warm(self, headers: Sequence[str], transport: Transport = Transport.HTTP) -> Caller | None:
        """The caller, where it is known without asking anybody; None when `authenticate` has to be asked."""
        shown = _bearer(headers[0]) if len(headers) == 1 else None
        digest = None if shown is None else fingerprint(shown)
        if digest is None or self._stale():
            return self._recall(self._shown(headers), transport)
        # Only what has the form of a token is remembered, so the form of a remembered one needs no second look.
        return self._remembered(digest, transport)

    async def authenticate(self, headers: Sequence[str], transport: Transport = Transport.HTTP) -> Answer:
        """The caller that these values of Authorization show, or why there is none. Never raises StoreAway."""
        shown = self._shown(headers)
        if (caller := self._recall(shown, transport)) is not None:
            return caller
        try:
            match shown:
                case NoCredential():
                    return await self._without_credential(transport)
                case NotAToken(why):
                    return self._refusal(why)
                case Presented() | Issued():
                    return await self._with_token(shown, transport)
                case _:
                    assert_never(shown)
        except StoreAway as error:
            return Unavailable(f"the store cannot be asked: {error}")

    async def again(self, headers: Sequence[str]) -> Caller | None:
        """Who these values let in now, None when nobody, for a call that began a while ago. Raises StoreAway."""
        match await self.authenticate(headers):
            case Caller() as caller:
                return caller
            case Unauthenticated():
                return None
            case Unavailable(reason):
                raise StoreAway(reason)
            case never:
                assert_never(never)

    async def tidy(self, *, everything: bool = False) -> None:
        """Write when tokens were last used, at most once a minute for each; at the end ask for `everything`.

        What cannot be written now is kept for the next time.
        """
        now = self._now()
        if uses := self._uses.due(now, everything=everything):
            try:
                await self._tokens.touch(uses)
            except StoreAway:
                return
            self._uses.written(uses, now)

    def _recall(self, shown: Credential, transport: Transport) -> Caller | None:
        match shown:
            case Presented() | Issued():
                return None if self._stale() else self._remembered(shown.sha256, transport)
            case NoCredential():
                is_open = self._door.recall(self._now(), stale=self._stale())
                return Caller(transport=transport) if is_open else None
            case NotAToken():
                return None
            case _:
                assert_never(shown)

    def _remembered(self, digest: bytes, transport: Transport) -> Caller | None:
        now = self._now()
        caller = self._valid.get(digest, now)
        return None if caller is None else self._used(caller, transport, now)

    async def _without_credential(self, transport: Transport) -> Answer:
        is_open = self._door.recall(self._now(), stale=self._stale())
        if is_open is None:
            heard, stale = self._heard, self._stale()
            ever_any = await self._tokens.ever_any()
            is_open = not ever_any
            if ever_any or (not stale and self._heard == heard):
                self._door.learn(self._now(), ever_any=ever_any)
        if is_open:
            return Caller(transport=transport)
        return Unauthenticated("no credential", self._challenges.unauthenticated())

    async def _with_token(self, shown: Presented | Issued, transport: Transport) -> Answer:
        stale = self._stale()
        if not stale and (reason := self._refused.get(shown.sha256, self._now())) is not None:
            return self._refusal(reason)
        heard = self._heard
        found = await (self._looked_up(shown) if isinstance(shown, Presented) else self._judged(shown))
        now = self._now()
        # What was looked up before a change was heard may be what the change undid.
        keep = not stale and self._heard == heard
        if isinstance(found, str):
            if keep:
                self._refused.put(shown.sha256, now, found)
            return self._refusal(found)
        self._door.learn(now, ever_any=True)
        if keep:
            self._valid.put(shown.sha256, str(found.token), Known(found, found.until))
        return self._used(found, transport, now)

    async def _looked_up(self, shown: Presented) -> Caller | str:
        """The caller with a token of our own, or why there is none."""
        token, principal = await self._tokens.lookup(shown.sha256) or (None, None)
        verdict = judge(token, principal, self._now())
        match verdict:
            case Valid(token, until):
                return Caller(token.principal, Transport.HTTP, token.id, token.scopes, until)
            case Refused(reason):
                return reason.value
            case _:
                assert_never(verdict)

    async def _judged(self, shown: Issued) -> Caller | str:
        """The caller with a token of the issuer's, or why there is none."""
        assert self._issued is not None  # noqa: S101 - without an issuer nothing is taken for its token
        return await self._issued.caller(shown.text, shown.sha256, self._now)

    def _shown(self, headers: Sequence[str]) -> Credential:
        return credential(headers, self._issued)

    def _refusal(self, reason: str) -> Unauthenticated:
        return Unauthenticated(reason, self._challenges.unauthenticated("invalid_token"))

    def _used(self, caller: Caller, transport: Transport, now: datetime) -> Caller:
        if caller.token is not None and not caller.issued:
            self._uses.note(caller.token, now)
        return caller if caller.transport is transport else replace(caller, transport=transport)

    def _stale(self) -> bool:
        return self._feed.silent_seconds() > self._stale_after

    def _hear(self, change: Change | None) -> None:
        """Forget what the change may concern."""
        match change:
            case None:
                self._valid.clear()
            case Change(Subject.TOKEN, id):
                self._valid.drop_token(id)
            case Change(Subject.PRINCIPAL, id):
                self._valid.drop_principal(id)
            case _:
                return
        self._heard += 1
        self._refused.clear()
        self._door.doubt()


class _Door:
    """Whether anonymous callers are let in. That a token was ever made is never forgotten."""

    def __init__(self, anonymous: Anonymous, ttl: timedelta) -> None:
        self._anonymous = anonymous
        self._ttl = ttl
        self._ever_any = False
        self._none_at: datetime | None = None

    def recall(self, now: datetime, *, stale: bool) -> bool | None:
        """Whether it is open, as far as that is known."""
        if self._anonymous is not Anonymous.AUTO:
            return self._anonymous is Anonymous.ALWAYS
        if self._ever_any:
            return False
        fresh = self._none_at is not None and timedelta(0) <= now - self._none_at < self._ttl
        return True if fresh and not stale else None

    def learn(self, now: datetime, *, ever_any: bool) -> None:
        """The store was asked whether a token was ever made."""
        self._ever_any = self._ever_any or ever_any
        self._none_at = None if self._ever_any else now

    def doubt(self) -> None:
        """A token may have been made since."""
        self._none_at = None
