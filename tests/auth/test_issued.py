"""Callers with an issuer's token: who they are, what is remembered of them, and what ends it."""

import hashlib
from datetime import timedelta

import pytest

from auth.authenticator import Anonymous, Authenticator, Unauthenticated, Unavailable
from auth.caller import Caller, Transport
from auth.challenges import Challenges
from auth.issued import IssuedTokens
from auth.jwks import key_set
from auth.jwt import Expected
from auth.keyring import Keyring, KeysAway
from auth.ports import StoreAway
from auth.scopes import Scope
from auth.tokens import Reason
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from tests.support.auth_stores import NOON, a_token
from tests.support.authentication import ALICE, SECRETS, Clock, Feed, World, bearer
from tests.support.issuer import EcKey, document, signed

ISSUER, OURS = "https://issuer.example", "https://team.example/mcp"
METADATA = "https://team.example/.well-known/oauth-protected-resource/mcp"
KEY, NEXT = EcKey("k1"), EcKey("k2")
ASK = f'scope="mcp:write", resource_metadata="{METADATA}"'
END = NOON.replace(microsecond=0) + timedelta(seconds=330)


class Principals(MemoryPrincipals):
    """Counts the questions, and can be away."""

    asked = 0
    is_away = False

    async def get(self, id):
        self.asked += 1
        if self.is_away:
            raise StoreAway("gone fishing")
        return await super().get(id)


class Team:
    """An authenticator with an issuer, whose keys are what a test says."""

    def __init__(self, anonymous=Anonymous.NEVER):
        self.clock, self.feed, self.served, self.fetched, self.made = Clock(), Feed(), [KEY], 0, []
        self.seconds = 1000.0
        self.principals = Principals(self.feed.tell)
        self.keyring = Keyring(self.fetch, lambda: self.seconds)
        self.tokens = MemoryTokens(self.principals, self.feed.tell)
        expected = Expected(ISSUER, frozenset({OURS}))
        self.authenticator = Authenticator(
            self.tokens,
            self.feed,
            self.clock,
            anonymous=anonymous,
            issued=IssuedTokens(expected, self.keyring, self.principals, self.made_also),
            challenges=Challenges(METADATA, (Scope.WRITE,)),
        )

    async def fetch(self):
        self.fetched += 1
        if not self.served:
            raise KeysAway("down")
        return key_set(document(*self.served))

    def made_also(self, id):
        return lambda _connection: self.made.append(id)

    async def ask(self, *headers):
        return await self.authenticator.authenticate(list(headers))

    def warm(self, *headers):
        return self.authenticator.warm(list(headers))


def shown(key=KEY, **given):
    now = int(NOON.timestamp())
    claims = {"iss": ISSUER, "aud": OURS, "sub": "alice", "exp": now + 300, "scope": "mcp:write", "jti": "j1"}
    return "Bearer " + signed(key, claims | given)


def issued(name="j1", subject="alice", scopes=(Scope.WRITE,)):
    return Caller(f"{ISSUER}#{subject}", Transport.HTTP, f"jwt:{name}", frozenset(scopes), END, issued=True)


@pytest.fixture
async def team():
    team = Team()
    yield team
    await team.keyring.close()


async def test_a_good_token_is_its_subject_at_its_issuer(team):
    caller = await team.ask(shown())
    assert (caller, caller.until) == (issued(), END)


async def test_its_principal_is_made_on_first_sight_and_that_is_on_record(team):
    await team.ask(shown())
    await team.ask(shown(jti="j2"))
    kept = await team.principals.get(f"{ISSUER}#alice")
    assert (kept.created_by, team.made) == (ISSUER, [f"{ISSUER}#alice"])


async def test_once_seen_it_costs_no_question_until_it_ends(team):
    header = shown()
    await team.ask(header)
    await team.ask(header)
    asked = team.principals.asked
    assert [team.warm(header), await team.ask(header)] == [issued()] * 2
    assert (team.principals.asked, team.fetched) == (asked, 1)
    team.clock.pass_(seconds=330)
    assert team.warm(header) is None
    assert isinstance(await team.ask(header), Unauthenticated)


async def test_a_token_without_an_id_is_known_by_its_digest(team):
    header = shown(jti=None)
    digest = hashlib.sha256(header.removeprefix("Bearer ").encode()).hexdigest()
    assert (await team.ask(header)).token == f"jwt:{digest[:60]}"


async def test_scopes_that_are_not_ours_open_nothing(team):
    assert (await team.ask(shown(scope="openid profile"))).scopes == frozenset()


async def test_a_refusal_says_where_to_get_a_token_and_for_what(team):
    refused = await team.ask(shown(aud="https://other.example"))
    assert refused.challenge == f'Bearer realm="superpi", error="invalid_token", {ASK}'
    assert (await team.ask()).challenge == f'Bearer realm="superpi", {ASK}'


async def test_a_disabled_principal_stays_out_with_every_token(team):
    header = shown()
    await team.ask(header)
    await team.principals.disable(f"{ISSUER}#alice", at=NOON, by="cli")
    assert team.warm(header) is None
    refusals = [await team.ask(one) for one in (header, shown(jti="j2"))]
    assert [refused.reason for refused in refusals] == [Reason.DISABLED.value] * 2


async def test_a_new_key_is_fetched_when_a_token_names_it(team):
    await team.ask(shown())
    team.served = [KEY, NEXT]
    assert isinstance(await team.ask(shown(NEXT, jti="j2")), Unauthenticated)
    team.seconds += 30
    assert await team.ask(shown(NEXT, jti="j3")) == issued("j3")
    assert team.fetched == 2


async def test_without_keys_nobody_is_let_in_and_nobody_hears_why(team):
    team.served = []
    refused = await team.ask(shown())
    assert refused.challenge.startswith('Bearer realm="superpi", error="invalid_token"')


async def test_while_the_database_is_away_only_those_known_are_let_in(team):
    header = shown()
    await team.ask(header)
    await team.ask(header)
    team.principals.is_away = True
    assert await team.ask(header) == issued()
    assert isinstance(await team.ask(shown(jti="j2")), Unavailable)


async def test_without_an_issuer_its_tokens_are_noise():
    assert (await World().ask(shown())).reason == "wrong length"


async def test_our_own_tokens_go_on_to_count_beside_them(team):
    assert await team.tokens.create(a_token("t"), SECRETS["t"].sha256, make_principal=True) is None
    assert await team.ask(bearer()) == ALICE
