"""Asking a person whether a call may go on, and remembering a yes for as long as it was given.

An answer is worth what the client that brings it is worth: a question protects a person from what a model does by
mistake, not a server from its clients. Whatever is no clear yes is a no.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar, assert_never

from auth.caller import Caller, Transport
from auth.permissions import Ask
from auth.ports import StoreAway
from auth.refusals import question_text
from mcp.exchange import Exchange
from mcp.grants import Grant, GrantStore, OfHarness, OfSession, Reach, allowing, asked_by, can_be_kept
from mcp.protocol.questions import Elicit, Elicited, Reply, Roots, Sampled, Unanswered
from mcp.protocol.state import LogLevel

T = TypeVar("T")

_log: Final = logging.getLogger("superpi.consent")

ONCE, ALWAYS, NO = "allow once", "allow from now on", "do not allow"
#: How a yes was given that nobody was asked for.
BEFORE: Final = "allowed from now on before"
#: How long a yes "from now on" holds where there is no session that ends it.
LASTING: Final = timedelta(hours=8)
#: Seconds that the store has for what a question needs of it.
_PROMPT: Final = 1.0
#: Questions that one call may lead to.
MOST_QUESTIONS: Final = 8


@dataclass(frozen=True, slots=True)
class Where:
    """What a yes belongs to: who called, in which session if there is one, in which harness."""

    caller: Caller
    session: str | None
    harness: str


@dataclass(frozen=True, slots=True)
class Yes:
    """The call may go on; `how` is the answer that counts, for the record."""

    how: str


@dataclass(frozen=True, slots=True)
class No:
    """The call stays refused; `why` ends the sentence about the yes that is missing."""

    why: str


@dataclass(frozen=True, slots=True)
class Consent:
    """Asks, and remembers. Over stdio there is one connection, so what it allowed is kept in memory."""

    grants: GrantStore
    now: Callable[[], datetime]
    _own: set[tuple[str, str, str]] = field(default_factory=set)

    async def given(self, tool: str, ask: Ask, where: Where, exchange: Exchange) -> Yes | No:
        """Whether a person lets the tool do what is asked about, now or by an earlier answer.

        What the store would have to tell is not assumed: while it is away, the person is asked.
        """
        rule = asked_by(ask)
        if await self._remembered(tool, ask.subject, rule, where):
            return Yes(BEFORE)
        question = _question(tool, ask, where)
        if not exchange.can_ask(question):
            return No("this client cannot ask one")
        key = _key(tool, ask.subject, rule)
        # A yes from before the question may have been given for another call, or long ago.
        answer = _judged((await exchange.ask({key: question}, volunteered=False))[key])
        if answer != Yes(ALWAYS):
            return answer
        if (why := await self._obstacle(tool, ask.subject, rule, where)) is None:
            return answer
        await exchange.log(LogLevel.WARNING, f"{tool}: {why}; this was allowed once")
        return Yes(ONCE)

    async def _remembered(self, tool: str, subject: str, rule: str, where: Where) -> bool:
        if where.caller.transport is Transport.STDIO:
            return (tool, subject, rule) in self._own
        try:
            grants = await _promptly(
                self.grants.covering(where.caller.principal, where.session, where.harness, self.now())
            )
        except StoreAway as error:
            _log.warning("what was allowed from now on cannot be read, so the person is asked: %s", error)
            return False
        return allowing(grants, tool, subject, rule) is not None

    async def _obstacle(self, tool: str, subject: str, rule: str, where: Where) -> str | None:
        """Keep a yes for the next time; None when it is kept, else why it is not."""
        if not can_be_kept(subject):
            return "this is too long to be allowed from now on"
        if where.caller.transport is Transport.STDIO:
            self._own.add((tool, subject, rule))
            return None
        now, caller = self.now(), where.caller
        reach: Reach = OfHarness(where.harness, now + LASTING) if where.session is None else OfSession(where.session)
        grant = Grant(secrets.token_hex(12), caller.principal, reach, tool, subject, rule, now, caller.token)
        try:
            kept = await _promptly(self.grants.add(grant))
        except StoreAway as error:
            _log.warning("a yes from now on cannot be kept, so it is one for this call: %s", error)
            return "the server's database is away, so nothing can be allowed from now on"
        return None if kept is not None else "the session or the token has ended"


async def _promptly(work: Awaitable[T]) -> T:
    """What the store says, as long as it says it soon: it counts as away before a person has to wait for it."""
    try:
        async with asyncio.timeout(_PROMPT):
            return await work
    except TimeoutError:
        raise StoreAway(f"it did not answer within {_PROMPT:g} s") from None


def _judged(reply: Reply) -> Yes | No:
    """What a reply comes to. Only a person's own word is a yes."""
    match reply:
        case Elicited(action="accept", content=content):
            answer = content.get("answer")
            return Yes(str(answer)) if answer in (ONCE, ALWAYS) else No("the person said no")
        case Elicited(action="cancel"):
            return No("the person dismissed the question")
        case Elicited():
            return No("the person declined")
        case Unanswered(why):
            return No(f"no answer came that counts: {why.rstrip('.')}")
        case Sampled() | Roots():
            return No("another answer came")
        case _:
            assert_never(reply)


def _key(tool: str, subject: str, rule: str) -> str:
    """Names the question across rounds: an answer to it is none to another one."""
    named = f"{tool}\0{rule}\0{subject}".encode(errors="replace")
    return "permission-" + hashlib.sha256(named).hexdigest()[:16]


def _question(tool: str, ask: Ask, where: Where) -> Elicit:
    hours = int(LASTING.total_seconds() // 3600)
    lasting = f"for {hours} hours" if where.session is None else "until this session ends"
    schema = {
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "title": "Answer",
                "description": f"'{ALWAYS}' holds for exactly this, {lasting}.",
                "enum": [ONCE, ALWAYS, NO],
            }
        },
        "required": ["answer"],
    }
    return Elicit(question_text(tool, ask), schema)
