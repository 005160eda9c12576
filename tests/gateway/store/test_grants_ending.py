"""What grants end with, asked of the twin and of each database alike: sessions, tokens, principals."""

import asyncio

import pytest

from mcp.grants import OfHarness, OfSession
from mcp.live import SWEEP_MARGIN, Sessions
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support.auth_stores import a_principal, a_token, digest
from tests.support.grants import ALICE, BOB, MINUTE, NOON, covering, grant, ids, of_harness

# Tokens and principals.


async def test_the_grants_of_a_token_end_when_that_is_revoked_and_no_others(grants, auth, session, token):
    await auth.tokens.create(a_token("other", ALICE), digest("other"))
    for id, of in (("a", token), ("b", "other"), ("c", None)):
        await grants.add(grant(id, token=of))
        await grants.add(grant(f"{id}s", reach=OfSession(session), token=of))
    await auth.tokens.revoke(token, at=NOON + MINUTE, by="cli")
    assert (await ids(grants), await covering(grants, session)) == ("cs c bs b", "b bs c cs")
    assert await grants.add(grant("late", token=token, minute=2)) is None


async def test_the_grants_of_a_replaced_token_count_until_its_overlap_has_passed(grants, auth, session, token):
    """They belong to the old secret; the successor's holder is asked."""
    await grants.add(grant("a", token=token, reach=of_harness(minutes=600)))
    await grants.add(grant("b", token=token, reach=OfSession(session)))
    new = a_token("new", ALICE, minute=1)
    assert await auth.tokens.rotate(token, new, digest("new"), ends=NOON + 10 * MINUTE) is None
    assert [await covering(grants, session, minute=minute) for minute in (9, 10)] == ["a b", ""]
    assert (await grants.list(ALICE, now=NOON + 10 * MINUTE)).items == ()
    assert (await ids(grants), await grants.sweep(NOON + 10 * MINUTE), await ids(grants)) == ("b a", 2, "")


async def test_the_grants_of_a_token_that_is_replaced_at_once_end_at_once(grants, auth, token):
    await grants.add(grant(token=token))
    new = a_token("new", ALICE, minute=1)
    assert await auth.tokens.rotate(token, new, digest("new"), ends=new.created) is None
    assert await ids(grants) == ""


async def test_a_rotation_that_is_refused_ends_no_grant(grants, auth, token):
    await grants.add(grant(token=token))
    await auth.tokens.create(a_token("taken", ALICE), digest("taken"))
    with pytest.raises(ValueError, match="taken"):
        await auth.tokens.rotate(token, a_token("new", ALICE), digest("taken"), ends=NOON)
    assert await ids(grants) == "g"


async def test_a_grant_counts_no_longer_than_its_token_is_valid(grants, session, token):
    await grants.add(grant(token=token, reach=OfSession(session)))
    assert [await covering(grants, session, minute=minute) for minute in (59, 60)] == ["g", ""]
    assert await grants.add(grant("late", token=token, minute=60)) is None


@pytest.mark.parametrize(
    ("principal", "token"),
    [(BOB, "t"), (ALICE, "T"), (ALICE, ""), (ALICE, "never")],
    ids=["another's", "case", "", "no"],
)
async def test_a_grant_of_no_token_of_the_principals_is_not_made(grants, auth, principal, token):
    await auth.tokens.create(a_token("t", ALICE), digest("t"), make_principal=True)
    assert await grants.add(grant(principal=principal, token=token)) is None


async def test_a_principals_grants_end_when_it_is_disabled_and_stay_ended(grants, auth, session, token):
    """Those that were given without a token too; whoever comes back is asked anew."""
    await grants.add(grant("a", token=token))
    await grants.add(grant("b", reach=OfSession(session)))
    await grants.add(grant("bob", BOB))
    await auth.principals.disable(ALICE, at=NOON, by="cli")
    assert (await ids(grants), await ids(grants, BOB)) == ("", "bob")
    assert await grants.add(grant("late")) is None
    await auth.principals.enable(ALICE)
    assert (await ids(grants), await covering(grants, session)) == ("", "")
    assert await grants.add(grant("again", token=token)) == grant("again", token=token)


async def test_what_cannot_be_recorded_ends_no_grant(grants, auth, token):
    """The change and the end of the grants commit together or not at all."""

    def fails(_):
        raise ValueError("not today")

    await grants.add(grant(token=token))
    with pytest.raises(ValueError, match="not today"):
        await auth.tokens.revoke(token, at=NOON, by="cli", also=fails)
    with pytest.raises(ValueError, match="not today"):
        await auth.principals.disable(ALICE, at=NOON, by="cli", also=fails)
    assert await ids(grants) == "g"


async def test_no_grant_outlives_a_token_or_a_principal_that_ends_meanwhile(grants, auth):
    for n in range(20):
        await auth.principals.create(a_principal(f"p{n}"))
        await auth.tokens.create(a_token(f"t{n}", f"p{n}"), digest(str(n)))
    calls = []
    for n in range(20):
        calls.append(grants.add(grant(f"g{n}", f"p{n}", token=f"t{n}")))
        if n % 2:
            calls.append(auth.tokens.revoke(f"t{n}", at=NOON, by="cli"))
        else:
            calls.append(auth.principals.disable(f"p{n}", at=NOON, by="cli"))
    await asyncio.gather(*calls)
    assert (await grants.list(None)).items == ()


async def ended_by_its_principal(live, session, clock):
    await live.end(session)


async def idle_for_too_long(live, session, clock):
    clock.append(NOON + 31 * MINUTE)
    assert await live.find(session.id, ALICE) is None


async def swept_while_it_was_cold(live, session, clock):
    clock.append(NOON + 31 * MINUTE + SWEEP_MARGIN)
    await live.tidy()


async def crowded_out(live, session, clock):
    clock.append(NOON + MINUTE)
    for _ in range(3):
        await live.open(State(principal=ALICE))


@pytest.mark.parametrize("end", [ended_by_its_principal, idle_for_too_long, swept_while_it_was_cold, crowded_out])
async def test_a_sessions_grants_end_with_it_however_it_ends(sessions, grants, end):
    clock = [NOON]
    live = Sessions(sessions, lambda: clock[-1], idle=30 * MINUTE, most=3)
    session, bobs = await live.open(State(principal=ALICE)), await live.open(State(principal=BOB))
    await grants.add(grant("ends", reach=OfSession(session.id)))
    await grants.add(grant("stays"))
    await grants.add(grant("bobs", BOB, reach=OfHarness(bobs.id, NOON + MINUTE)))
    await end(live, session, clock)
    assert (await covering(grants, session.id), await ids(grants), await ids(grants, BOB)) == ("stays", "stays", "bobs")
    assert await grants.add(grant("late", reach=OfSession(session.id))) is None


async def test_no_grant_of_a_session_outlives_one_that_ends_meanwhile(sessions, grants):
    for n in range(20):
        await sessions.open(Session(f"s{n}", State(principal=ALICE), NOON, NOON), most=99)
    added = (grants.add(grant(f"g{n}", reach=OfSession(f"s{n}"))) for n in range(20))
    await asyncio.gather(*(call for n, one in enumerate(added) for call in (one, sessions.end(f"s{n}"))))
    assert await ids(grants) == ""
