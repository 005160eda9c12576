"""What a running call may say to its client before the reply, and ask of it: the port that transports fill.

A call says and asks the same way whatever the revision. On a handshake revision `ask` waits for the client; on a
stateless one the call ends with `InputNeeded`, and runs again from its beginning with the answers once the client
sends the request anew. So a call asks before it changes anything, and asks for the same under the same key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from mcp.protocol.notes import Note
from mcp.protocol.questions import MODES_SINCE, Question, Reply, lacking
from mcp.protocol.state import LogLevel


class InputNeeded(Exception):  # noqa: N818 - a way out of the call, not a fault
    """The call cannot go on before the client has answered these; whoever performs the call catches it."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__("the client has to answer first")
        self.questions = questions


class AnswerUnfit(Exception):  # noqa: N818 - a fault of the client's
    """The client sent an answer that is none; `message` says what is wrong with it, and what one looks like.

    Only where the answers come with the request: to ask again could go on for ever.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotDeclared(Exception):  # noqa: N818 - a state of the client
    """The client did not declare what the question needs; `required` is that, as `ClientCapabilities` (MOD-8)."""

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__("the client did not declare a capability that the question needs")
        self.required = required


class Exchange(Protocol):
    """One request on its way to its reply. For use on the event loop, while the call runs."""

    async def tell(self, note: Note) -> None:
        """Tell the client something, if it wants to hear it."""

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the call is, if the client asked to hear; what does not grow is left out (PRG-1)."""

    async def log(self, level: LogLevel, data: Any, logger: str = "superpi") -> None:
        """Tell the client something, if it wants to hear of that level. Never secrets or paths of the server (LG-4)."""

    def wants_progress(self) -> bool:
        """Whether the client asked to hear how far the call is, and can be told."""

    def can_ask(self, question: Question) -> bool:
        """Whether the client can be asked this: it declared it, and there is a way to reach it."""

    async def ask(self, questions: Mapping[str, Question], *, volunteered: bool = True) -> Mapping[str, Reply]:
        """The answers, by key. Raises InputNeeded, AnswerUnfit, and NotDeclared where `can_ask` is False.

        `volunteered` is whether an answer counts that came before anybody asked.
        """


class Silent:
    """The exchange of a call that nobody listens to."""

    async def tell(self, note: Note) -> None:
        """Says nothing."""

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Says nothing."""

    async def log(self, level: LogLevel, data: Any, logger: str = "superpi") -> None:
        """Says nothing."""

    def wants_progress(self) -> bool:
        """Never."""
        return False

    def can_ask(self, question: Question) -> bool:
        """Never."""
        del question
        return False

    async def ask(
        self,
        questions: Mapping[str, Question],
        *,
        volunteered: bool = True,  # noqa: ARG002 - nobody is asked, and nobody has answered
    ) -> Mapping[str, Reply]:
        """Raises NotDeclared."""
        first = next(iter(questions.values()))
        raise NotDeclared(lacking(first, {}, MODES_SINCE) or {})


#: For calls whose client hears nothing but the reply.
SILENT: Final[Exchange] = Silent()
