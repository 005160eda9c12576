"""A refusal as an RFC 9457 problem: what every path but `/mcp` answers with. Knows no route and no refusal by name."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

from mcp.http import Headers, Send
from mcp.protocol import codec

MEDIA_TYPE: Final = "application/problem+json"


class Refusal(Protocol):
    """A row of a table of refusals; both tables are enumerations, and `name` is what a program goes by."""

    @property
    def name(self) -> str:
        """In upper case."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def message(self) -> str:
        """A sentence for the client."""


def code(refusal: Refusal) -> str:
    """What a program tells refusals of one status apart by."""
    return refusal.name.lower()


def body(
    refusal: Refusal, request_id: str, *, detail: str | None = None, errors: Sequence[dict[str, str]] = ()
) -> bytes:
    """The problem as JSON. `detail` takes the place of the table's sentence, `errors` names the faults of an input."""
    problem: dict[str, Any] = {
        # The status says what kind of problem it is, and `code` which one (RFC 9457, section 4.2.1).
        "type": "about:blank",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": detail or refusal.message,
        "code": code(refusal),
        "request_id": request_id,
    }
    return codec.encode(problem | ({"errors": errors} if errors else {}))


async def send(send: Send, refusal: Refusal, request_id: str, headers: Headers = ()) -> None:
    """Answer with the problem."""
    content = body(refusal, request_id)
    own = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(content)).encode()), *headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": own})
    await send({"type": "http.response.body", "body": content})
