"""One OpenTelemetry span a request, with children for what it came to, sent over OTLP when an endpoint is configured.

Knows no request.

Without an endpoint nothing of OpenTelemetry is loaded, and a span is an object that does nothing. No provider is
made global: what else in the process speaks OpenTelemetry neither sees these spans nor adds to them. Spans hold
what `ATTRIBUTES` lists, and never arguments, results, queries, credentials or the id of a session.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
import re
import threading
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from telemetry.spans import Recorder

#: Seconds for one export, its tries included, and for the last one at shutdown.
EXPORT_SECONDS: Final = 2.0
SHUTDOWN_SECONDS: Final = 2.0

#: W3C Trace Context, section 3.2: neither id is all zeros, and later versions than 00 may add fields.
_TRACEPARENT: Final = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})-"
    r"(?P<flags>[0-9a-f]{2})(-.*)?"
)
_SIGNAL_PATH: Final = "/v1/traces"


class Attribute(enum.StrEnum):
    """What a span may say, by its name in the semantic conventions."""

    METHOD = "http.request.method"
    ROUTE = "http.route"
    STATUS = "http.response.status_code"
    MCP_METHOD = "mcp.method.name"
    MCP_REVISION = "mcp.protocol.version"
    MCP_SESSION = "mcp.session.id"
    OPERATION = "gen_ai.operation.name"
    TOOL = "gen_ai.tool.name"
    ERROR = "error.type"
    DATABASE = "db.system.name"
    STATEMENT = "db.operation.name"
    TABLE = "db.collection.name"
    REQUEST_ID = "superpi.request_id"
    DECISION = "superpi.decision"
    LAYER = "superpi.refusal.layer"


#: What each attribute means; docs/telemetry.md repeats it.
ATTRIBUTES: Final = {
    Attribute.METHOD: "Method of the request.",
    Attribute.ROUTE: "Pattern of the route, never the path.",
    Attribute.STATUS: "Status of the answer.",
    Attribute.MCP_METHOD: "JSON-RPC method.",
    Attribute.MCP_REVISION: "Revision of the protocol that was spoken.",
    Attribute.MCP_SESSION: "The first 16 hexadecimal digits of the SHA-256 of the session's id.",
    Attribute.OPERATION: "`execute_tool` for a tool call.",
    Attribute.TOOL: "Name of the tool.",
    Attribute.ERROR: "Why it failed, as a word: the status from 500 on, `tool_error`, `refused`, or a class of errors.",
    Attribute.DATABASE: "`sqlite` or `postgresql`.",
    Attribute.STATEMENT: "What a statement does: `SELECT`, `INSERT` and so on.",
    Attribute.TABLE: "The table that it is done to.",
    Attribute.REQUEST_ID: "The same as in the logs, the audit log and the header `X-Request-Id`.",
    Attribute.DECISION: "`allowed`, `refused` or `failed`, as in the audit log.",
    Attribute.LAYER: "The layer of the permission policy that refused.",
}


class Kind(enum.Enum):
    """What a span stands for."""

    #: A request that came in.
    SERVER = enum.auto()
    #: Something asked of another system.
    CLIENT = enum.auto()
    #: Work of our own.
    INTERNAL = enum.auto()


class Span(Protocol):
    """One request, from `Tracing.start` to `end`, or a part of it."""

    @property
    def trace_id(self) -> str | None:
        """The trace it belongs to, 32 hexadecimal digits; None when there is none."""

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Say something about the request."""

    def fail(self, word: str) -> None:
        """Say that it failed, and why in a word that is none of the caller's."""

    def child(self, name: str, kind: Kind) -> Span:
        """A part of it that begins now. One that has not ended before the whole does is not told of."""

    def within(self, traceparent: str) -> Span:
        """The span to go on with once a `traceparent` is known that counts more than what it was begun with.

        One that is not valid changes nothing. Whoever began a span ends that one.
        """

    def end(self, status: int | None = None) -> None:
        """The request is over; from 500 on its status makes the span an error."""


class Silent:
    """A span that nobody sees; it may know the trace that its caller named."""

    __slots__ = ("trace_id",)

    def __init__(self, trace_id: str | None = None) -> None:
        self.trace_id = trace_id

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Nothing."""

    def fail(self, word: str) -> None:
        """Nothing."""

    def child(self, name: str, kind: Kind) -> Span:  # noqa: ARG002 - nobody sees it
        """The same."""
        return self

    def within(self, traceparent: str) -> Span:
        """One that knows the trace, if that is valid."""
        trace = trace_id(traceparent)
        return self if trace is None else Silent(trace)

    def end(self, status: int | None = None) -> None:
        """Nothing."""


_SILENT: Final = Silent()
_current: Final[ContextVar[Span]] = ContextVar("superpi_span", default=_SILENT)


def current() -> Span:
    """The innermost span that the running code is a part of; one that does nothing where there is none."""
    return _current.get()


class Part:
    """The code under `with` is a part of the current span, under a name; what it raises makes that part fail."""

    __slots__ = ("_kind", "_name", "_span", "_token")

    def __init__(self, name: str, kind: Kind = Kind.INTERNAL) -> None:
        self._name = name
        self._kind = kind
        self._token: Token[Span] | None = None

    def __enter__(self) -> Span:
        whole = _current.get()
        self._span = whole.child(self._name, self._kind)
        if self._span is not whole:
            self._token = _current.set(self._span)
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is None:
            return
        _current.reset(self._token)
        if kind is not None:
            self._span.fail(kind.__name__)
        self._span.end()


def parsed(traceparent: str) -> re.Match[str] | None:
    """The parts `trace`, `span` and `flags` of a `traceparent`; None where it is not valid."""
    return _TRACEPARENT.fullmatch(traceparent)


def trace_id(traceparent: str) -> str | None:
    """The trace that a `traceparent` names, where it is valid."""
    parts = parsed(traceparent)
    return None if parts is None else parts["trace"]


class Tracing:
    """Starts spans. `endpoint` is a collector's URL; its path is `/v1/traces` unless it names one."""

    def __init__(self, endpoint: str | None = None, *, version: str = "", ratio: float = 1.0) -> None:
        """`ratio` is the share of traces that are sampled here; a caller that names a trace has decided for it."""
        self._recorder: Recorder | None = None
        if endpoint is not None:
            # OpenTelemetry takes longer to load than the rest of the program, and only who has a collector needs it.
            from telemetry.spans import Recorder

            self._recorder = Recorder(_signal_url(endpoint), version, ratio, EXPORT_SECONDS)

    @property
    def is_on(self) -> bool:
        """Whether spans go anywhere."""
        return self._recorder is not None

    def start(self, name: str, traceparent: str | None = None) -> Span:
        """A span with that name (`POST /mcp`), in the trace that the header of that name tells, if it is valid."""
        parent = None if traceparent is None else parsed(traceparent)
        if self._recorder is not None:
            span = self._recorder.start(name, parent)
            # A request is served by a task of its own, whose context ends with it.
            _current.set(span)
            return span
        return _SILENT if parent is None else Silent(parent["trace"])

    async def close(self, seconds: float = SHUTDOWN_SECONDS) -> bool:
        """Send what is left; False when that was not done in time. The thread that still tries ends with the process.

        OpenTelemetry's own shutdown takes up to 30 s and cannot be told otherwise, and a thread of the loop's
        executor would be waited for.
        """
        if self._recorder is None:
            return True
        recorder, self._recorder = self._recorder, None
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def work() -> None:
            recorder.shutdown()
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=work, name="superpi-tracing-shutdown", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                await done.wait()
        except TimeoutError:
            recorder.abandon()
            return False
        return True


def session_label(id: str) -> str:
    """What stands for a session where it is shown: it tells sessions apart, and none can be used by who reads it."""
    return hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:16]


#: The same for spans, of which each call has one.
cached_session_label: Final = lru_cache(maxsize=1024)(session_label)


def _signal_url(endpoint: str) -> str:
    """As the specification of OTLP exporters says of a base URL."""
    parts = urlsplit(endpoint)
    return endpoint if parts.path not in {"", "/"} else parts._replace(path=_SIGNAL_PATH).geturl()
