"""The way to a collector: what it is sent, when it is tried again, and when that ends."""

import gzip
import logging
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from telemetry.collector import Collector
from telemetry.otlp import Source

SOURCE = Source.of({"service.name": "superpi"}, "superpi", "1")
EMPTY = SOURCE.request([])


class Answering(BaseHTTPRequestHandler):
    """Answers with the statuses it was given, one a request, and then with 200."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append((dict(self.headers.items()), body))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if statuses else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy of whoever runs the tests."""
    monkeypatch.setenv("NO_PROXY", "*")


@contextmanager
def answering(*statuses):
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.taken, server.statuses = [], list(statuses)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("statuses", "result", "requests"),
    [
        pytest.param([], SpanExportResult.SUCCESS, 1, id="taken at once"),
        pytest.param([503], SpanExportResult.SUCCESS, 2, id="taken at the second try"),
        pytest.param([429, 502], SpanExportResult.SUCCESS, 3, id="taken at the third try"),
        pytest.param([400], SpanExportResult.FAILURE, 1, id="refused for good"),
        pytest.param([307], SpanExportResult.FAILURE, 1, id="sent elsewhere, where it does not go"),
    ],
)
def test_a_batch_is_sent_again_only_where_that_may_help(statuses, result, requests):
    with answering(*statuses) as (server, url):
        assert Collector(url, SOURCE, 20).export([]) is result
        assert [body for _, body in server.taken] == [EMPTY] * requests


def test_the_tries_end_when_the_time_is_over(caplog):
    with answering(*[503] * 100) as (server, url):
        began = time.monotonic()
        assert Collector(url, SOURCE, 0.6).export([]) is SpanExportResult.FAILURE
        assert (time.monotonic() - began < 5, 1 < len(server.taken) < 5) == (True, True)
    assert [record.getMessage() for record in caplog.records] == [
        "0 spans were dropped, the collector cannot be used: it answered 503"
    ]


def test_one_complaint_stands_for_many(caplog):
    caplog.set_level(logging.WARNING)
    with answering(*[400] * 3) as (_, url):
        collector = Collector(url, SOURCE, 5)
        assert [collector.export([]) for _ in range(3)] == [SpanExportResult.FAILURE] * 3
    assert len(caplog.records) == 1


def test_a_shutdown_ends_the_tries():
    with answering(*[503] * 100) as (server, url):
        collector = Collector(url, SOURCE, 60)
        collector.shutdown()
        assert collector.export([]) is SpanExportResult.FAILURE
        assert len(server.taken) == 1


def test_the_variables_of_the_specification_count(monkeypatch):
    """And those for traces alone come before those for every signal."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=all,x-other=b%20c")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with answering() as (server, url):
        Collector(url, SOURCE, 5).export([])
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=traces")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none")
        Collector(url, SOURCE, 5).export([])
    [(first, packed), (second, plain)] = server.taken
    named = [{key.lower(): value for key, value in headers.items()} for headers in (first, second)]
    assert (named[0]["x-key"], named[0]["x-other"], named[0]["content-encoding"]) == ("all", "b c", "gzip")
    assert (named[1]["x-key"], "x-other" in named[1], "content-encoding" in named[1]) == ("traces", False, False)
    assert [headers["content-type"] for headers in named] == ["application/x-protobuf"] * 2
    assert (gzip.decompress(packed), plain) == (EMPTY, EMPTY)


def test_certificates_that_cannot_be_read_cost_spans_and_not_the_server(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "missing.pem"))
    assert Collector("https://127.0.0.1:9/v1/traces", SOURCE, 0.1).export([]) is SpanExportResult.FAILURE
    assert "No such file" in caplog.text
