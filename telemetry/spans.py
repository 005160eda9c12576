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
from telemetry.tracing import Attribute, Span, parsed

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

    def start(self, name: str, parent: re.Match[str] | None) -> Span:
        """A span in the trace that a valid `traceparent` names; without one in a trace of its own."""
        if parent is not None:
            return _Recording(self, name).continuing(parent)
        trace = self._ids.generate_trace_id()
        return _Recording(self, name, trace, sampled=trace & TraceIdRatioBased.TRACE_ID_LIMIT < self._bound)

    def send(self, span: _Recording, *, failed: bool) -> None:
        """A span has ended now."""
        ended = ReadableSpan(
            span.name,
            SpanContext(span.trace, self._ids.generate_span_id(), is_remote=False, trace_flags=_SAMPLED),
            span.parent,
            self._resource,
            span.attributes(),
            kind=SpanKind.SERVER,
            status=_FAILURE if failed else _FINE,
            start_time=span.began,
            end_time=time.time_ns(),
            instrumentation_scope=self._scope,
        )
        self._batches.on_end(ended)


class _Recording:
    """A span that is sent when it ends, if its trace is sampled. Which trace that is may change until then."""

    __slots__ = ("_recorder", "_said", "_sampled", "began", "name", "parent", "trace")

    def __init__(self, recorder: Recorder, name: str, trace: int = 0, *, sampled: bool = False) -> None:
        self._recorder = recorder
        self._said: list[tuple[Attribute, str | int]] = []
        self._sampled = sampled
        self.name = name
        self.trace = trace
        self.parent: SpanContext | None = None
        self.began = time.time_ns()

    @property
    def trace_id(self) -> str | None:
        """As in the header `traceparent`."""
        return f"{self.trace:032x}"

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Looked at only where the span is sent."""
        self._said.append((attribute, value))

    def within(self, traceparent: str) -> Span:
        """The same span, in that trace if it is valid."""
        parent = parsed(traceparent)
        return self if parent is None else self.continuing(parent)

    def continuing(self, parent: re.Match[str]) -> _Recording:
        """The same span, in the trace of that parent, which decided whether to sample it."""
        flags = TraceFlags(int(parent["flags"], 16))
        self.trace, self._sampled = int(parent["trace"], 16), flags.sampled
        self.parent = SpanContext(self.trace, int(parent["span"], 16), is_remote=True, trace_flags=flags)
        return self

    def end(self, status: int | None = None) -> None:
        """Sent with the next batch."""
        if not self._sampled:
            return
        if status is not None:
            self.set(Attribute.STATUS, status)
        self._recorder.send(self, failed=status is not None and status >= _FAILED)

    def attributes(self) -> dict[str, str | int]:
        """What was said last of each; text is cut, redacted and escaped."""
        return {one.value: value if isinstance(value, int) else _tidy(value) for one, value in self._said}


def _tidy(text: str) -> str:
    # Letters and digits alone are neither a secret's form nor a control character.
    return text if text.isalnum() and len(text) <= _LONGEST else _tidied(text[: 2 * _LONGEST])


@lru_cache(maxsize=1024)
def _tidied(text: str) -> str:
    return escaped(redact(text))[:_LONGEST]
