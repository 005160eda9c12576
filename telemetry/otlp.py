"""Spans as the bytes of an OTLP request, in Protocol Buffers (opentelemetry-proto, trace/v1). Pure.

Written by hand, because a dozen fields and two kinds of values are all that is ever used: OpenTelemetry's own encoder
takes ten times as long for a span, which was a third of what a busy server did. A test holds both to one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, StatusCode

Value = str | int

_KIND_SERVER: Final = b"\x30\x02"
_STATUS_ERROR: Final = b"\x7a\x02\x18\x02"
#: The flags of a span: that it is known whether its parent is remote, and whether it is.
_FLAGS_LOCAL: Final = b"\x85\x01\x00\x01\x00\x00"
_FLAGS_REMOTE: Final = b"\x85\x01\x00\x03\x00\x00"


@dataclass(frozen=True, slots=True)
class Source:
    """What all spans of a process share, encoded once: its resource and its scope."""

    resource: bytes
    scope: bytes

    @classmethod
    def of(cls, resource: Mapping[str, Any], name: str, version: str) -> Source:
        """The source for a resource's attributes, and a scope's name and version."""
        known = {key: value if isinstance(value, int) else str(value) for key, value in resource.items()}
        attributes = b"".join(_field(1, _pair(key, value)) for key, value in known.items())
        return cls(_field(1, attributes), _field(1, _text(1, name) + _text(2, version)))

    def request(self, spans: Sequence[ReadableSpan]) -> bytes:
        """An `ExportTraceServiceRequest` with these spans, all of the kind server."""
        scope_spans = self.scope + b"".join([_field(2, _span(span)) for span in spans])
        return _field(1, self.resource + _field(2, scope_spans))


def _span(span: ReadableSpan) -> bytes:
    context, parent = cast("SpanContext", span.context), span.parent
    return b"".join(
        [
            b"\x0a\x10",
            context.trace_id.to_bytes(16, "big"),
            b"\x12\x08",
            context.span_id.to_bytes(8, "big"),
            b"" if parent is None else b"\x22\x08" + parent.span_id.to_bytes(8, "big"),
            _text(5, span.name),
            _KIND_SERVER,
            b"\x39",
            (span.start_time or 0).to_bytes(8, "little"),
            b"\x41",
            (span.end_time or 0).to_bytes(8, "little"),
            *[_attribute(key, value) for key, value in (span.attributes or {}).items()],
            _STATUS_ERROR if span.status.status_code is StatusCode.ERROR else b"\x7a\x00",
            _flags(parent),
        ]
    )


def _flags(parent: SpanContext | None) -> bytes:
    return _FLAGS_REMOTE if parent is not None and parent.is_remote else _FLAGS_LOCAL


@lru_cache(maxsize=1024, typed=True)
def _attribute(key: str, value: Value) -> bytes:
    """An attribute of a span; most come again with the next one."""
    return _field(9, _pair(key, value))


def _pair(key: str, value: Value) -> bytes:
    """A `KeyValue`."""
    held = _text(1, value) if isinstance(value, str) else b"\x18" + _varint(value)
    return _text(1, key) + _field(2, held)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode("utf-8", "replace"))


def _field(number: int, content: bytes) -> bytes:
    """A field of that number, at most 15, whose content has a length."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """A number that is not negative, seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
