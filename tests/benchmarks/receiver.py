"""A collector: takes spans over OTLP and HTTP, and counts them by the path that they are sent to."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """The collector of one benchmark; each sender has a path of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.spans: Counter[str] = Counter()

    def endpoint(self, name: str) -> str:
        """The URL that a sender is given."""
        return f"http://127.0.0.1:{self._port}/{name}"


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A collector that takes spans until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            sent = ExportTraceServiceRequest.FromString(body)
            count = sum(len(scope.spans) for resource in sent.resource_spans for scope in resource.scope_spans)
            receiver.spans[self.path.strip("/")] += count
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
