"""Grants: what a person allowed from now on when a rule asked, and the port their store fills.

A grant answers one question for the next time it comes up: may this tool do exactly this, when these rules ask? It
belongs to one principal, and ends with the token through which it was given. It never outweighs a rule that denies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from auth.permissions import Ask
from auth.ports import Also, Page

#: Grants that a principal has at most; beyond it the oldest ends.
MOST_GRANTS: Final = 1000
#: Characters of a subject. Whoever allows a longer command from now on has not read it.
MOST_SUBJECT: Final = 4096


@dataclass(frozen=True, slots=True)
class OfSession:
    """For as long as the session with that id lives."""

    id: str


@dataclass(frozen=True, slots=True)
class OfHarness:
    """For every connection of the principal that works in the harness with that id, until `expires`, UTC and aware."""

    id: str
    expires: datetime


#: How far a grant reaches.
Reach = OfSession | OfHarness


@dataclass(frozen=True, slots=True)
class Grant:
    """One grant: `principal` may have `tool` do `subject` without being asked, as far as it reaches.

    `subject` is what was asked about, character by character: the workspace path for tools that take one, the
    command for a shell. `rule` stands for the rules that asked (`asked_by`): others are not answered. `token` is the
    id of the token that the caller showed, None where it showed none. Times are UTC and aware.
    """

    id: str
    principal: str
    reach: Reach
    tool: str
    subject: str
    rule: str
    created: datetime
    token: str | None = None


def can_be_kept(subject: str) -> bool:
    """Whether a grant may be made of it: short enough to be read, and text that every database takes."""
    return len(subject) <= MOST_SUBJECT and "\0" not in subject and not any("\ud800" <= c <= "\udfff" for c in subject)


def asked_by(ask: Ask) -> str:
    """What stands for all the rules that ask, whatever their order: another rule, one more or one less is another."""
    rules = sorted([rule.tool, rule.match, rule.effect.value, rule.layer.value] for rule in ask.rules)
    return hashlib.sha256(json.dumps(rules).encode()).hexdigest()


def allowing(grants: Iterable[Grant], tool: str, subject: str, rule: str) -> Grant | None:
    """The first of the grants that allows that tool exactly that, where just those rules ask."""
    wanted = (tool, subject, rule)
    return next((grant for grant in grants if (grant.tool, grant.subject, grant.rule) == wanted), None)


class GrantStore(Protocol):
    """Where grants live. All methods are safe to call from any number of tasks at once.

    A grant of a session ends with it, however the session ends. One that was given through a token ends when that is
    revoked, and no longer counts once it has expired or was replaced; a principal's grants end when it is disabled.
    """

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """Keep a grant and answer it as it is kept; ends the principal's oldest ones so that at most `most` remain.

        The principal's grant that differs in nothing but its id and times stays the one that it was, and ends at the
        later of both times. None when, at the time it was made, the principal has no such session (any more) or no
        such token that is valid, or is disabled. Raises ValueError when the id is taken, and for a subject that
        `can_be_kept` refuses.
        """

    async def covering(self, principal: str, session: str | None, harness: str, now: datetime) -> tuple[Grant, ...]:
        """The principal's grants that reach a call in that session and harness at that time, oldest first."""

    async def list(
        self, principal: str | None, *, now: datetime | None = None, after: str | None = None, limit: int = 100
    ) -> Page[Grant]:
        """The principal's grants, newest first; with None those of everybody.

        Those that no longer count are among them until they are swept; with `now`, only those that count then.
        `after` is the `after` of an earlier page; one that no page gave raises ValueError.
        """

    async def remove(
        self, principal: str | None, id: str, *, also: Callable[[Grant], Also] | None = None
    ) -> Grant | None:
        """End the principal's grant with that id, with None whosever it is, and answer it; None: no such grant.

        `also` gives what is done in the same transaction, as in `auth.ports`, for the grant that ends.
        """

    async def sweep(self, now: datetime) -> int:
        """End every grant that has expired by then, or whose token has ended; answers how many."""
