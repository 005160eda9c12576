"""Spans that are recorded and sent: the part of tracing that loads OpenTelemetry. Knows no request.

A span is kept as plain values until it ends, and only then becomes one of OpenTelemetry's, on its way to the exporter:
recording into theirs from the start takes ten times as long. Sampling is what their `ParentBased(TraceIdRatioBased)`
does, identifiers are from their generator.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from telemetry.logs import escaped
from telemetry.redaction import redact
from telemetry.tracing import Attribute, Silent, Span

#: Characters kept of an attribute's text.
_LONGEST: Final = 256
_FAILED: Final = 500
_FINE: Final = Status(StatusCode.UNSET)
_FAILURE: Final = Status(StatusCode.ERROR)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class Recorder:
    """Begins spans and sends those that ended, in batches from a thread of its own.

    `url` is where they go, `ratio` the share of traces begun here that are sampled, `seconds` bounds one export.
    """

    def __init__(self, url: str, version: str, ratio: float, seconds: float) -> None:
        exporter = OTLPSpanExporter(url, timeout=seconds)
        self._batches = BatchSpanProcessor(exporter)
        self._bound = TraceIdRatioBased.get_bound_for_rate(ratio)
        self._resource = Resource.create({"service.name": "superpi", "service.version": version})
        self._scope = InstrumentationScope("superpi", version)
        self._ids = RandomIdGenerator()
        #: Sends what is left; blocks, for up to 30 s.
        self.shutdown: Callable[[], object] = self._batches.shutdown
        #: Ends the tries of an export under way.
        self.abandon: Callable[[], object] = exporter.shutdown

    def start(self, name: str, header: re.Match[str] | None) -> Span:
        """A span in the trace that a `traceparent` header tells, where it is valid; else in a trace of its own."""
        parent = None if header is None else _parent(header)
        if parent is None:
            trace = self._ids.generate_trace_id()
            sampled = trace & TraceIdRatioBased.TRACE_ID_LIMIT < self._bound
        else:
            trace, sampled = parent.trace_id, parent.trace_flags.sampled
        return _Recording(self, name, trace, parent) if sampled else Silent(f"{trace:032x}")

    def send(self, span: _Recording, *, failed: bool) -> None:
        """A span has ended now."""
        ended = ReadableSpan(
            span.name,
            SpanContext(span.trace, self._ids.generate_span_id(), is_remote=False, trace_flags=_SAMPLED),
            span.parent,
            self._resource,
            span.attributes,
            kind=SpanKind.SERVER,
            status=_FAILURE if failed else _FINE,
            start_time=span.began,
            end_time=time.time_ns(),
            instrumentation_scope=self._scope,
        )
        self._batches.on_end(ended)


class _Recording:
    """A span that is sent when it ends."""

    __slots__ = ("_recorder", "attributes", "began", "name", "parent", "trace")

    def __init__(self, recorder: Recorder, name: str, trace: int, parent: SpanContext | None) -> None:
        self._recorder = recorder
        self.name = name
        self.trace = trace
        self.parent = parent
        self.attributes: dict[str, str | int] = {}
        self.began = time.time_ns()

    @property
    def trace_id(self) -> str | None:
        """As in the header `traceparent`."""
        return f"{self.trace:032x}"

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Text is cut, redacted and escaped."""
        self.attributes[attribute.value] = value if isinstance(value, int) else _tidy(value)

    def end(self, status: int | None = None) -> None:
        """Sent with the next batch."""
        if status is not None:
            self.attributes[Attribute.STATUS.value] = status
        self._recorder.send(self, failed=status is not None and status >= _FAILED)


def _parent(header: re.Match[str]) -> SpanContext | None:
    _, trace, span, flags, _ = header.groups()
    context = SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
    return context if context.is_valid else None


def _tidy(text: str) -> str:
    # Letters and digits alone are neither a secret's form nor a control character.
    return text if text.isalnum() and len(text) <= _LONGEST else _tidied(text[: 2 * _LONGEST])


@lru_cache(maxsize=1024)
def _tidied(text: str) -> str:
    return escaped(redact(text))[:_LONGEST]
