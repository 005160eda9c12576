"""Whether callers without a token are let in: the sticky rule, whatever the store and the feed do."""

import pytest

from auth.authenticator import Anonymous, Unauthenticated, Unavailable
from tests.support.auth_stores import NOON
from tests.support.authentication import ALICE, ANONYMOUS, CHALLENGE, World, bearer


@pytest.fixture
async def world():
    world = World()
    await world.create("t")
    return world


async def test_anonymous_callers_are_let_in_until_a_token_is_made():
    world = World()
    assert [await world.ask(), world.warm()] == [ANONYMOUS, ANONYMOUS]
    await world.create()
    assert (world.warm(), await world.ask()) == (None, Unauthenticated("no credential", CHALLENGE))


async def test_revoking_the_last_token_does_not_open_the_door(world):
    await world.tokens.revoke("t", at=NOON, by="x")
    await world.principals.disable("local:alice", at=NOON, by="x")
    for _ in range(2):
        assert await world.ask() == Unauthenticated("no credential", CHALLENGE)
        world.feed.tell(None)
        world.clock.pass_(days=1000)


async def test_an_open_door_is_asked_for_again_after_a_second():
    world = World()
    asked = []
    for _ in range(3):
        await world.ask()
        asked.append(world.tokens.asked)
        world.clock.pass_(milliseconds=500)
    assert asked == [1, 1, 2]


async def test_a_closed_door_is_never_asked_for_again(world):
    for _ in range(3):
        await world.ask()
        world.clock.pass_(days=1)
        world.feed.tell(None)
    assert world.tokens.asked == 1


async def test_the_door_is_closed_while_the_store_is_away_at_start():
    world = World()
    world.tokens.is_away = True
    assert (world.warm(), await world.ask()) == (None, Unavailable("the store cannot be asked: gone fishing"))


async def test_an_open_door_closes_when_the_store_goes_away():
    world = World()
    await world.ask()
    world.tokens.is_away = True
    world.clock.pass_(seconds=1)
    assert isinstance(await world.ask(), Unavailable)


async def test_an_open_door_is_not_recalled_when_the_silence_is_too_long():
    world = World()
    await world.ask()
    world.feed.silent = 61.0
    assert (world.warm(), await world.ask(), world.tokens.asked) == (None, ANONYMOUS, 2)


async def test_a_door_known_to_be_closed_stays_so_while_the_store_is_away(world):
    await world.ask()
    world.tokens.is_away, world.feed.silent = True, 61.0
    assert await world.ask() == Unauthenticated("no credential", CHALLENGE)


async def test_a_setting_opens_the_door_for_good():
    world = World(Anonymous.ALWAYS)
    await world.create()
    assert [world.warm(), await world.ask(), await world.ask(bearer())] == [ANONYMOUS, ANONYMOUS, ALICE]


async def test_a_setting_closes_the_door_for_good():
    world = World(Anonymous.NEVER)
    assert (world.warm(), await world.ask()) == (None, Unauthenticated("no credential", CHALLENGE))
    assert world.tokens.asked == 0
