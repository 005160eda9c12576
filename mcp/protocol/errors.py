"""Refusals as data: one table from reason to JSON-RPC code, one to HTTP status.

Reasons of JSON-RPC carry the codes of the specification (requirements section 28). Refusals that are HTTP's own
(no such session, not acceptable, draining, ...) travel with a JSON-RPC body too; their codes lie outside the
range that JSON-RPC reserves, and are the status itself, so that no client takes them for a protocol error.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final


class Reason(enum.Enum):
    """Why a message was refused; `value` is the code on the wire."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    RESOURCE_NOT_FOUND = -32002
    #: The Language Server Protocol's code; the specification has none for a reply that HTTP still owes.
    REQUEST_CANCELLED = -32800
    #: Ours, and the status that HTTP says it with. Nothing was changed: the same request may be sent again.
    UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class Refusal:
    """A JSON-RPC error to be: the reason, words for the client, and optional data."""

    reason: Reason
    message: str
    data: Mapping[str, Any] | None = None


#: Status of a whole HTTP answer that is one refusal, on the handshake revisions. Every other reason is 200: there
#: 404 means a lost session and 400 that the request was no JSON-RPC (ERA-12, section 28).
_STATUS: Final = MappingProxyType({Reason.PARSE_ERROR: 400, Reason.INVALID_REQUEST: 400, Reason.UNAVAILABLE: 503})


def http_status(reason: Reason) -> int:
    """The HTTP status of an answer that consists of this one refusal."""
    return _STATUS.get(reason, 200)


class HttpRefusal(enum.Enum):
    """What the HTTP side refuses before the engine is asked: status, then words that say what to do."""

    SESSION_MISSING = (400, "Send the Mcp-Session-Id header that the answer to initialize carried.")
    SESSION_UNKNOWN = (404, "There is no such session: it ended or never was. Start a new one with initialize.")
    HARNESS_UNKNOWN = (400, "There is no harness with that id.")
    VERSION_UNKNOWN = (400, "The MCP-Protocol-Version header names a version that this server does not speak.")
    ORIGIN_FORBIDDEN = (403, "Requests from this Origin are not allowed. Add it to SUPERPI_ALLOWED_ORIGINS.")
    UNAUTHENTICATED = (401, "Send a valid token as 'Authorization: Bearer <token>'.")
    SCOPE_MISSING = (403, "This token has no mcp scope: it is good for administration alone.")
    HOST_MISSING = (400, "Send exactly one Host header.")
    HOST_FORBIDDEN = (421, "This server does not answer to that Host. Add it to SUPERPI_ALLOWED_HOSTS.")
    METHOD_NOT_ALLOWED = (405, "Use POST for messages and DELETE to end a session; no stream is opened on GET.")
    NOT_ACCEPTABLE = (406, "Accept application/json or text/event-stream.")
    BODY_TOO_LARGE = (413, "The request body is larger than this server takes.")
    MEDIA_TYPE = (415, "Send the body as application/json, UTF-8, without Content-Encoding.")
    BODY_TIMEOUT = (408, "The request body did not arrive in time.")
    INTERNAL = (500, "The server failed to answer; its log has the request id.")
    UNAVAILABLE = (503, "The server cannot answer now. Try again.")
    DRAINING = (503, "The server is shutting down. Try again.")

    @property
    def status(self) -> int:
        """The HTTP status, which is also the code of the JSON-RPC body."""
        return self.value[0]

    @property
    def message(self) -> str:
        """Words for the client."""
        return self.value[1]
