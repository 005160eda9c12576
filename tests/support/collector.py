"""A collector of OpenTelemetry: receives OTLP over HTTP with Protocol Buffers, and keeps what it gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """`received` holds the path and the content of each export, and `raw` all that came with it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, ExportTraceServiceRequest]] = []
        self.raw: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.raw.append(self.headers.as_bytes() + body)
        self.server.received.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    """One that runs."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def spans(server: Collector) -> list[tuple[Any, dict[str, str]]]:
    """Every span received, with the resource it came from."""
    return [
        (span, {pair.key: pair.value.string_value for pair in group.resource.attributes})
        for _, request in server.received
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def attributes(span: Any) -> dict[str, str | int]:
    """What a span says, by name."""
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}
