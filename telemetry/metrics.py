"""Metrics for Prometheus, in a registry of their own. Knows no request and no caller: labels are closed sets.

Every metric is a row of `METRICS`, which docs/telemetry.md repeats. A label's value comes from a set that is known
at start, and anything else becomes `other`: no caller can make a time series, and none of its words is exported.

Counts are plain numbers here, and prometheus-client's families are made of them at a scrape: its own counters take
locks, which one event loop does not need, and cost ten times as much.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

Kind = Literal["counter", "gauge", "histogram"]

OTHER: Final = "other"

#: Seconds; from a cached answer to an agent run.
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its exported name, kind, labels, and what it says."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


METRICS: Final = (
    Metric("superpi_requests_total", "counter", ("route", "method", "status"), "HTTP requests answered."),
    Metric("superpi_request_seconds", "histogram", ("route",), "Time from a request's headers to its answer's end."),
    Metric(
        "superpi_tool_calls_total",
        "counter",
        ("tool", "outcome"),
        "Tool calls, by how they ended; `invalid` are those that came to no tool.",
    ),
    Metric("superpi_tool_seconds", "histogram", ("tool",), "Time that tool calls took."),
    Metric("superpi_refusals_total", "counter", ("layer",), "Tool calls refused, by the layer that decided."),
    Metric("superpi_authentications_total", "counter", ("result",), "Credentials judged, by the result."),
    Metric("superpi_rate_limited_total", "counter", ("budget",), "Requests that came too fast, by the budget."),
    Metric("superpi_sessions", "gauge", (), "Sessions that this process holds in its cache."),
    Metric("superpi_calls_in_flight", "gauge", (), "Calls that run in this process now."),
    Metric("superpi_audit_buffered", "gauge", (), "Audit rows that wait to be written."),
    Metric("superpi_audit_written_total", "counter", (), "Audit rows written behind."),
    Metric("superpi_audit_dropped_total", "counter", (), "Audit rows lost: the buffer was full, or they did not fit."),
    Metric("superpi_audit_failures_total", "counter", (), "Writes of audit rows that failed and were tried again."),
    Metric("superpi_info", "gauge", ("version",), "Always 1; the label is the version that runs."),
)

#: The labels that are the same in every process; the others are given at start.
METHODS: Final = ("GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD")
STATUSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
OUTCOMES: Final = ("ok", "error", "invalid", "refused", "cancelled")


class Watched(Protocol):
    """An audit trail, as far as it is counted."""

    written: int
    dropped: int
    failures: int

    def __len__(self) -> int: ...


class _Series:
    """The numbers of one metric by labels: a count, or a sum and a count for each bucket.

    `allowed` has a set of values for each label; a value outside it counts as `other`.
    """

    __slots__ = ("_allowed", "_numbers", "cells")

    def __init__(self, metric: Metric, allowed: Mapping[str, frozenset[str]]) -> None:
        self._allowed = tuple(allowed[label] for label in metric.labels)
        self._numbers = len(BUCKETS) + 2 if metric.kind == "histogram" else 1
        self.cells: dict[tuple[str, ...], list[float]] = {}

    def cell(self, labels: tuple[str, ...]) -> list[float]:
        """The numbers under those labels, to be changed in place."""
        cell = self.cells.get(labels)
        return self._known(labels) if cell is None else cell

    def count(self, labels: tuple[str, ...]) -> None:
        """One more."""
        self.cell(labels)[0] += 1

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        """One more that took that long: the sum first, then a count for each bucket and for what is beyond."""
        cell = self.cell(labels)
        cell[0] += seconds
        cell[1 + bisect_left(BUCKETS, seconds)] += 1

    def _known(self, labels: tuple[str, ...]) -> list[float]:
        # Kept under known labels only: a caller's words must not fill this either.
        pairs = zip(labels, self._allowed, strict=True)
        known = tuple(value if value in allowed else OTHER for value, allowed in pairs)
        return self.cells.setdefault(known, [0.0] * self._numbers)


class Metrics:
    """The metrics of one process. Counting never raises and is for one event loop; any thread may scrape.

    `routes`, `tools`, `layers` and `credentials` (results of judging one) and `budgets` are the sets of their labels.
    """

    def __init__(
        self,
        *,
        routes: Iterable[str] = (),
        tools: Iterable[str] = (),
        layers: Iterable[str] = (),
        credentials: Iterable[str] = (),
        budgets: Iterable[str] = (),
        version: str = "",
    ) -> None:
        allowed = {
            "route": frozenset(routes),
            "method": frozenset(METHODS),
            "status": frozenset(STATUSES),
            "tool": frozenset(tools),
            "outcome": frozenset(OUTCOMES),
            "layer": frozenset(layers),
            "result": frozenset(credentials),
            "budget": frozenset(budgets),
            "version": frozenset({version}),
        }
        self._series = {metric.name: _Series(metric, allowed) for metric in METRICS}
        self._asked: dict[str, Callable[[], float]] = {}
        self._requests = self._series["superpi_requests_total"]
        self._request_seconds = self._series["superpi_request_seconds"]
        self._calls = self._series["superpi_tool_calls_total"]
        self._call_seconds = self._series["superpi_tool_seconds"]
        self._refusals = self._series["superpi_refusals_total"]
        self._limited = self._series["superpi_rate_limited_total"]
        self._authentications = self._series["superpi_authentications_total"]
        self._series["superpi_info"].count((version,))

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One HTTP request was answered; `route` is a route's pattern, never a path."""
        self._requests.count((route, method, _CLASSES.get(status // 100, OTHER)))
        self._request_seconds.observe((route,), seconds)

    def tool_call(self, tool: str, outcome: str, seconds: float) -> None:
        """One tool call ended; `outcome` is one of `OUTCOMES`."""
        self._calls.count((tool, outcome))
        self._call_seconds.observe((tool,), seconds)

    def refusal(self, layer: str) -> None:
        """The permission policy, or a limit, refused a call."""
        self._refusals.count((layer,))

    def limited(self, budget: str) -> None:
        """A request came too fast."""
        self._limited.count((budget,))

    def authentication(self, result: str) -> None:
        """A credential was judged."""
        self._authentications.count((result,))

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Have a metric without labels ask for its value at each scrape. It must not block, and not raise."""
        if name not in {metric.name for metric in METRICS if not metric.labels}:
            raise ValueError(f"{name} is no metric without labels")
        self._asked[name] = value

    def watch_audit(self, trail: Watched) -> None:
        """Have the audit metrics ask the trail at each scrape."""
        self.watch("superpi_audit_buffered", lambda: len(trail))
        self.watch("superpi_audit_written_total", lambda: trail.written)
        self.watch("superpi_audit_dropped_total", lambda: trail.dropped)
        self.watch("superpi_audit_failures_total", lambda: trail.failures)

    def exposition(self) -> tuple[str, bytes]:
        """The content type and the body that a scrape is answered with: these metrics and those of the process."""
        # Not needed over stdio, and it costs more than most of the start.
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return CONTENT_TYPE_LATEST, generate_latest(registry)

    def collect(self) -> Iterator[Family]:
        """The families of prometheus-client, in the order of `METRICS`."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for metric in METRICS:
            cells = self._cells(metric.name)
            if metric.kind == "histogram":
                histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
                for labels, (total, *counts) in cells:
                    histogram.add_metric(labels, list(zip(_BOUNDS, accumulate(counts), strict=True)), total)
                yield histogram
            else:
                make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                family = make(metric.name, metric.help, labels=metric.labels)
                for labels, (value,) in cells:
                    family.add_metric(labels, value)
                yield family

    def _cells(self, name: str) -> list[tuple[tuple[str, ...], list[float]]]:
        """The numbers as they are now, copied: a scrape may run in a thread while the event loop counts on."""
        asked = self._asked.get(name)
        return list(self._series[name].cells.items()) if asked is None else [((), [float(asked())])]


_CLASSES: Final[Mapping[int, str]] = dict(enumerate(STATUSES, start=1))
_BOUNDS: Final = (*(repr(bound) for bound in BUCKETS), "+Inf")
