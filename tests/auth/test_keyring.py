"""How often an issuer is asked for its keys, and how long an answer counts (C09). Time stands still unless moved."""

import asyncio

import pytest

from auth.jwks import KeySet, PublicKey
from auth.keyring import BETWEEN, REFRESH, STALE, Keyring, KeysAway


def named(kid):
    return KeySet((PublicKey(kid, "EC", "P-256", None, {}),))


class Issuer:
    """Counts who asks, and answers with what it is told to, once it is let."""

    def __init__(self):
        self.time = 1000.0
        self.asked = 0
        self.answer = named("first")
        self.open = asyncio.Event()
        self.open.set()

    async def fetch(self):
        self.asked += 1
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
async def issuer():
    return Issuer()


@pytest.fixture
async def keyring(issuer):
    ring = Keyring(issuer.fetch, lambda: issuer.time)
    yield ring
    await ring.close()


async def test_there_are_no_keys_before_they_were_fetched(keyring):
    assert keyring.keys == KeySet()


async def test_a_token_with_an_unknown_key_has_them_fetched(issuer, keyring):
    assert await keyring.newer() == named("first")
    assert issuer.asked == 1


async def test_three_hundred_unknown_keys_at_once_are_one_fetch(issuer, keyring):
    issuer.open.clear()
    waiting = [asyncio.create_task(keyring.newer()) for _ in range(300)]
    await asyncio.sleep(0)
    issuer.open.set()
    assert set(map(id, [(await one).keys for one in waiting])) == {id(issuer.answer.keys)}
    assert issuer.asked == 1


async def test_whoever_leaves_does_not_end_the_fetch_of_others(issuer, keyring):
    issuer.open.clear()
    first, second = (asyncio.create_task(keyring.newer()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    issuer.open.set()
    assert (await second, issuer.asked) == (named("first"), 1)


async def test_within_half_a_minute_nothing_is_fetched_again(issuer, keyring):
    await keyring.newer()
    issuer.answer = named("second")
    issuer.time += BETWEEN - 1
    assert (await keyring.newer(), issuer.asked) == (named("first"), 1)
    issuer.time += 1
    assert (await keyring.newer(), issuer.asked) == (named("second"), 2)


async def test_failures_count_as_fetches(issuer, keyring):
    issuer.answer = KeysAway("down")
    assert [await keyring.newer() for _ in range(3)] == [KeySet()] * 3
    assert issuer.asked == 1


async def test_while_the_issuer_is_away_its_last_keys_count_for_a_day(issuer, keyring):
    await keyring.newer()
    issuer.answer = KeysAway("down")
    issuer.time += STALE - 1
    assert await keyring.newer() == named("first")
    issuer.time += 1
    assert keyring.keys == KeySet()


async def test_a_withdrawn_key_ends_with_the_next_fetch(issuer, keyring):
    await keyring.newer()
    issuer.answer = named("second")
    issuer.time += REFRESH
    keeping = asyncio.create_task(keyring.keep())
    while issuer.asked < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    keeping.cancel()
    assert keyring.keys == named("second")


async def test_an_end_in_the_middle_of_a_fetch_leaves_nothing_behind(issuer, keyring):
    issuer.open.clear()
    waiting = asyncio.create_task(keyring.newer())
    await asyncio.sleep(0)
    await keyring.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
