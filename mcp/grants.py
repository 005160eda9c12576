"""Grants: what a person allowed from now on when a rule asked, and the port their store fills.

A grant answers one question for the next time it comes up: may this tool do exactly this? It belongs to one
principal, and every operation goes through that principal. It never outweighs a rule that denies, and never knows one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from auth.ports import Page

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
    command for a shell. Times are UTC and aware.
    """

    id: str
    principal: str
    reach: Reach
    tool: str
    subject: str
    created: datetime


def can_be_kept(subject: str) -> bool:
    """Whether a grant may be made of it: short enough to be read, and text that every database takes."""
    return len(subject) <= MOST_SUBJECT and "\0" not in subject and not any("\ud800" <= c <= "\udfff" for c in subject)


def allowing(grants: Iterable[Grant], tool: str, subject: str) -> Grant | None:
    """The first of the grants that allows that tool exactly that."""
    return next((grant for grant in grants if (grant.tool, grant.subject) == (tool, subject)), None)


class GrantStore(Protocol):
    """Where grants live. All methods are safe to call from any number of tasks at once.

    A grant of a session ends with it, however the session ends.
    """

    async def add(self, grant: Grant, *, most: int = MOST_GRANTS) -> Grant | None:
        """Keep a grant and answer it as it is kept; ends the principal's oldest ones so that at most `most` remain.

        The principal's grant of the same reach, tool and subject stays the one that it was, and ends at the later of
        both times. None when the principal has no such session (any more). Raises ValueError when the id is taken,
        and for a subject that `can_be_kept` refuses.
        """

    async def covering(self, principal: str, session: str | None, harness: str, now: datetime) -> tuple[Grant, ...]:
        """The principal's grants that reach a call in that session and harness at that time, oldest first."""

    async def list(self, principal: str, *, after: str | None = None, limit: int = 100) -> Page[Grant]:
        """The principal's grants, newest first, also those that have expired and were not swept yet.

        `after` is the `after` of an earlier page; one that no page gave raises ValueError.
        """

    async def remove(self, principal: str, id: str) -> bool:
        """End the principal's grant with that id; True when this call ended it."""

    async def sweep(self, now: datetime) -> int:
        """End every grant that has expired by then; answers how many."""
