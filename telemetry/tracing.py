"""One OpenTelemetry span a request, sent over OTLP when an endpoint is configured. Knows no request.

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
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from telemetry.logs import escaped
from telemetry.redaction import redact

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan

#: Seconds for one export, its tries included, and for the last one at shutdown.
EXPORT_SECONDS: Final = 2.0
SHUTDOWN_SECONDS: Final = 2.0

#: Characters kept of an attribute's text.
_LONGEST: Final = 256
#: W3C Trace Context, section 3.2; later versions may add fields.
_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SIGNAL_PATH: Final = "/v1/traces"
_FAILED: Final = 500


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
    Attribute.ERROR: "Why the request or the call failed, as a word.",
    Attribute.REQUEST_ID: "The same as in the logs, the audit log and the header `X-Request-Id`.",
    Attribute.DECISION: "`allowed`, `refused` or `failed`, as in the audit log.",
    Attribute.LAYER: "The layer of the permission policy that refused.",
}


class Span(Protocol):
    """One request, from `Tracing.start` to `end`."""

    @property
    def trace_id(self) -> str | None:
        """The trace it belongs to, 32 hexadecimal digits; None when there is none."""

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Say something about the request."""

    def end(self, status: int | None = None) -> None:
        """The request is over; from 500 on its status makes the span an error."""


class Silent:
    """A span that nobody sees; it may know the trace that its caller named."""

    __slots__ = ("trace_id",)

    def __init__(self, trace_id: str | None = None) -> None:
        self.trace_id = trace_id

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Nothing."""

    def end(self, status: int | None = None) -> None:
        """Nothing."""


_SILENT: Final = Silent()


class _Recording:
    """A span of OpenTelemetry's."""

    __slots__ = ("_error", "_span")

    def __init__(self, span: OtelSpan, error: Any) -> None:
        self._span = span
        self._error = error

    @property
    def trace_id(self) -> str | None:
        """As in the header `traceparent`."""
        return f"{self._span.get_span_context().trace_id:032x}"

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Text is cut, redacted and escaped."""
        kept = value if isinstance(value, int) else _tidy(value[: 2 * _LONGEST])
        self._span.set_attribute(attribute.value, kept)

    def end(self, status: int | None = None) -> None:
        """Sent with the next batch."""
        if status is not None:
            self._span.set_attribute(Attribute.STATUS.value, status)
            if status >= _FAILED:
                self._span.set_status(self._error)
        self._span.end()


@lru_cache(maxsize=1024)
def _tidy(text: str) -> str:
    return escaped(redact(text))[:_LONGEST]


class Tracing:
    """Starts spans. `endpoint` is a collector's URL; its path is `/v1/traces` unless it names one."""

    def __init__(self, endpoint: str | None = None, *, version: str = "", ratio: float = 1.0) -> None:
        """`ratio` is the share of traces that are sampled here; a caller that names a trace has decided for it."""
        self._start: Callable[[str, Context], OtelSpan] | None = None
        self._shutdown: Callable[[], object] | None = None
        if endpoint is not None:
            self._open(_signal_url(endpoint), version, ratio)

    @property
    def is_on(self) -> bool:
        """Whether spans go anywhere."""
        return self._start is not None

    def start(self, name: str, traceparent: str | None = None) -> Span:
        """A span with that name (`POST /mcp`), in the trace that the header of that name tells, if it is valid."""
        parent = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
        if self._start is None:
            return _SILENT if parent is None else Silent(parent[2])
        return _Recording(self._start(name, self._context(parent)), self._error)

    async def close(self, seconds: float = SHUTDOWN_SECONDS) -> bool:
        """Send what is left; False when that was not done in time. The thread that still tries ends with the process.

        OpenTelemetry's own shutdown takes up to 30 s and cannot be told otherwise, and a thread of the loop's
        executor would be waited for.
        """
        if self._shutdown is None:
            return True
        shutdown, self._shutdown, self._start = self._shutdown, None, None
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def work() -> None:
            shutdown()
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=work, name="superpi-tracing-shutdown", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                await done.wait()
        except TimeoutError:
            self._abandon()
            return False
        return True

    def _open(self, url: str, version: str, ratio: float) -> None:
        from opentelemetry.context import Context
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        from opentelemetry.trace import SpanKind, Status, StatusCode

        exporter = OTLPSpanExporter(url, timeout=EXPORT_SECONDS)
        provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=Resource.create({"service.name": "superpi", "service.version": version}),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("superpi", version)
        self._nothing = Context()
        self._error = Status(StatusCode.ERROR)
        self._start = lambda name, context: tracer.start_span(name, context, SpanKind.SERVER)
        self._shutdown = provider.shutdown
        self._abandon: Callable[[], object] = exporter.shutdown

    def _context(self, parent: re.Match[str] | None) -> Context:
        """The context of the caller's span; of an invalid one, as of none, a trace of its own."""
        if parent is None or parent[1] == "ff":
            return self._nothing
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        _, trace, span, flags, _ = parent.groups()
        context = SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
        return set_span_in_context(NonRecordingSpan(context), self._nothing) if context.is_valid else self._nothing


@lru_cache(maxsize=1024)
def session_label(id: str) -> str:
    """What stands for a session in a span: it tells sessions apart, and none can be used by who reads it."""
    return hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:16]


def _signal_url(endpoint: str) -> str:
    """As the specification of OTLP exporters says of a base URL."""
    parts = urlsplit(endpoint)
    return endpoint if parts.path not in {"", "/"} else parts._replace(path=_SIGNAL_PATH).geturl()
