"""Spans as a real collector receives them, and what tracing costs when there is none or it is down."""

import asyncio
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from telemetry.tracing import ATTRIBUTES, Attribute, Kind, Part, Tracing, current, session_label
from tests.support.collector import attributes, collector, spans

ROOT = Path(__file__).parents[2]
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
OTHER = "1" * 32


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy of whoever runs the tests."""
    monkeypatch.setenv("NO_PROXY", "*")


async def sent(traceparent=None, status=200, said=(), later=None, **options):
    """The one span of one request, and what the tracing said its trace was; `later` is known once something is said."""
    with collector() as server:
        tracing = Tracing(server.url, version="1.2.3", **options)
        span = tracing.start("POST /mcp", traceparent)
        for attribute, value in said:
            span.set(attribute, value)
        if later is not None:
            assert span.within(later) is span
        span.end(status)
        assert await tracing.close(30)
        return spans(server), span.trace_id


async def test_a_request_is_one_span_with_its_attributes():
    said = [(Attribute.MCP_METHOD, "tools/call"), (Attribute.TOOL, "read"), (Attribute.REQUEST_ID, "r1")]
    [(span, resource)], trace_id = await sent(said=said)
    assert attributes(span) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "read",
        "superpi.request_id": "r1",
        "http.response.status_code": 200,
    }
    assert (span.name, span.kind, span.status.code) == ("POST /mcp", span.SPAN_KIND_SERVER, 0)
    assert (span.trace_id.hex(), span.parent_span_id) == (trace_id, b"")
    assert (resource["service.name"], resource["service.version"]) == ("superpi", "1.2.3")
    assert span.end_time_unix_nano >= span.start_time_unix_nano > 0


async def test_a_request_belongs_to_the_trace_that_its_caller_names():
    [(span, _)], trace_id = await sent(f"00-{TRACE}-{PARENT}-01")
    assert (span.trace_id.hex(), span.parent_span_id.hex(), trace_id) == (TRACE, PARENT, TRACE)


@pytest.mark.parametrize(
    "traceparent",
    [
        pytest.param("", id="empty"),
        pytest.param("rubbish\r\n", id="rubbish"),
        pytest.param(f"ff-{TRACE}-{PARENT}-01", id="the version that never is"),
        pytest.param(f"00-{'0' * 32}-{PARENT}-01", id="no trace"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="no parent"),
        pytest.param(f"00-{TRACE.upper()}-{PARENT}-01", id="capitals"),
        pytest.param(f"00-{TRACE}-{PARENT}-01" * 1000, id="far too long"),
        pytest.param(f"00-{TRACE}-{PARENT}-01-more", id="more than its version has"),
    ],
)
async def test_a_traceparent_that_is_not_valid_changes_nothing(traceparent):
    """One in the header begins a trace of its own, as without; one that comes later is passed over."""
    [(span, _)], trace_id = await sent(traceparent, later=traceparent)
    assert (span.parent_span_id, span.trace_id.hex()) == (b"", trace_id)
    assert trace_id != TRACE
    [(span, _)], trace_id = await sent(f"00-{TRACE}-{PARENT}-01", later=traceparent)
    assert (span.trace_id.hex(), span.parent_span_id.hex(), trace_id) == (TRACE, PARENT, TRACE)
    assert Tracing().start("POST /mcp", f"00-{TRACE}-{PARENT}-01").within(traceparent).trace_id == TRACE


async def test_a_version_to_come_may_say_more():
    [(span, _)], _ = await sent(f"cc-{TRACE}-{PARENT}-01-more")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)


@pytest.mark.requirement("CT-5")
@pytest.mark.parametrize(
    ("begun", "ratio"),
    [
        pytest.param(None, 1.0, id="one of its own"),
        pytest.param(None, 0.0, id="one of its own that is not sampled"),
        pytest.param(f"00-{OTHER}-{PARENT[::-1]}-01", 1.0, id="another"),
        pytest.param(f"00-{OTHER}-{PARENT[::-1]}-00", 1.0, id="another that is not sampled"),
    ],
)
async def test_a_span_goes_over_into_a_trace_that_is_known_later(begun, ratio):
    """With all that was said of it before."""
    said = [(Attribute.REQUEST_ID, "r1")]
    [(span, _)], trace_id = await sent(begun, said=said, later=f"00-{TRACE}-{PARENT}-01", ratio=ratio)
    assert (span.trace_id.hex(), span.parent_span_id.hex(), trace_id) == (TRACE, PARENT, TRACE)
    assert attributes(span) == {"superpi.request_id": "r1", "http.response.status_code": 200}


async def test_the_later_trace_decides_whether_it_is_sampled():
    for begun in (None, f"00-{OTHER}-{PARENT}-01"):
        assert await sent(begun, later=f"00-{TRACE}-{PARENT}-00") == ([], TRACE)


async def test_a_caller_that_does_not_sample_its_trace_is_not_sampled_here():
    found, trace_id = await sent(f"00-{TRACE}-{PARENT}-00")
    assert (found, trace_id) == ([], TRACE)


async def test_a_ratio_of_nothing_sends_nothing():
    found, trace_id = await sent(ratio=0.0)
    assert found == []
    assert re.fullmatch("[0-9a-f]{32}", trace_id)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (404, 0), (500, 2), (503, 2)])
async def test_only_a_failure_of_the_server_is_an_error(status, code):
    [(span, _)], _ = await sent(status=status)
    assert (span.status.code, attributes(span)["http.response.status_code"]) == (code, status)


async def test_text_in_a_span_is_redacted_escaped_and_cut():
    [(span, _)], _ = await sent(said=[(Attribute.TOOL, "spi_pat_abc\n"), (Attribute.ERROR, "x" * 9999)])
    assert (attributes(span)["gen_ai.tool.name"], len(attributes(span)["error.type"])) == ("spi_pat_***\\n", 256)


@pytest.mark.parametrize(
    ("suffix", "path"),
    [("", "/v1/traces"), ("/", "/v1/traces"), ("/otel/v1/traces", "/otel/v1/traces")],
)
async def test_the_endpoint_is_a_base_or_a_whole_url(suffix, path):
    with collector() as server:
        tracing = Tracing(server.url + suffix)
        tracing.start("GET /readyz").end()
        assert await tracing.close(30)
        assert [where for where, _ in server.received] == [path]


def a_port_that_is_closed(stack):
    del stack
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def a_port_that_never_answers(stack):
    listener = socket.create_server(("127.0.0.1", 0))
    stack.append(listener)
    return listener.getsockname()[1]


@pytest.mark.parametrize("port_of", [a_port_that_is_closed, a_port_that_never_answers])
async def test_closing_is_bounded_when_the_collector_is_down(port_of, caplog):
    """OpenTelemetry alone takes 6 s and more."""
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    stack = []
    tracing = Tracing(f"http://127.0.0.1:{port_of(stack)}")
    for _ in range(2000):
        tracing.start("POST /mcp").end(200)
    began = time.monotonic()
    await tracing.close(0.5)
    took = time.monotonic() - began
    for listener in stack:
        listener.close()
    for thread in threading.enumerate():
        if thread.name == "superpi-tracing-shutdown":
            thread.join(30)
    assert took < 5


async def test_a_span_that_ends_after_the_close_is_lost_without_a_word(caplog):
    with collector() as server:
        tracing = Tracing(server.url)
        late = tracing.start("POST /mcp")
        assert await tracing.close(30)
        late.end(200)
        tracing.start("POST /mcp").end(200)
        assert await tracing.close(30)
    assert (spans(server), [record for record in caplog.records if record.levelname != "INFO"]) == ([], [])


async def test_without_an_endpoint_a_span_does_nothing_but_know_its_callers_trace():
    tracing = Tracing()
    assert not tracing.is_on
    for traceparent, trace_id in ((None, None), ("rubbish", None), (f"00-{TRACE}-{PARENT}-00", TRACE)):
        span = tracing.start("POST /mcp", traceparent)
        span.set(Attribute.TOOL, "read")
        span.end(200)
        assert (span.trace_id, span.within(f"00-{OTHER}-{PARENT}-01").trace_id) == (trace_id, OTHER)
    assert tracing.start("POST /mcp").trace_id is None
    assert await tracing.close()


def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded():
    script = (
        "import asyncio, sys; from telemetry.tracing import Tracing; t = Tracing();"
        "t.start('x').end(200); asyncio.run(t.close());"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_no_provider_becomes_global():
    script = (
        "from telemetry.tracing import Tracing; t = Tracing('http://127.0.0.1:9');"
        "from opentelemetry.trace import get_tracer_provider; print(type(get_tracer_provider()).__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "ProxyTracerProvider\n"


def test_a_session_is_told_by_a_label_that_is_not_its_id():
    assert session_label("a" * 43) != session_label("b" * 43)
    assert re.fullmatch("[0-9a-f]{16}", session_label("a" * 43))


def test_every_attribute_has_a_meaning():
    assert set(ATTRIBUTES) == set(Attribute)


async def test_spans_of_requests_at_once_are_apart():
    with collector() as server:
        tracing = Tracing(server.url)

        async def request(n):
            span = tracing.start("POST /mcp")
            await asyncio.sleep(0)
            span.set(Attribute.REQUEST_ID, f"r{n}")
            await asyncio.sleep(0)
            span.end(200)
            return span.trace_id, f"r{n}"

        expected = set(await asyncio.gather(*(request(n) for n in range(20))))
        assert await tracing.close(30)
        found = {(span.trace_id.hex(), attributes(span)["superpi.request_id"]) for span, _ in spans(server)}
    assert found == expected


async def test_parts_are_sent_with_the_whole_and_in_its_trace():
    """Also where that turned out after they had ended. What is not over by then is left out, with its parts."""
    with collector() as server:
        tracing = Tracing(server.url)
        whole = tracing.start("POST /mcp")
        with Part("execute_tool read") as tool:
            assert current() is tool
            with pytest.raises(KeyError), Part("SELECT session", Kind.CLIENT) as statement:
                raise KeyError
        assert (current(), statement.trace_id) == (whole, whole.trace_id)
        whole.child("never over", Kind.INTERNAL).child("within", Kind.INTERNAL).end()
        whole.within(f"00-{TRACE}-{PARENT}-01").end(200)
        late = whole.child("after all", Kind.INTERNAL)
        late.end()
        assert await tracing.close()
        found = {span.name: span for span, _ in spans(server)}
    assert list(found) == ["POST /mcp", "execute_tool read", "SELECT session"]
    request, tool, statement = found.values()
    assert {span.trace_id.hex() for span in found.values()} == {TRACE}
    assert [tool.parent_span_id, statement.parent_span_id] == [request.span_id, tool.span_id]
    assert [span.kind for span in found.values()] == [2, 1, 3]
    assert (attributes(statement)["error.type"], statement.status.code, tool.status.code) == ("KeyError", 2, 0)


async def test_a_span_has_a_bounded_number_of_parts():
    """A run of hours could have any number; those that came first are told of."""
    with collector() as server:
        tracing = Tracing(server.url)
        whole = tracing.start("POST /mcp")
        for number in range(1500):
            whole.child(str(number), Kind.INTERNAL).end()
        whole.end(200)
        assert await tracing.close()
        assert len(spans(server)) == 1001


def test_without_an_endpoint_nothing_is_a_part():
    with Part("execute_tool read") as span:
        assert span is current()
    span.fail("x")
