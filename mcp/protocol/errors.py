"""Refusals as data: one table from reason and era to JSON-RPC code and HTTP status.

Reasons of JSON-RPC carry the codes of the specification (requirements section 28). Refusals that are HTTP's own
(no such session, not acceptable, draining, ...) travel with a JSON-RPC body too; their codes lie outside the
range that JSON-RPC reserves, and are the status itself, so that no client takes them for a protocol error.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.protocol.revisions import STATELESS, Revision


@dataclass(frozen=True, slots=True)
class Face:
    """How a reason shows on the wire: the JSON-RPC code, and the HTTP status of an answer that is this one refusal."""

    code: int
    status: int


def _both(code: int, handshake: int, stateless: int) -> tuple[Face, Face]:
    return Face(code, handshake), Face(code, stateless)


class Reason(enum.Enum):
    """Why a message was refused: one row a reason, one column an era (`HANDSHAKE`, `STATELESS`).

    On the handshake revisions 404 means a lost session and 400 that the request was no JSON-RPC, so all else is 200;
    the stateless ones order a status (ERA-12, HM-14, section 28).
    """

    PARSE_ERROR = _both(-32700, 400, 400)
    INVALID_REQUEST = _both(-32600, 400, 400)
    METHOD_NOT_FOUND = _both(-32601, 200, 404)
    INVALID_PARAMS = _both(-32602, 200, 200)
    #: What every stateless request has to say of itself is missing or malformed (MOD-1).
    META_INVALID = _both(-32602, 200, 400)
    INTERNAL_ERROR = _both(-32603, 200, 200)
    RESOURCE_NOT_FOUND = (Face(-32002, 200), Face(-32602, 200))
    HEADER_MISMATCH = _both(-32020, 400, 400)
    CAPABILITY_MISSING = (Face(-32602, 200), Face(-32021, 400))
    VERSION_UNSUPPORTED = _both(-32022, 400, 400)
    #: The Language Server Protocol's code; the specification has none for a reply that HTTP still owes.
    REQUEST_CANCELLED = _both(-32800, 200, 200)
    #: Ours, and the status that HTTP says it with, beside a challenge that names the scope (AU-11).
    SCOPE_MISSING = _both(403, 403, 403)
    #: Ours, and the status that HTTP says it with. Nothing was changed: the same request may be sent again.
    UNAVAILABLE = _both(503, 503, 503)

    def face(self, revision: Revision | None) -> Face:
        """How it shows on that revision; before one is agreed on, as on the handshake revisions."""
        return self.value[1 if revision in STATELESS else 0]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A JSON-RPC error to be: the reason, words for the client, and optional data."""

    reason: Reason
    message: str
    data: Mapping[str, Any] | None = None


class HttpRefusal(enum.Enum):
    """What the HTTP side refuses before the engine is asked: status, then words that say what to do.

    Whoever refuses may know more (a bound, the names there are), and says it in a sentence behind these.
    """

    SESSION_MISSING = (400, "Send the Mcp-Session-Id header that the answer to initialize carried.")
    SESSION_UNKNOWN = (404, "There is no such session: it ended or never was. Start a new one with initialize.")
    HARNESS_UNKNOWN = (400, "There is no harness with that id.")
    HARNESS_NOT_ONE = (400, "Give one harness in the query, as ?harness=<id>, or none.")
    VERSION_UNKNOWN = (400, "The MCP-Protocol-Version header names a version that this server does not speak.")
    ORIGIN_FORBIDDEN = (403, "Requests from this Origin are not allowed. Add it to SUPERPI_ALLOWED_ORIGINS.")
    UNAUTHENTICATED = (401, "Send a valid token as 'Authorization: Bearer <token>'.")
    SCOPE_MISSING = (403, "This token has no mcp scope: it is good for administration alone.")
    #: What the listener refuses before there is a request.
    NOT_HTTP = (400, "This is no request of HTTP/1.1.")
    HEADERS_TIMEOUT = (408, "The headers of the request did not arrive in time.")
    HEADERS_TOO_LARGE = (431, "The headers of the request are larger, or more, than this server takes.")
    HOST_MISSING = (400, "Send exactly one Host header.")
    HOST_FORBIDDEN = (421, "This server does not answer to that Host. Add it to SUPERPI_ALLOWED_HOSTS.")
    METHOD_NOT_ALLOWED = (405, "Use POST for messages and DELETE to end a session; no stream is opened on GET.")
    NOT_ACCEPTABLE = (406, "Accept application/json or text/event-stream.")
    EVENTS_NEEDED = (406, "Accept text/event-stream: what you listen for comes as a stream.")
    BODY_TOO_LARGE = (413, "The request body is larger than this server takes.")
    MEDIA_TYPE = (415, "Send the body as application/json, UTF-8, without Content-Encoding.")
    TOO_MANY_REQUESTS = (429, "Too many requests at once; this one was not looked at.")
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
