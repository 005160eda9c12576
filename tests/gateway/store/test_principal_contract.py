"""What every `PrincipalStore` promises, asked of the twin and of the databases alike."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from auth.changes import Change, Subject
from auth.ports import Page
from tests.support.auth_stores import DAY, NOON, a_principal, beside


@pytest.fixture
def auth(stores):
    return beside(stores)


@pytest.fixture
def principals(auth):
    return auth.principals


async def test_a_principal_comes_back_exactly_as_it_was_created(principals):
    created = a_principal("https://issuer.example#søren 🦀", disabled=NOON + DAY, disabled_by="local:root")
    assert await principals.create(created) is True
    assert await principals.get(created.id) == created


async def test_the_first_of_two_with_one_id_stays(principals):
    first, second = a_principal(created_by="first"), a_principal(created_by="second")
    assert [await principals.create(first), await principals.create(second)] == [True, False]
    assert await principals.get(first.id) == first


async def test_of_many_that_create_one_at_once_one_does(principals):
    made = await asyncio.gather(*(principals.create(a_principal()) for _ in range(10)))
    assert sorted(made) == [False] * 9 + [True]


async def test_times_are_kept_in_utc(principals):
    await principals.create(a_principal(created=NOON.astimezone(timezone(timedelta(hours=9)))))
    assert (await principals.get("local:alice")).created.isoformat() == NOON.isoformat()


async def test_a_disabled_principal_stays_disabled_by_whoever_was_first(principals):
    await principals.create(a_principal())
    disabled = a_principal(disabled=NOON + DAY, disabled_by="local:root")
    assert await principals.disable("local:alice", at=NOON + DAY, by="local:root") == disabled
    assert await principals.disable("local:alice", at=NOON, by="local:other") == disabled
    assert await principals.get("local:alice") == disabled


async def test_an_enabled_principal_is_as_it_was_before(principals):
    await principals.create(a_principal())
    await principals.disable("local:alice", at=NOON + DAY, by="local:root")
    assert await principals.enable("local:alice") == a_principal()
    assert await principals.enable("local:alice") == a_principal()


@pytest.mark.parametrize("id", ["", "unknown", "LOCAL:ALICE", "local:alice ", "a\0b", "\ud800", "x" * 10_000])
async def test_an_id_that_was_never_created_is_nobodys(principals, id):
    await principals.create(a_principal())
    found = [await principals.get(id), await principals.disable(id, at=NOON, by="x"), await principals.enable(id)]
    assert (found, await principals.get("local:alice")) == ([None, None, None], a_principal())


async def test_pages_go_through_all_in_the_order_of_their_ids(principals):
    ids = ["local:b", "local:B", "local:a", "local:é", "local:🦀", "local:\uffff"]
    for id in ids:
        await principals.create(a_principal(id))
    seen, after = [], None
    while True:
        page = await principals.list(after=after, limit=2)
        seen += [principal.id for principal in page.items]
        if (after := page.after) is None:
            break
    assert seen == sorted(ids)


async def test_a_list_of_nobody_is_one_empty_page(principals):
    assert await principals.list() == Page(())


REFUSED = [
    pytest.param(a_principal(created=datetime(2026, 1, 1)), id="a naive time"),  # noqa: DTZ001
    pytest.param(a_principal(disabled=datetime(2026, 1, 1)), id="a naive time of disabling"),  # noqa: DTZ001
    pytest.param(a_principal("a\0b"), id="U+0000 in the id"),
    pytest.param(a_principal(created_by="\ud800"), id="a lone surrogate in the creator"),
]


@pytest.mark.parametrize("bad", REFUSED)
async def test_what_cannot_be_stored_everywhere_is_refused(principals, bad):
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ, the refusal does not
        await principals.create(bad)
    assert await principals.list() == Page(())


@pytest.mark.parametrize("changed", [{"at": NOON.replace(tzinfo=None), "by": "x"}, {"at": NOON, "by": "\0"}])
async def test_disabling_with_what_cannot_be_stored_is_refused(principals, changed):
    await principals.create(a_principal())
    with pytest.raises(ValueError):  # noqa: PT011
        await principals.disable("local:alice", **changed)
    assert await principals.get("local:alice") == a_principal()


async def test_each_change_is_told_once_and_what_changes_nothing_is_not(auth):
    await auth.principals.create(a_principal())
    await auth.principals.create(a_principal())
    await auth.principals.disable("local:alice", at=NOON, by="x")
    await auth.principals.disable("local:alice", at=NOON, by="x")
    await auth.principals.enable("local:alice")
    await auth.principals.enable("local:alice")
    await auth.principals.disable("local:bob", at=NOON, by="x")
    assert auth.changes == [Change(Subject.PRINCIPAL, "local:alice")] * 3


async def test_what_is_kept_with_a_change_undoes_it_when_it_fails(principals):
    def fails(_connection):
        raise OSError("no audit")

    await principals.create(a_principal())
    for change in (
        principals.create(a_principal("local:bob"), also=fails),
        principals.disable("local:alice", at=NOON, by="x", also=fails),
    ):
        with pytest.raises(OSError, match="no audit"):
            await change
    assert await principals.list() == Page((a_principal(),))
    disabled = replace(a_principal(), disabled=NOON, disabled_by="x")
    await principals.disable("local:alice", at=NOON, by="x")
    with pytest.raises(OSError, match="no audit"):
        await principals.enable("local:alice", also=fails)
    assert await principals.get("local:alice") == disabled
