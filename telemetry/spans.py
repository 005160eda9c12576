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
from telemetry.tracing import Attribute, Kind, Silent, Span, parsed

#: Characters kept of an attribute's text.
_LONGEST: Final = 256
_FAILED: Final = 500
_FINE: Final = Status(StatusCode.UNSET)
_FAILURE: Final = Status(StatusCode.ERROR)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_KINDS: Final = {kind: SpanKind[kind.name] for kind in Kind}
#: Parts of one span that are told of; a long run could have any number.
_MOST_PARTS: Final = 1000
_UNTOLD: Final = Silent()


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
        if parent is None:
            id = self._ids.generate_trace_id()
            trace = _Trace(id, is_sampled=id & TraceIdRatioBased.TRACE_ID_LIMIT < self._bound)
        else:
            trace = _Trace(0, is_sampled=False)
            trace.join(parent)
        return _Recording(self, name, trace)

    def send(self, span: _Part, parent: SpanContext | None) -> None:
        """A span has ended, and what of its parts has: they are in the trace that it turned out to be in."""
        context = SpanContext(span.trace.id, self._ids.generate_span_id(), is_remote=False, trace_flags=_SAMPLED)
        ended = ReadableSpan(
            span.name,
            context,
            parent,
            self._resource,
            span.attributes(),
            kind=_KINDS[span.kind],
            status=_FAILURE if span.failed else _FINE,
            start_time=span.began,
            end_time=span.ended,
            instrumentation_scope=self._scope,
        )
        self._batches.on_end(ended)
        for part in span.parts:
            if part.ended:
                self.send(part, context)


class _Trace:
    """What a span shares with its parts. Which trace it is may change until the span ends."""

    __slots__ = ("id", "is_over", "is_sampled", "parent", "room")

    def __init__(self, id: int, *, is_sampled: bool) -> None:
        self.id = id
        self.is_sampled = is_sampled
        self.parent: SpanContext | None = None
        self.room = _MOST_PARTS
        self.is_over = False

    def join(self, parent: re.Match[str]) -> None:
        """It is that of this parent, which decided whether to sample it."""
        flags = TraceFlags(int(parent["flags"], 16))
        self.id, self.is_sampled = int(parent["trace"], 16), flags.sampled
        self.parent = SpanContext(self.id, int(parent["span"], 16), is_remote=True, trace_flags=flags)


class _Part:
    """A part of a span: kept with the whole, sent when that ends. Parts may be of several threads."""

    __slots__ = ("_said", "began", "ended", "failed", "kind", "name", "parts", "trace")

    def __init__(self, name: str, kind: Kind, trace: _Trace) -> None:
        self._said: list[tuple[Attribute, str | int]] = []
        self.name = name
        self.kind = kind
        self.trace = trace
        self.parts: list[_Part] = []
        self.failed = False
        self.began = time.time_ns()
        #: Zero until then.
        self.ended = 0

    @property
    def trace_id(self) -> str | None:
        """As in the header `traceparent`."""
        return f"{self.trace.id:032x}"

    def set(self, attribute: Attribute, value: str | int) -> None:
        """Looked at only where the span is sent."""
        self._said.append((attribute, value))

    def fail(self, word: str) -> None:
        """As `error.type`."""
        self.failed = True
        self._said.append((Attribute.ERROR, word))

    def child(self, name: str, kind: Kind) -> Span:
        """A part of it; one that does nothing where it would not be sent."""
        trace = self.trace
        if trace.is_over or trace.room <= 0:
            return _UNTOLD
        trace.room -= 1
        part = _Part(name, kind, trace)
        self.parts.append(part)
        return part

    def within(self, traceparent: str) -> Span:
        """The same span, in that trace if it is valid."""
        parent = parsed(traceparent)
        if parent is not None:
            self.trace.join(parent)
        return self

    def end(self, status: int | None = None) -> None:
        """It is over. From 500 on the status is why it failed."""
        self.ended = time.time_ns()
        if status is not None:
            self.set(Attribute.STATUS, status)
            if status >= _FAILED:
                self.fail(str(status))

    def attributes(self) -> dict[str, str | int]:
        """What was said last of each; text is cut, redacted and escaped."""
        return {one.value: value if isinstance(value, int) else _tidy(value) for one, value in self._said}


class _Recording(_Part):
    """The span of a request, sent when it ends if its trace is sampled."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder, name: str, trace: _Trace) -> None:
        super().__init__(name, Kind.SERVER, trace)
        self._recorder = recorder

    def end(self, status: int | None = None) -> None:
        """Sent with the next batch, with those of its parts that are over."""
        super().end(status)
        self.trace.is_over = True
        if self.trace.is_sampled:
            self._recorder.send(self, self.trace.parent)


def _tidy(text: str) -> str:
    # Letters and digits alone are neither a secret's form nor a control character.
    return text if text.isalnum() and len(text) <= _LONGEST else _tidied(text[: 2 * _LONGEST])


@lru_cache(maxsize=1024)
def _tidied(text: str) -> str:
    return escaped(redact(text))[:_LONGEST]
