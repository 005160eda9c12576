"""Questions end with the credential of the call that asked, as fast as its change is heard; and go on where it does."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from auth.caller import Caller
from auth.changes import Change, Subject
from auth.ports import StoreAway
from mcp.pending import EXPIRED, IN_TIME, REVOKED, SHUT, UNSURE, Credential, Pending

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE, BOB = "local:alice", "local:bob"
YES = {"result": {"action": "accept"}}


@pytest.fixture
def pending():
    return Pending(lambda: NOON)


class Door:
    """What lets a caller in: `lets_in` may be changed; it may be away, and look only when it is told to."""

    def __init__(self, caller):
        self.lets_in = caller
        self.away = False
        self.may_look = asyncio.Event()
        self.may_look.set()
        self.credential = Credential(caller, self.again)

    async def again(self):
        found = self.lets_in
        await self.may_look.wait()
        if self.away:
            raise StoreAway("away")
        return found


WITH_TOKEN = Caller(ALICE, token="t1")
WITHOUT = Caller()
REVOCATION = Change(Subject.TOKEN, "t1")


async def opened(pending, caller=WITH_TOKEN):
    """A question of that caller that is waited for, and its door."""
    door = Door(caller)
    question = await pending.open("s", ALICE, door.credential)
    waiting = asyncio.create_task(question.wait(30))
    await asyncio.sleep(0)
    return question, door, waiting


@pytest.mark.parametrize(
    ("caller", "change", "why"),
    [
        pytest.param(WITH_TOKEN, REVOCATION, REVOKED, id="its token is revoked"),
        pytest.param(WITH_TOKEN, Change(Subject.PRINCIPAL, ALICE), REVOKED, id="its principal is disabled"),
        pytest.param(WITH_TOKEN, None, REVOKED, id="either, unheard"),
        pytest.param(WITHOUT, Change(Subject.TOKEN, "new"), SHUT, id="without a token nobody is let in any more"),
    ],
)
async def test_a_question_ends_with_the_credential_of_its_call(pending, caller, change, why):
    question, door, waiting = await opened(pending, caller)
    door.lets_in = None
    pending.hear(change)
    async with asyncio.timeout(5):
        assert await waiting is None
    assert (question.why, len(pending)) == (why, 0)
    assert not await pending.answer("s", ALICE, question.id, YES)


async def test_a_question_of_a_credential_that_lets_somebody_else_in_ends(pending):
    question, door, waiting = await opened(pending)
    door.lets_in = replace(WITH_TOKEN, principal=BOB)
    pending.hear(REVOCATION)
    assert (await waiting, question.why) == (None, REVOKED)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(REVOCATION, id="a change that leaves the credential good"),
        pytest.param(None, id="any change"),
        pytest.param(Change(Subject.TOKEN, "t2"), id="another token"),
        pytest.param(Change(Subject.PRINCIPAL, BOB), id="another principal"),
    ],
)
async def test_a_question_goes_on_where_its_credential_does(pending, change):
    question, _, waiting = await opened(pending)
    pending.hear(change)
    await pending.flush()
    assert await pending.answer("s", ALICE, question.id, YES)
    assert await waiting == YES


async def test_a_question_ends_when_its_credential_expires(pending):
    until = NOON + timedelta(milliseconds=20)
    question, _, waiting = await opened(pending, replace(WITH_TOKEN, until=until))
    async with asyncio.timeout(5):
        assert (await waiting, question.why) == (None, EXPIRED)


async def test_a_credential_that_was_rotated_ends_its_question_at_the_new_time(pending):
    question, door, waiting = await opened(pending, replace(WITH_TOKEN, until=NOON + timedelta(days=1)))
    door.lets_in = replace(WITH_TOKEN, until=NOON + timedelta(milliseconds=20))
    pending.hear(REVOCATION)
    async with asyncio.timeout(5):
        assert (await waiting, question.why) == (None, EXPIRED)


@pytest.mark.parametrize(("lets_in", "body", "why"), [(WITH_TOKEN, YES, IN_TIME), (None, None, REVOKED)])
async def test_an_answer_that_comes_while_the_credential_is_looked_at_counts_only_after_that(
    pending, lets_in, body, why
):
    question, door, waiting = await opened(pending)
    door.may_look.clear()
    door.lets_in = lets_in
    pending.hear(REVOCATION)
    assert await pending.answer("s", ALICE, question.id, YES)
    assert (await asyncio.wait((waiting,), timeout=0.01))[0] == set()
    door.may_look.set()
    assert (await waiting, question.why) == (body, why)


async def test_a_credential_that_was_good_when_it_was_looked_at_does_not_outlive_the_next_change(pending):
    question, door, waiting = await opened(pending)
    door.may_look.clear()
    pending.hear(REVOCATION)
    await asyncio.sleep(0)
    door.lets_in = None
    pending.hear(REVOCATION)
    door.may_look.set()
    assert (await waiting, question.why) == (None, REVOKED)


async def test_a_credential_that_cannot_be_looked_at_lets_the_question_wait_and_no_answer_count(pending):
    question, door, waiting = await opened(pending)
    door.away = True
    pending.hear(REVOCATION)
    await pending.flush()
    assert not waiting.done()
    assert await pending.answer("s", ALICE, question.id, YES)
    assert (await waiting, question.why) == (None, UNSURE)
