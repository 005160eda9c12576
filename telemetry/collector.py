"""The way of spans to a collector: OTLP over HTTP, from the thread of OpenTelemetry's batches. Knows no span.

The variables of OpenTelemetry's specification for OTLP exporters count: headers, certificates, compression.
"""

from __future__ import annotations

import gzip
import logging
import os
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.util.re import parse_env_headers

from telemetry.otlp import Source

_log: Final = logging.getLogger("superpi.tracing")

#: Answers after which the same request may succeed (OTLP specification, "Retryable Response Codes").
_AGAIN: Final = frozenset({429, 502, 503, 504})
#: Seconds before the second try; twice as many before each further one.
_PAUSE: Final = 0.25
#: Seconds between two complaints about the collector.
_REMIND: Final = 60.0


class Collector(SpanExporter):
    """Sends batches to `url`, each within `seconds`, its tries included. What cannot be sent is dropped."""

    def __init__(self, url: str, source: Source, seconds: float) -> None:
        self._url = url
        self._source = source
        self._seconds = seconds
        self._closed = threading.Event()
        self._complained = -_REMIND
        self._gzip = _setting("COMPRESSION") == "gzip"
        self._headers = {
            "content-type": "application/x-protobuf",
            **parse_env_headers(_setting("HEADERS"), liberal=True),
        }
        if self._gzip:
            self._headers["content-encoding"] = "gzip"
        self._opener: OpenerDirector | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them; FAILURE when they were not taken in time."""
        body = self._source.request(spans)
        body = gzip.compress(body) if self._gzip else body
        deadline, pause = time.monotonic() + self._seconds, _PAUSE
        while (failure := self._post(body, deadline)) is not None:
            why, may_try_again = failure
            late = time.monotonic() + pause >= deadline
            if not may_try_again or late or self._closed.wait(pause):
                self._complain(why, len(spans))
                return SpanExportResult.FAILURE
            pause *= 2
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Try nothing again from now on."""
        self._closed.set()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - their signature
        """Nothing is held here."""
        return True

    def _post(self, body: bytes, deadline: float) -> tuple[str, bool] | None:
        """Why it was not taken, and whether another try may help; None when it was."""
        request = Request(self._url, body, self._headers, method="POST")  # noqa: S310 - the operator's own setting
        try:
            # Certificates are read here: that they cannot be is no reason not to serve.
            self._opener = self._opener or build_opener(HTTPSHandler(context=_context()))
            with self._opener.open(request, timeout=max(deadline - time.monotonic(), 0.001)):
                return None
        except HTTPError as error:
            with error:
                return f"it answered {error.code}", error.code in _AGAIN
        except (URLError, OSError) as error:
            return str(getattr(error, "reason", error)), True

    def _complain(self, why: str, count: int) -> None:
        now = time.monotonic()
        if now - self._complained >= _REMIND:
            self._complained = now
            _log.warning("%d spans were dropped, the collector cannot be used: %s", count, why)


def _setting(name: str) -> str:
    """A variable of the exporters' specification; that of traces alone comes first."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=_setting("CERTIFICATE") or None)
    if certificate := _setting("CLIENT_CERTIFICATE"):
        context.load_cert_chain(certificate, _setting("CLIENT_KEY") or None)
    return context
