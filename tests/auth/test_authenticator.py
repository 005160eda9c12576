"""The authenticator: who is let in, what is remembered, and what makes it forget. Time stands still unless moved."""

import asyncio
from dataclasses import replace
from statistics import quantiles
from time import perf_counter

import pytest

from auth.authenticator import Anonymous, Unauthenticated, Unavailable
from auth.caller import Transport
from auth.challenges import Challenges
from auth.changes import Change, Subject
from auth.ports import StoreAway
from auth.tokens import SECRET_BYTES, Kind, mint
from tests.support.auth_stores import DAY, NOON, a_principal, a_token
from tests.support.authentication import ALICE, ANONYMOUS, CHALLENGE, INVALID, SECOND, SECRETS, World, bearer


@pytest.fixture
async def world():
    world = World()
    await world.create("t")
    return world


def refused(reason):
    return Unauthenticated(reason, INVALID)


async def test_a_valid_token_is_its_principal_with_its_scopes(world):
    assert await world.ask(bearer()) == ALICE


async def test_a_warm_token_is_known_without_asking(world):
    first = await world.ask(bearer())
    assert [world.warm(bearer()), await world.ask(bearer())] == [first, first]
    assert world.tokens.asked == 1


async def test_a_token_of_a_cold_authenticator_is_not_known_yet(world):
    assert world.warm(bearer()) is None


async def test_a_caller_has_the_transport_it_came_by(world):
    headers = [bearer()]
    asked = [await world.authenticator.authenticate(headers, Transport.STDIO) for _ in range(2)]
    assert asked == [replace(ALICE, transport=Transport.STDIO)] * 2
    assert world.warm(bearer()) == ALICE


SECRET = SECRETS["t"].secret


@pytest.mark.parametrize("header", [f"bearer {SECRET}", f"BEARER {SECRET}", f"Bearer   {SECRET}", f"Bearer {SECRET}  "])
async def test_the_scheme_is_written_in_any_case_and_blanks_do_not_count(world, header):
    assert await world.ask(header) == ALICE


@pytest.mark.requirement("AU-1", "AU-4")
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        pytest.param([f"Bearer {SECRET}"] * 2, "more than one Authorization header", id="the same token twice"),
        pytest.param([f"Bearer {SECRET}", ""], "more than one Authorization header", id="an empty second header"),
        pytest.param([""], "not the scheme Bearer", id="an empty header"),
        pytest.param([SECRET], "not the scheme Bearer", id="no scheme"),
        pytest.param([f"Basic {SECRET}"], "not the scheme Bearer", id="another scheme"),
        pytest.param([f"Bearer\t{SECRET}"], "not the scheme Bearer", id="a tab"),
        pytest.param([f" Bearer {SECRET}"], "not the scheme Bearer", id="a blank before the scheme"),
        pytest.param(["Bearer"], "wrong length", id="no token"),
        pytest.param(["Bearer "], "wrong length", id="an empty token"),
        pytest.param([f"Bearer {SECRET}, Bearer {SECRET}"], "wrong length", id="two in one header"),
        pytest.param([f'Bearer "{SECRET}"'], "wrong length", id="quotes"),
        pytest.param([f"Bearer {SECRET[:-1]}ä"], "wrong form", id="not ASCII"),
        pytest.param([f"Bearer {SECRET[:-1]}\ud800"], "wrong form", id="a lone surrogate"),
        pytest.param(["Bearer " + "x" * 10_000], "wrong length", id="10 kB"),
        pytest.param([f"Bearer {SECRET[:-1]}!"], "wrong form", id="a character that no token has"),
        pytest.param([f"Bearer spi_svc_{SECRET[8:]}"], "wrong checksum", id="a typing error"),
    ],
)
@pytest.mark.parametrize("anonymous", Anonymous)
async def test_what_is_no_token_is_refused_without_asking_whoever_may_come_in(headers, reason, anonymous):
    world = World(anonymous)
    assert await world.ask(*headers) == refused(reason)
    assert (world.warm(*headers), world.tokens.asked) == (None, 0)


@pytest.mark.requirement("AU-5", "AU-4")
async def test_an_unknown_token_is_refused_though_anonymous_callers_are_let_in():
    assert await World(Anonymous.ALWAYS).ask(bearer("unknown")) == refused("unknown token")


@pytest.mark.requirement("AU-4")
def test_the_challenges():
    told = Challenges()
    assert (told.unauthenticated(), told.unauthenticated("invalid_token")) == (CHALLENGE, INVALID)


# Refusals that are remembered


async def test_a_refusal_is_remembered_for_a_second(world):
    answers = [await world.ask(bearer("unknown"))]
    world.clock.pass_(milliseconds=999)
    answers.append(await world.ask(bearer("unknown")))
    asked = [world.tokens.asked]
    world.clock.pass_(milliseconds=1)
    answers.append(await world.ask(bearer("unknown")))
    asked.append(world.tokens.asked)
    assert (answers, asked) == ([refused("unknown token")] * 3, [1, 2])


async def test_a_refusal_ends_as_soon_as_the_token_is_made(world):
    assert await world.ask(bearer("u")) == refused("unknown token")
    await world.create("u")
    assert await world.ask(bearer("u")) == replace(ALICE, token="u")


async def test_a_clock_that_is_set_back_does_not_keep_a_refusal_alive(world):
    await world.ask(bearer("unknown"))
    world.clock.pass_(hours=-1)
    await world.ask(bearer("unknown"))
    assert world.tokens.asked == 2


async def test_guessing_fills_no_memory_and_pushes_out_no_token(world):
    await world.ask(bearer())
    for n in range(2_000):
        await world.ask(f"Bearer {mint(Kind.PAT, n.to_bytes(SECRET_BYTES, 'big')).secret}")
    assert len(world.authenticator._refused) == 1_000
    assert world.warm(bearer()) == ALICE


# What ends a remembered token


@pytest.mark.requirement("AU-1")
async def test_a_token_expires_while_it_is_remembered(world):
    await world.create("u", expires=NOON + SECOND)
    assert await world.ask(bearer("u")) == replace(ALICE, token="u")
    world.clock.pass_(milliseconds=999)
    assert world.warm(bearer("u")) == replace(ALICE, token="u")
    world.clock.pass_(milliseconds=1)
    assert (world.warm(bearer("u")), await world.ask(bearer("u"))) == (None, refused("expired token"))


async def test_a_replaced_token_works_until_its_overlap_ends(world):
    await world.ask(bearer())
    successor = a_token("u", created_by="x")
    await world.tokens.rotate("t", successor, SECRETS["u"].sha256, ends=NOON + 60 * SECOND)
    assert [await world.ask(bearer("t")), await world.ask(bearer("u"))] == [ALICE, replace(ALICE, token="u")]
    world.clock.pass_(seconds=60)
    assert [await world.ask(bearer("t")), await world.ask(bearer("u"))] == [
        refused("revoked token"),
        replace(ALICE, token="u"),
    ]


async def test_a_revoked_token_is_refused_at_once(world):
    await world.ask(bearer())
    await world.tokens.revoke("t", at=NOON, by="x")
    assert (world.warm(bearer()), await world.ask(bearer())) == (None, refused("revoked token"))


async def test_a_disabled_principal_is_refused_at_once_and_let_in_again_when_enabled(world):
    await world.ask(bearer())
    await world.principals.disable("local:alice", at=NOON, by="x")
    assert (world.warm(bearer()), await world.ask(bearer())) == (None, refused("disabled principal"))
    await world.principals.enable("local:alice")
    assert await world.ask(bearer()) == ALICE


@pytest.mark.parametrize(
    ("change", "questions"),
    [
        pytest.param(Change(Subject.TOKEN, "t"), 1, id="the token"),
        pytest.param(Change(Subject.TOKEN, "u"), 0, id="another token"),
        pytest.param(Change(Subject.PRINCIPAL, "local:alice"), 1, id="its principal"),
        pytest.param(Change(Subject.PRINCIPAL, "local:bob"), 0, id="another principal"),
        pytest.param(Change(Subject.SESSION, "t"), 0, id="a session of the same id"),
        pytest.param(None, 1, id="whatever may have been missed"),
    ],
)
async def test_what_changed_decides_what_is_asked_again(world, change, questions):
    await world.ask(bearer())
    world.feed.tell(change)
    before = world.tokens.asked
    assert await world.ask(bearer()) == ALICE
    assert world.tokens.asked - before == questions


async def test_of_too_many_tokens_the_one_idle_for_longest_is_forgotten():
    world = World(most=2)
    for name in ("t", "u", "other"):
        await world.create(name)
    await world.ask(bearer("t"))
    await world.ask(bearer("u"))
    world.warm(bearer("t"))
    await world.ask(bearer("other"))
    assert [world.warm(bearer(name)) is None for name in ("t", "u", "other")] == [False, True, False]


# Races between a lookup and a change


async def test_a_token_that_is_revoked_while_it_is_looked_up_is_not_remembered(world):
    world.tokens.meanwhile = lambda: world.tokens.revoke("t", at=NOON, by="x")
    assert await world.ask(bearer()) == ALICE
    assert (world.warm(bearer()), await world.ask(bearer())) == (None, refused("revoked token"))


async def test_a_principal_that_is_disabled_during_a_lookup_is_not_remembered_as_enabled(world):
    world.tokens.meanwhile = lambda: world.principals.disable("local:alice", at=NOON, by="x")
    await world.ask(bearer())
    assert (world.warm(bearer()), await world.ask(bearer())) == (None, refused("disabled principal"))


async def test_a_token_that_is_made_while_it_is_looked_up_is_not_remembered_as_unknown(world):
    world.tokens.meanwhile = lambda: world.create("u")
    assert await world.ask(bearer("u")) == refused("unknown token")
    assert await world.ask(bearer("u")) == replace(ALICE, token="u")


async def test_what_may_have_been_missed_during_a_lookup_is_not_remembered(world):
    async def missed():
        world.feed.tell(None)

    world.tokens.meanwhile = missed
    assert await world.ask(bearer()) == ALICE
    assert world.warm(bearer()) is None


async def test_a_token_that_expires_while_it_is_looked_up_is_refused(world):
    async def slow():
        world.clock.pass_(days=100)

    world.tokens.meanwhile = slow
    assert await world.ask(bearer()) == refused("expired token")


async def test_the_first_token_that_is_made_while_the_door_is_asked_for_closes_it():
    world = World()
    world.tokens.meanwhile = world.create
    assert await world.ask() == ANONYMOUS
    assert (world.warm(), await world.ask()) == (None, Unauthenticated("no credential", CHALLENGE))


async def test_many_that_ask_at_once_get_the_same_answer(world):
    assert await asyncio.gather(*(world.ask(bearer()) for _ in range(50))) == [ALICE] * 50


# A feed that is silent, a store that is away


async def test_a_remembered_token_works_while_the_store_is_away_until_the_silence_is_too_long(world):
    await world.ask(bearer())
    world.tokens.is_away = True
    world.feed.silent = 60.0
    assert [world.warm(bearer()), await world.ask(bearer())] == [ALICE, ALICE]
    world.feed.silent = 60.1
    assert world.warm(bearer()) is None
    assert await world.ask(bearer()) == Unavailable("the store cannot be asked: gone fishing")


async def test_a_refusal_is_not_recalled_either_when_the_silence_is_too_long(world):
    await world.ask(bearer("unknown"))
    world.tokens.is_away, world.feed.silent = True, 61.0
    assert isinstance(await world.ask(bearer("unknown")), Unavailable)


async def test_during_a_long_silence_the_store_is_asked_each_time_and_nothing_is_remembered(world):
    world.feed.silent = 61.0
    answers = [await world.ask(bearer()) for _ in range(3)] + [await world.ask(bearer("unknown")) for _ in range(2)]
    assert (answers, world.tokens.asked) == ([ALICE] * 3 + [refused("unknown token")] * 2, 5)
    world.feed.silent = 0.0
    assert world.warm(bearer()) is None


async def test_whom_a_header_lets_in_by_now_is_told_or_that_it_cannot_be_told(world):
    """Nobody is no caller; a store that is away is neither."""
    assert await world.authenticator.again([bearer()]) == ALICE
    assert await world.authenticator.again([bearer("unknown")]) is None
    assert await world.authenticator.again([]) is None
    world.tokens.is_away = True
    with pytest.raises(StoreAway):
        await world.authenticator.again([bearer("other")])


async def test_a_token_that_is_not_remembered_is_unavailable_and_not_refused_while_the_store_is_away(world):
    world.tokens.is_away = True
    assert await world.ask(bearer()) == Unavailable("the store cannot be asked: gone fishing")
    world.tokens.is_away = False
    assert await world.ask(bearer()) == ALICE


# When tokens were last used


async def test_the_last_use_is_written_at_most_once_a_minute(world):
    await world.ask(bearer())
    await world.authenticator.tidy()
    for _ in range(3):
        world.clock.pass_(seconds=19)
        world.warm(bearer())
        await world.authenticator.tidy()
    assert world.tokens.touches == [{"t": NOON}]
    world.clock.pass_(seconds=3)
    await world.authenticator.tidy()
    assert world.tokens.touches == [{"t": NOON}, {"t": NOON + 57 * SECOND}]
    assert (await world.tokens.get("t")).last_used == NOON + 57 * SECOND


async def test_a_token_that_is_not_used_is_not_written(world):
    await world.ask(bearer())
    for _ in range(3):
        await world.authenticator.tidy()
        world.clock.pass_(minutes=2)
    assert world.tokens.touches == [{"t": NOON}]


async def test_at_the_end_everything_is_written(world):
    await world.ask(bearer())
    await world.authenticator.tidy()
    world.clock.pass_(seconds=1)
    world.warm(bearer())
    await world.authenticator.tidy(everything=True)
    assert world.tokens.touches == [{"t": NOON}, {"t": NOON + SECOND}]


async def test_what_cannot_be_written_is_written_later(world):
    await world.ask(bearer())
    world.tokens.is_away = True
    await world.authenticator.tidy()
    world.tokens.is_away = False
    await world.authenticator.tidy()
    assert world.tokens.touches == [{"t": NOON}]


async def test_a_refused_token_counts_as_not_used(world):
    await world.tokens.revoke("t", at=NOON, by="x")
    await world.ask(bearer())
    await world.authenticator.tidy(everything=True)
    assert world.tokens.touches == []


async def test_a_warm_token_is_checked_in_a_fifth_of_a_millisecond(world):
    """The promise is p99 < 0.2 ms; it takes about 0.01 ms here, and the best of five runs is what the code needs."""
    headers = [bearer()]
    await world.authenticator.authenticate(headers)

    def p99():
        taken = []
        for _ in range(500):
            start = perf_counter()
            assert world.authenticator.warm(headers) is not None
            taken.append(perf_counter() - start)
        return quantiles(taken, n=100)[-1]

    assert min(p99() for _ in range(5)) < 0.0002


async def test_a_disabled_principal_does_not_end_the_tokens_of_others(world):
    await world.principals.create(a_principal("local:bob"))
    await world.create("u", principal="local:bob", expires=NOON + DAY)
    bob = await world.ask(bearer("u"))
    await world.ask(bearer("t"))
    await world.principals.disable("local:alice", at=NOON, by="x")
    assert (world.warm(bearer("u")), world.warm(bearer("t"))) == (bob, None)
