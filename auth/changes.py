"""What changed elsewhere, so that caches stop trusting what they hold: the port that a store fills.

A change is written in the transaction that makes it and heard by every process, this one included. Changes
carry ids, never values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from auth.caller import Caller, Transport


class Subject(enum.StrEnum):
    """What kind of thing changed."""

    TOKEN = "token"  # noqa: S105 - a kind of thing, not a secret
    PRINCIPAL = "principal"
    SESSION = "session"
    #: A conversation got an entry; the id is the conversation's.
    CONVERSATION = "conversation"
    #: A principal has another conversation; the id is the principal's.
    CONVERSATIONS = "conversations"
    #: A question to a client was answered; the id is the question's.
    QUESTION = "question"
    #: What a session subscribes to; the id is the session's.
    SUBSCRIPTION = "subscription"
    #: A call was withdrawn; the id names the session and the request, as whoever runs calls writes it.
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is no longer what a cache may hold of it."""

    subject: Subject
    id: str


def doubts(change: Change | None, caller: Caller) -> bool:
    """Whether a change, None for any, leaves it in doubt that the caller may still be let in.

    Over stdio nobody showed a credential, so none is doubted.
    """
    if caller.transport is Transport.STDIO:
        return False
    match change:
        case None:
            return True
        case Change(Subject.TOKEN, id):
            # Once a token was made, callers without one may not be let in any more.
            return caller.token in {None, id}
        case Change(Subject.PRINCIPAL, id):
            return caller.principal == id
        case _:
            return False


#: Takes a change; None means that changes may have been missed, so that everything held is in doubt.
Hear = Callable[[Change | None], None]


class ChangeFeed(Protocol):
    """Changes as they are heard. For use on one event loop."""

    def silent_seconds(self) -> float:
        """For how long it has been unknown whether there were changes; 0 while the feed is in touch."""

    def listen(self, hear: Hear) -> None:
        """Have `hear` called, on the event loop, for every change from now on."""
