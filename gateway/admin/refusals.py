"""What the administrative interface refuses on its own: status and words as one table, beside the one it shares.

What both interfaces refuse is in `mcp.protocol.errors.HttpRefusal`, and is the same here word for word.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException

from auth.ports import Obstacle
from gateway import problems
from gateway.problems import Refusal
from mcp import http

_ADMINISTRATORS_ONLY: Final = (
    "Administration needs a token with the scope admin. Make one with 'superpi token create --principal local:NAME "
    "--kind adm', where the database can be reached."
)


class AdminRefusal(enum.Enum):
    """Status, then a sentence that says what to do."""

    ADMIN_SCOPE_MISSING = (403, _ADMINISTRATORS_ONLY)
    NOT_JSON = (400, "Send the body as JSON.")
    NOT_FOUND = (404, "There is nothing at this path.")
    TOKEN_UNKNOWN = (404, "There is no token with that id. The list of tokens shows those there are.")
    PRINCIPAL_MISSING = (404, "There is no such principal. The list of principals shows those there are.")
    SESSION_ENDED = (
        404,
        "There is no such session: it ended or never was. List the sessions.",
    )
    HARNESS_MISSING = (404, "There is no such harness. The list of harnesses shows those there are.")
    GRANT_UNKNOWN = (404, "There is no grant with that id. The list of grants shows those there are.")
    METHOD_NOT_ALLOWED = (405, "Use one of the methods that the Allow header names.")
    PRINCIPAL_UNKNOWN = (409, "There is no such principal. Make it first.")
    PRINCIPAL_DISABLED = (409, "The principal is disabled. Enable it first.")
    TOKEN_ENDED = (409, "The token is revoked, replaced or expired. Create a new one.")
    INVALID = (422, "Correct what the errors name, and send the request again. Nothing was changed.")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value[0]

    @property
    def message(self) -> str:
        """Words for the client."""
        return self.value[1]


#: What a store's obstacle is to a client.
OBSTACLES: Final[Mapping[Obstacle, AdminRefusal]] = {
    Obstacle.PRINCIPAL_UNKNOWN: AdminRefusal.PRINCIPAL_UNKNOWN,
    Obstacle.PRINCIPAL_DISABLED: AdminRefusal.PRINCIPAL_DISABLED,
    Obstacle.TOKEN_UNKNOWN: AdminRefusal.TOKEN_UNKNOWN,
    Obstacle.TOKEN_ENDED: AdminRefusal.TOKEN_ENDED,
}
#: What FastAPI and Starlette refuse by themselves, by the status they refuse it with.
BY_STATUS: Final[Mapping[int, AdminRefusal]] = {
    404: AdminRefusal.NOT_FOUND,
    405: AdminRefusal.METHOD_NOT_ALLOWED,
}


class Refused(HTTPException):
    """Ends a request with a refusal. An HTTPException, because FastAPI lets those through from wherever they rise."""

    @classmethod
    def of(cls, refused: http.Refused) -> Refused:
        """The same as `/mcp` refuses, in its words."""
        headers = {name.decode(): value.decode() for name, value in refused.headers}
        return cls(refused.refusal, detail=refused.message, headers=headers)

    def __init__(
        self,
        refusal: Refusal,
        *,
        detail: str | None = None,
        errors: tuple[dict[str, str], ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`detail` takes the place of the table's sentence, `errors` names the faults of an input."""
        super().__init__(refusal.status, detail or refusal.message, headers)
        self.refusal = refusal
        self.errors = errors


_HEADERS: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": "What to send instead, by RFC 6750."},
    405: {"Allow": "The methods that the path takes."},
    429: {
        "Retry-After": "Whole seconds after which there is room again.",
        "RateLimit": "The budget that is used up, and when there is room (draft-ietf-httpapi-ratelimit-headers).",
        "RateLimit-Policy": "How much the budget is, and in how many seconds.",
    },
    503: {"Retry-After": "Seconds after which to try again."},
}


def declared(*refusals: Refusal) -> dict[int | str, dict[str, Any]]:
    """These refusals as FastAPI's `responses`, by status: the codes that a client may meet, each with its words."""
    words: dict[int, list[str]] = {}
    for refusal in refusals:
        words.setdefault(refusal.status, []).append(f"`{problems.code(refusal)}`: {refusal.message}")
    return {status: _declared(status, "\n\n".join(lines)) for status, lines in sorted(words.items())}


def _declared(status: int, description: str) -> dict[str, Any]:
    headers = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.get(status, {}).items()
    }
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": description, "content": content} | ({"headers": headers} if headers else {})


def bad_after() -> Refused:
    """The refusal of a place in a list that no page named."""
    fault = {"parameter": "after", "detail": "Send what the page before has as its `after`, or leave it out."}
    return Refused(AdminRefusal.INVALID, errors=(fault,))
