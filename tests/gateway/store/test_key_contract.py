"""What the signing keys promise, asked of the twin and of the database alike."""

import asyncio


async def test_a_key_is_256_bits_and_stays_the_same(keys):
    first = await keys.signing_key("cursor")
    assert (len(first), await keys.signing_key("cursor")) == (32, first)


async def test_each_purpose_has_a_key_of_its_own(keys):
    secrets = {await keys.signing_key(purpose) for purpose in ("cursor", "state", "cursor:1", "")}
    assert len(secrets) == 4


async def test_all_who_ask_first_at_the_same_time_get_one_key(keys):
    assert len(set(await asyncio.gather(*(keys.signing_key("cursor") for _ in range(20))))) == 1
