"""What every `TokenStore` promises, asked of the twin and of the databases alike."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from auth.changes import Change, Subject
from auth.ports import Obstacle, Page
from auth.scopes import Scope
from auth.tokens import Kind
from tests.support.auth_stores import DAY, NOON, a_principal, a_token, beside, digest

HOUR = timedelta(hours=1)


@pytest.fixture
def auth(stores):
    return beside(stores)


@pytest.fixture
async def tokens(auth):
    """With the principals alice and bob, and mallory, who is disabled."""
    for principal in (a_principal(), a_principal("local:bob"), a_principal("local:mallory", disabled=NOON)):
        await auth.principals.create(principal)
    auth.changes.clear()
    return auth.tokens


async def create(tokens, *records):
    for record in records:
        assert await tokens.create(record, digest(record.id)) is None


async def test_a_token_comes_back_exactly_as_it_was_created(tokens):
    created = a_token(
        "A1b2C3d4E5f",
        kind=Kind.ADM,
        name="søren's 🦀",
        scopes=frozenset(Scope),
        last_used=NOON + HOUR,
        revoked=NOON + DAY,
        revoked_by="local:root",
    )
    await create(tokens, created, a_token("never", expires=None))
    assert await tokens.get("A1b2C3d4E5f") == created
    assert await tokens.get("never") == a_token("never", expires=None)


async def test_a_lookup_finds_the_token_with_its_principal(tokens):
    await create(tokens, a_token("t"), a_token("u", "local:bob"))
    assert await tokens.lookup(digest("u")) == (a_token("u", "local:bob"), a_principal("local:bob"))


async def test_a_lookup_tells_that_the_principal_is_disabled(auth, tokens):
    await create(tokens, a_token("t"))
    await auth.principals.disable("local:alice", at=NOON + DAY, by="local:root")
    disabled = a_principal(disabled=NOON + DAY, disabled_by="local:root")
    assert await tokens.lookup(digest("t")) == (a_token("t"), disabled)


@pytest.mark.parametrize("sha256", [b"", digest("other"), digest("t")[:-1], digest("t") + b"\0", b"\0" * 32])
async def test_a_digest_that_was_never_kept_finds_nothing(tokens, sha256):
    await create(tokens, a_token("t"))
    assert await tokens.lookup(sha256) is None


async def test_that_a_token_was_ever_made_outlives_its_revocation(tokens):
    seen = [await tokens.ever_any()]
    await create(tokens, a_token("t"))
    seen.append(await tokens.ever_any())
    await tokens.revoke("t", at=NOON, by="x")
    seen.append(await tokens.ever_any())
    assert seen == [False, True, True]


@pytest.mark.parametrize(
    ("principal", "obstacle"),
    [
        pytest.param("local:nobody", Obstacle.PRINCIPAL_UNKNOWN, id="an unknown principal"),
        pytest.param("local:mallory", Obstacle.PRINCIPAL_DISABLED, id="a disabled principal"),
    ],
)
async def test_no_token_is_created_for(tokens, principal, obstacle):
    assert await tokens.create(a_token("t", principal), digest("t")) is obstacle
    assert (await tokens.ever_any(), await tokens.list()) == (False, Page(()))


async def test_a_missing_principal_is_created_with_its_token_when_asked_for(auth, tokens):
    carol = a_token("t", "local:carol", created_by="local:root")
    assert await tokens.create(carol, digest("t"), make_principal=True) is None
    assert await auth.principals.get("local:carol") == a_principal("local:carol", created_by="local:root")
    assert auth.changes == [Change(Subject.PRINCIPAL, "local:carol"), Change(Subject.TOKEN, "t")]


async def test_asking_for_the_principal_leaves_one_that_is_there_as_it_is(auth, tokens):
    assert await tokens.create(a_token("t", created_by="x"), digest("t"), make_principal=True) is None
    mallory = await tokens.create(a_token("u", "local:mallory"), digest("u"), make_principal=True)
    assert (await auth.principals.get("local:alice"), mallory) == (a_principal(), Obstacle.PRINCIPAL_DISABLED)


@pytest.mark.parametrize(("id", "secret"), [("t", "other"), ("other", "t")], ids=["id", "digest"])
async def test_what_is_taken_is_refused_and_nothing_is_kept(auth, tokens, id, secret):
    await create(tokens, a_token("t"))
    with pytest.raises(ValueError, match="taken"):
        await tokens.create(a_token(id, "local:carol"), digest(secret), make_principal=True)
    assert (await tokens.list(), await auth.principals.get("local:carol")) == (Page((a_token("t"),)), None)


@pytest.mark.parametrize("id", ["", "unknown", "T", "t ", "t\0", "\ud800", "x" * 10_000])
async def test_an_id_that_was_never_given_is_no_token(tokens, id):
    await create(tokens, a_token("t"))
    await tokens.touch({id: NOON + DAY})
    found = [
        await tokens.get(id),
        await tokens.revoke(id, at=NOON, by="x"),
        await tokens.rotate(id, a_token("u"), digest("u"), ends=NOON),
    ]
    assert (found, await tokens.list()) == ([None, None, Obstacle.TOKEN_UNKNOWN], Page((a_token("t"),)))


async def test_a_revoked_token_is_revoked_from_the_earliest_time_by_whoever_said_so(tokens):
    await create(tokens, a_token("t"))
    answers = [
        await tokens.revoke("t", at=NOON + DAY, by="second"),
        await tokens.revoke("t", at=NOON, by="first"),
        await tokens.revoke("t", at=NOON + HOUR, by="third"),
    ]
    first = replace(a_token("t"), revoked=NOON, revoked_by="first")
    assert answers == [replace(first, revoked=NOON + DAY, revoked_by="second"), first, first]
    assert await tokens.get("t") == first


async def test_a_rotation_keeps_the_successor_and_ends_the_old_token_when_said(tokens):
    await create(tokens, a_token("t"))
    successor = a_token("u", created=NOON + DAY, created_by="local:root")
    assert await tokens.rotate("t", successor, digest("u"), ends=NOON + DAY + HOUR) is None
    old = a_token("t", revoked=NOON + DAY + HOUR, revoked_by="local:root")
    assert [await tokens.lookup(digest(id)) for id in "tu"] == [(old, a_principal()), (successor, a_principal())]


@pytest.mark.parametrize(
    ("old", "obstacle"),
    [
        pytest.param(a_token("t", revoked=NOON), Obstacle.TOKEN_ENDED, id="a revoked token"),
        pytest.param(a_token("t", revoked=NOON + 9 * DAY), Obstacle.TOKEN_ENDED, id="a token that is being replaced"),
        pytest.param(a_token("t", expires=NOON + DAY), Obstacle.TOKEN_ENDED, id="an expired token"),
    ],
)
async def test_no_rotation_of(tokens, old, obstacle):
    await create(tokens, old)
    assert await tokens.rotate("t", a_token("u", created=NOON + DAY), digest("u"), ends=NOON + DAY) is obstacle
    assert await tokens.list() == Page((old,))


async def test_no_rotation_for_a_disabled_principal(auth, tokens):
    await create(tokens, a_token("t"))
    await auth.principals.disable("local:alice", at=NOON, by="x")
    assert await tokens.rotate("t", a_token("u"), digest("u"), ends=NOON) is Obstacle.PRINCIPAL_DISABLED
    assert await tokens.list() == Page((a_token("t"),))


async def test_a_rotation_to_a_taken_secret_is_refused_and_the_old_token_stays(tokens):
    await create(tokens, a_token("t"))
    with pytest.raises(ValueError, match="taken"):
        await tokens.rotate("t", a_token("u"), digest("t"), ends=NOON)
    assert await tokens.list() == Page((a_token("t"),))


async def test_of_many_rotations_at_once_one_succeeds(tokens):
    await create(tokens, a_token("t"))
    rotations = (tokens.rotate("t", a_token(f"u{n}", minute=1), digest(f"u{n}"), ends=NOON) for n in range(8))
    outcomes = await asyncio.gather(*rotations)
    assert sorted(outcome is None for outcome in outcomes) == [False] * 7 + [True]
    assert len((await tokens.list()).items) == 2


async def test_the_last_use_goes_forward_and_never_back(tokens):
    await create(tokens, a_token("t"), a_token("u"))
    for seen in (NOON + DAY, NOON, NOON + 2 * DAY):
        await tokens.touch({"t": seen, "unknown": seen})
    await tokens.touch({})
    assert ((await tokens.get("t")).last_used, (await tokens.get("u")).last_used) == (NOON + 2 * DAY, None)


async def test_a_naive_time_of_use_refuses_the_whole_call(tokens):
    await create(tokens, a_token("t"))
    with pytest.raises(ValueError, match="time zone"):
        await tokens.touch({"t": NOON, "u": NOON.replace(tzinfo=None)})
    assert await tokens.get("t") == a_token("t")


async def pages(tokens, **asked):
    seen, after = [], None
    while True:
        page = await tokens.list(after=after, **asked)
        seen.append([token.id for token in page.items])
        if (after := page.after) is None:
            return seen


async def test_a_list_is_newest_first_and_goes_on_where_a_page_ended(tokens):
    await create(tokens, *(a_token(f"t{n}", "local:alice" if n % 2 else "local:bob", minute=n // 3) for n in range(7)))
    assert await pages(tokens, limit=3) == [["t6", "t5", "t4"], ["t3", "t2", "t1"], ["t0"]]
    assert await pages(tokens, limit=2, principal="local:alice") == [["t5", "t3"], ["t1"]]


@pytest.mark.parametrize("principal", ["local:carol", "", "\0", "\ud800"])
async def test_a_principal_without_tokens_has_an_empty_list(tokens, principal):
    await create(tokens, a_token("t"))
    assert await tokens.list(principal=principal) == Page(())


@pytest.mark.parametrize("after", ["", "x", "1", ".t", "1.\0", "9" * 40 + ".t", "-.t"])
async def test_a_place_that_no_page_named_is_refused(tokens, after):
    with pytest.raises(ValueError, match="position"):
        await tokens.list(after=after)


REFUSED = [
    pytest.param(a_token(created=datetime(2026, 1, 1)), id="a naive time of creation"),  # noqa: DTZ001
    pytest.param(a_token(expires=datetime(2026, 1, 1)), id="a naive time of expiry"),  # noqa: DTZ001
    pytest.param(a_token("a\0b"), id="U+0000 in the id"),
    pytest.param(a_token(name="a\0b"), id="U+0000 in the name"),
    pytest.param(a_token(principal="\ud800"), id="a lone surrogate in the principal"),
    pytest.param(a_token(created_by="\udfff"), id="a lone surrogate in the creator"),
]


@pytest.mark.parametrize("bad", REFUSED)
async def test_what_cannot_be_stored_everywhere_is_refused(tokens, bad):
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await tokens.create(bad, digest("bad"), make_principal=True)
    await create(tokens, a_token("old"))
    with pytest.raises(ValueError):  # noqa: PT011
        await tokens.rotate("old", bad, digest("bad"), ends=NOON)
    assert await tokens.list() == Page((a_token("old"),))


async def test_times_are_kept_in_utc(tokens):
    tokyo = timezone(timedelta(hours=9))
    await create(tokens, a_token(created=NOON.astimezone(tokyo), expires=(NOON + DAY).astimezone(tokyo)))
    kept = await tokens.get("t")
    assert (kept.created.isoformat(), kept.expires.isoformat()) == (NOON.isoformat(), (NOON + DAY).isoformat())


async def test_each_change_is_told_and_what_changes_nothing_is_not(auth, tokens):
    await create(tokens, a_token("t"))
    await tokens.rotate("t", a_token("u"), digest("u"), ends=NOON + DAY)
    await tokens.rotate("t", a_token("v"), digest("v"), ends=NOON + DAY)
    await tokens.revoke("u", at=NOON, by="x")
    await tokens.revoke("u", at=NOON, by="x")
    await tokens.revoke("unknown", at=NOON, by="x")
    await tokens.create(a_token("w", "local:nobody"), digest("w"))
    await tokens.touch({"t": NOON})
    assert [change.id for change in auth.changes] == ["t", "t", "u", "u"]
    assert {change.subject for change in auth.changes} == {Subject.TOKEN}


async def test_what_is_kept_with_a_change_undoes_it_when_it_fails(auth, tokens):
    def fails(_connection):
        raise OSError("no audit")

    await create(tokens, a_token("t"))
    for change in (
        tokens.create(a_token("u", "local:carol"), digest("u"), make_principal=True, also=fails),
        tokens.revoke("t", at=NOON, by="x", also=fails),
        tokens.rotate("t", a_token("u"), digest("u"), ends=NOON, also=fails),
    ):
        with pytest.raises(OSError, match="no audit"):
            await change
    assert (await tokens.list(), await auth.principals.get("local:carol")) == (Page((a_token("t"),)), None)


async def test_what_is_kept_with_a_change_is_not_kept_without_one(tokens):
    kept = []
    await create(tokens, a_token("t", revoked=NOON))
    await tokens.revoke("t", at=NOON, by="x", also=kept.append)
    await tokens.rotate("t", a_token("u"), digest("u"), ends=NOON, also=kept.append)
    await tokens.create(a_token("u", "local:nobody"), digest("u"), also=kept.append)
    assert kept == []
