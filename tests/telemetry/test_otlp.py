"""The bytes of spans: the same message as OpenTelemetry's own encoder makes of them."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from telemetry.otlp import Source

RESOURCE = Resource({"service.name": "superpi", "process.pid": 70_000, "note": "ä"})
SCOPE = InstrumentationScope("superpi", "1.2.3")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
times = st.integers(0, 2**63 - 1)
contexts = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    is_remote=st.booleans(),
    trace_flags=st.builds(TraceFlags, st.integers(0, 1)),
)
spans = st.builds(
    ReadableSpan,
    texts,
    contexts,
    st.none() | contexts,
    st.just(RESOURCE),
    st.dictionaries(texts, texts | st.integers(0, 2**63 - 1), max_size=6),
    kind=st.just(SpanKind.SERVER),
    status=st.sampled_from([Status(StatusCode.UNSET), Status(StatusCode.ERROR)]),
    start_time=times,
    end_time=times,
    instrumentation_scope=st.just(SCOPE),
)


@given(st.lists(spans, min_size=1, max_size=4))
def test_the_message_is_the_one_that_opentelemetry_makes(batch):
    ours = Source.of(RESOURCE.attributes, "superpi", "1.2.3").request(batch)
    assert ExportTraceServiceRequest.FromString(ours) == encode_spans(batch)
