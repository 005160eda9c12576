"""What a person's answer is worth: now, the next time, under other rules, and while the store is away."""

import asyncio
import logging
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from auth.caller import ANONYMOUS, Caller, Transport
from auth.permissions import Ask, Layer, Mode
from auth.ports import StoreAway
from gateway.store.memory import MemorySessions
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from gateway.store.memory_grants import MemoryGrants
from mcp.consent import ALWAYS, BEFORE, LASTING, MOST_QUESTIONS, NO, ONCE, Consent, No, Where, Yes
from mcp.exchange import Silent
from mcp.grants import MOST_SUBJECT, OfHarness, OfSession, asked_by
from mcp.protocol.questions import Elicited, Roots, Unanswered, read
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support.auth_stores import a_token, digest
from tests.support.policies import ask

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE = Caller("local:alice", Transport.HTTP, "t")
STATELESS = Where(ALICE, None, "careful")
IN_SESSION = Where(ALICE, "s", "careful")
PUSH = ask("bash", "git push*")
ASK = Ask("a rule asks about git push*", Layer.RULE, Mode.WORKSPACE_WRITE, "git push", (PUSH,))


@dataclass
class Person(Silent):
    """A client whose person gives that reply; it keeps what it was asked and told."""

    reply: object
    questions: list = field(default_factory=list)
    told: list = field(default_factory=list)

    def can_ask(self, question):
        return True

    async def ask(self, questions, *, volunteered):
        self.questions += questions.items()
        return dict.fromkeys(questions, self.reply)

    async def log(self, level, data, logger="superpi"):
        self.told.append((level.value, data))


def says(answer):
    return Person(Elicited("accept", {"answer": answer}))


class Leaving:
    """A store that can go away."""

    def __init__(self, store):
        self._store, self.away, self.silent = store, False, False

    def __getattr__(self, name):
        if self.silent:
            return lambda *_arguments: asyncio.Event().wait()
        if self.away:
            raise StoreAway("the database is away")
        return getattr(self._store, name)


@pytest.fixture
async def tokens():
    tokens = MemoryTokens(MemoryPrincipals())
    for id in ("t", "u"):
        await tokens.create(a_token(id, created=NOON - timedelta(days=1)), digest(id), make_principal=True)
    return tokens


@pytest.fixture
async def grants(tokens):
    sessions = MemorySessions()
    for id in ("s", "s2"):
        await sessions.open(Session(id, State(principal="local:alice"), NOON, NOON), most=9)
    return Leaving(MemoryGrants(sessions, tokens))


@pytest.fixture
def clock():
    return [NOON]


@pytest.fixture
def consent(grants, clock):
    return Consent(grants, lambda: clock[-1])


async def asked_again(consent, where=STATELESS, asked=ASK, tool="bash"):
    """Whether the person is asked."""
    person = says(NO)
    given = await consent.given(tool, asked, where, person)
    assert given == (No("the person said no") if person.questions else Yes(BEFORE))
    return bool(person.questions)


@pytest.mark.parametrize(
    ("reply", "given"),
    [
        pytest.param(Elicited("accept", {"answer": ONCE}), Yes(ONCE), id="once"),
        pytest.param(Elicited("accept", {"answer": ALWAYS}), Yes(ALWAYS), id="from now on"),
        pytest.param(Elicited("accept", {"answer": NO}), No("the person said no"), id="no"),
        pytest.param(Elicited("accept", {"answer": "yes"}), No("the person said no"), id="another word"),
        pytest.param(Elicited("accept"), No("the person said no"), id="accepted without a word"),
        pytest.param(Elicited("decline", {"answer": ONCE}), No("the person declined"), id="declined"),
        pytest.param(Elicited("cancel"), No("the person dismissed the question"), id="dismissed"),
        pytest.param(Unanswered("Too many."), No("no answer came that counts: Too many"), id="no answer"),
        pytest.param(Roots(()), No("another answer came"), id="an answer to something else"),
    ],
)
async def test_only_a_persons_own_word_is_a_yes(consent, reply, given):
    assert await consent.given("bash", ASK, STATELESS, Person(reply)) == given


async def test_who_cannot_be_asked_has_said_nothing(consent):
    assert await consent.given("bash", ASK, STATELESS, Silent()) == No("this client cannot ask one")


async def test_once_is_for_this_call_alone(consent):
    assert await consent.given("bash", ASK, STATELESS, says(ONCE)) == Yes(ONCE)
    assert await asked_again(consent)


@pytest.mark.parametrize(
    ("where", "reach"),
    [
        pytest.param(STATELESS, OfHarness("careful", NOON + LASTING), id="without a session"),
        pytest.param(IN_SESSION, OfSession("s"), id="in one"),
    ],
)
async def test_from_now_on_is_kept_with_all_that_it_hangs_on(consent, grants, where, reach):
    assert await consent.given("bash", ASK, where, says(ALWAYS)) == Yes(ALWAYS)
    (kept,) = (await grants.list(None)).items
    assert (kept.principal, kept.token, kept.reach) == ("local:alice", "t", reach)
    assert (kept.tool, kept.subject, kept.rule, kept.created) == ("bash", "git push", asked_by(ASK), NOON)
    assert not await asked_again(consent, where)


@pytest.mark.parametrize(
    ("where", "again"),
    [
        pytest.param(STATELESS, False, id="the same"),
        pytest.param(replace(STATELESS, caller=replace(ALICE, token="u")), False, id="another token of the principal"),
        pytest.param(replace(STATELESS, caller=Caller("local:bob", token="t")), True, id="another principal"),
        pytest.param(replace(STATELESS, harness="other"), True, id="another harness"),
    ],
)
async def test_whom_a_yes_from_now_on_spares_the_question(consent, where, again):
    await consent.given("bash", ASK, STATELESS, says(ALWAYS))
    assert await asked_again(consent, where) is again


async def test_a_yes_in_a_session_holds_in_that_session_alone(consent):
    await consent.given("bash", ASK, IN_SESSION, says(ALWAYS))
    assert [await asked_again(consent, replace(STATELESS, session=session)) for session in ("s", "s2", None)] == [
        False,
        True,
        True,
    ]


async def test_without_a_session_from_now_on_is_eight_hours(consent, clock):
    await consent.given("bash", ASK, STATELESS, says(ALWAYS))
    clock.append(NOON + timedelta(hours=8) - timedelta(seconds=1))
    assert not await asked_again(consent)
    clock.append(NOON + timedelta(hours=8))
    assert await asked_again(consent)


@pytest.mark.parametrize("where", [STATELESS, IN_SESSION, Where(Caller("machine", Transport.STDIO), None, "careful")])
@pytest.mark.parametrize(
    ("tool", "asked", "again"),
    [
        pytest.param("bash", ASK, False, id="the same"),
        pytest.param("bash", replace(ASK, mode=Mode.FULL, reason="other words"), False, id="the same in other words"),
        pytest.param("bash", replace(ASK, rules=(ask("bash", "git *"),)), True, id="the rule was replaced"),
        pytest.param("bash", replace(ASK, rules=(PUSH, ask("bash", "git *"))), True, id="another rule asks too"),
        pytest.param("bash", replace(ASK, subject="git push -f"), True, id="another subject"),
        pytest.param("edit", ASK, True, id="another tool"),
    ],
)
async def test_a_yes_answers_the_rules_that_asked_about_just_this(consent, where, tool, asked, again):
    assert await consent.given("bash", ASK, where, says(ALWAYS)) == Yes(ALWAYS)
    assert await asked_again(consent, where, asked, tool) is again


async def test_an_answer_under_way_is_none_to_other_rules(consent):
    """The key that answers travel under stands for the rules too."""
    person = says(ONCE)
    for asked in (ASK, replace(ASK, rules=(ask("bash", "git *"),))):
        await consent.given("bash", asked, STATELESS, person)
    assert len({key for key, _ in person.questions}) == 2


async def test_a_yes_ends_with_its_token(consent, tokens):
    await consent.given("bash", ASK, IN_SESSION, says(ALWAYS))
    await tokens.revoke("t", at=NOON, by="cli")
    assert await asked_again(consent, replace(IN_SESSION, caller=replace(ALICE, token="u")))


async def test_a_yes_without_a_token_stays_its_principals(consent, tokens):
    where = Where(Caller(ANONYMOUS), None, "careful")
    await consent.given("bash", ASK, where, says(ALWAYS))
    await tokens.revoke("t", at=NOON, by="cli")
    assert not await asked_again(consent, where)


async def test_a_yes_whose_token_was_revoked_meanwhile_is_for_this_call(consent, tokens, grants):
    await tokens.revoke("t", at=NOON, by="cli")
    person = says(ALWAYS)
    assert await consent.given("bash", ASK, STATELESS, person) == Yes(ONCE)
    assert person.told == [("warning", "bash: the session or the token has ended; this was allowed once")]
    assert (await grants.list(None)).items == ()


async def test_what_nobody_has_read_to_its_end_is_allowed_once(consent, grants):
    person = says(ALWAYS)
    long = replace(ASK, subject="x" * (MOST_SUBJECT + 1))
    assert await consent.given("bash", long, STATELESS, person) == Yes(ONCE)
    assert person.told == [("warning", "bash: this is too long to be allowed from now on; this was allowed once")]
    assert (await grants.list(None)).items == ()


async def test_while_the_store_is_away_no_yes_is_assumed_and_the_person_is_asked(consent, grants, caplog):
    await consent.given("bash", ASK, STATELESS, says(ALWAYS))
    grants.away = True
    assert await asked_again(consent)
    assert await consent.given("bash", ASK, STATELESS, says(ONCE)) == Yes(ONCE)
    words = "what was allowed from now on cannot be read, so the person is asked: the database is away"
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.WARNING, words)] * 2
    grants.away = False
    assert not await asked_again(consent)


async def test_a_store_that_says_nothing_counts_as_away_before_the_person_has_to_wait(consent, grants):
    """No yes is assumed, and none is kept."""
    grants.silent = True
    assert await consent.given("bash", ASK, STATELESS, says(ALWAYS)) == Yes(ONCE)


async def test_a_yes_from_now_on_that_cannot_be_kept_is_one_for_this_call(consent, grants, caplog):
    """Both logs say so: the client's and the server's."""
    grants.away = True
    person = says(ALWAYS)
    assert await consent.given("bash", ASK, IN_SESSION, person) == Yes(ONCE)
    words = "the server's database is away, so nothing can be allowed from now on"
    assert person.told == [("warning", f"bash: {words}; this was allowed once")]
    assert "a yes from now on cannot be kept, so it is one for this call: the database is away" in caplog.text
    grants.away = False
    assert await asked_again(consent, IN_SESSION)


async def test_the_question_takes_the_three_answers_and_no_other(consent):
    person = says(ONCE)
    await consent.given("bash", ASK, STATELESS, person)
    ((_, question),) = person.questions
    for answer in (ONCE, ALWAYS, NO):
        sent = {"action": "accept", "content": {"answer": answer}}
        assert read(question, sent) == Elicited("accept", {"answer": answer})
    assert isinstance(read(question, {"action": "accept", "content": {"answer": "Allow once"}}), Unanswered)
    assert MOST_QUESTIONS > 1


async def test_a_grant_is_named_by_what_a_command_takes_for_no_option(consent, grants):
    """`superpi grant revoke ID` took an id that begins with a hyphen for a flag."""
    await consent.given("bash", ASK, STATELESS, says(ALWAYS))
    (grant,) = (await grants.list("local:alice")).items
    assert re.fullmatch("[0-9a-f]{24}", grant.id)
