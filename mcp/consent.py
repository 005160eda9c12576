"""Asking a person whether a call may go on, and remembering a yes for as long as it was given.

An answer is worth what the client that brings it is worth: a question protects a person from what a model does by
mistake, not a server from its clients. Whatever is no clear yes is a no.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from auth.caller import Caller, Transport
from auth.permissions import Ask
from auth.refusals import question_text
from mcp.exchange import Exchange
from mcp.grants import Grant, GrantStore, OfHarness, OfSession, Reach, allowing, can_be_kept
from mcp.protocol.questions import Elicit, Elicited
from mcp.protocol.state import LogLevel

ONCE, ALWAYS, NO = "allow once", "allow from now on", "do not allow"
#: How long a yes "from now on" holds where there is no session that ends it.
LASTING: Final = timedelta(hours=8)
#: Questions that one call may lead to.
MOST_QUESTIONS: Final = 8


@dataclass(frozen=True, slots=True)
class Where:
    """What a yes belongs to: who called, in which session if there is one, in which harness."""

    caller: Caller
    session: str | None
    harness: str


@dataclass(frozen=True, slots=True)
class Consent:
    """Asks, and remembers. Over stdio there is one connection, so what it allowed is kept in memory."""

    grants: GrantStore
    now: Callable[[], datetime]
    _own: set[tuple[str, str]] = field(default_factory=set)

    async def given(self, tool: str, ask: Ask, where: Where, exchange: Exchange) -> str | None:
        """How a yes was given (`allow once`, `allow from now on`, or by an earlier answer), or None for a no."""
        if await self._remembered(tool, ask.subject, where):
            return "allowed from now on before"
        question = _question(tool, ask, where)
        if not exchange.can_ask(question):
            return None
        key = "permission-" + hashlib.sha256(f"{tool}\0{ask.subject}".encode(errors="replace")).hexdigest()[:16]
        reply = (await exchange.ask({key: question}))[key]
        answer = reply.content.get("answer") if isinstance(reply, Elicited) and reply.action == "accept" else NO
        if answer not in (ONCE, ALWAYS):
            return None
        if answer == ALWAYS and not await self._remember(tool, ask.subject, where):
            await exchange.log(LogLevel.WARNING, f"{tool}: this is too long to be allowed from now on; allowed once")
        return str(answer)

    async def _remembered(self, tool: str, subject: str, where: Where) -> bool:
        if where.caller.transport is Transport.STDIO:
            return (tool, subject) in self._own
        grants = await self.grants.covering(where.caller.principal, where.session, where.harness, self.now())
        return allowing(grants, tool, subject) is not None

    async def _remember(self, tool: str, subject: str, where: Where) -> bool:
        if not can_be_kept(subject):
            return False
        if where.caller.transport is Transport.STDIO:
            self._own.add((tool, subject))
            return True
        now = self.now()
        reach: Reach = OfHarness(where.harness, now + LASTING) if where.session is None else OfSession(where.session)
        grant = Grant(secrets.token_urlsafe(12), where.caller.principal, reach, tool, subject, now)
        return await self.grants.add(grant) is not None


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
