"""An authenticator over the twins of its stores, with a clock, a feed and a store that do what a test says."""

from dataclasses import dataclass, field
from datetime import timedelta

from auth.authenticator import Anonymous, Authenticator
from auth.caller import Caller, Transport
from auth.ports import StoreAway
from auth.scopes import Scope
from auth.tokens import SECRET_BYTES, Kind, mint
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from tests.support.auth_stores import NOON, a_token

SECOND = timedelta(seconds=1)
SECRETS = {name: mint(Kind.PAT, name.encode().ljust(SECRET_BYTES)) for name in ("t", "u", "unknown", "other")}
ALICE = Caller("local:alice", Transport.HTTP, "t", frozenset({Scope.WRITE}))
ANONYMOUS = Caller()
CHALLENGE = 'Bearer realm="superpi"'
INVALID = 'Bearer realm="superpi", error="invalid_token"'


class Clock:
    def __init__(self):
        self.time = NOON

    def __call__(self):
        return self.time

    def pass_(self, **amount):
        self.time += timedelta(**amount)


class Feed:
    """A feed that hears what it is told at once, and is silent for as long as it is told."""

    def __init__(self):
        self.silent = 0.0
        self.hear = None

    def silent_seconds(self):
        return self.silent

    def listen(self, hear):
        self.hear = hear

    def tell(self, change):
        self.hear(change)


class Watched(MemoryTokens):
    """Counts the questions, and can be away or be asked slowly."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = 0
        self.touches = []
        self.is_away = False
        self.meanwhile = None

    async def lookup(self, sha256):
        return await self._answered(await super().lookup(sha256))

    async def ever_any(self):
        return await self._answered(await super().ever_any())

    async def touch(self, used):
        if self.is_away:
            raise StoreAway("gone fishing")
        self.touches.append(dict(used))
        await super().touch(used)

    async def _answered(self, answer):
        """What the store found is on its way while `meanwhile` happens."""
        self.asked += 1
        if self.is_away:
            raise StoreAway("gone fishing")
        if self.meanwhile is not None:
            happening, self.meanwhile = self.meanwhile, None
            await happening()
        return answer


@dataclass
class World:
    anonymous: Anonymous = Anonymous.AUTO
    most: int = 10
    clock: Clock = field(default_factory=Clock)
    feed: Feed = field(default_factory=Feed)

    def __post_init__(self):
        self.principals = MemoryPrincipals(self.feed.tell)
        self.tokens = Watched(self.principals, self.feed.tell)
        self.authenticator = Authenticator(self.tokens, self.feed, self.clock, anonymous=self.anonymous, most=self.most)

    async def create(self, name="t", **fields):
        token = a_token(name, **fields)
        assert await self.tokens.create(token, SECRETS[name].sha256, make_principal=True) is None

    async def ask(self, *headers):
        return await self.authenticator.authenticate(list(headers))

    def warm(self, *headers):
        return self.authenticator.warm(list(headers))


def bearer(name="t"):
    return f"Bearer {SECRETS[name].secret}"
