"""What a scrape shows, that labels are closed sets, and that counting is what Prometheus reads."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.store.memory_audit import MemoryAudit
from telemetry.audit import AuditRecord, AuditTrail
from telemetry.metrics import METRICS, OTHER, Metrics

ROOT = Path(__file__).parents[2]


@pytest.fixture
def metrics():
    return Metrics(routes=["/mcp"], tools=["read"], layers=["rule"], credentials=["ok"], version="1.2.3")


def scraped(metrics):
    """Every sample as Prometheus reads it, by name and labels as in the text."""
    _, body = metrics.exposition()
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def ours(metrics):
    return {name: value for name, value in scraped(metrics).items() if name.startswith("superpi_")}


def test_a_new_process_shows_its_version_and_nothing_counted(metrics):
    assert ours(metrics) == {"superpi_info version=1.2.3": 1}


def test_a_request_is_counted_by_route_method_and_class_of_status(metrics):
    metrics.request("/mcp", "POST", 200, 0.02)
    metrics.request("/mcp", "POST", 204, 700)
    found = ours(metrics)
    assert found["superpi_requests_total method=POST route=/mcp status=2xx"] == 2
    assert found["superpi_request_seconds_sum route=/mcp"] == 700.02
    assert found["superpi_request_seconds_count route=/mcp"] == 2
    buckets = {name: value for name, value in found.items() if "_bucket" in name}
    assert buckets["superpi_request_seconds_bucket le=0.01 route=/mcp"] == 0
    assert buckets["superpi_request_seconds_bucket le=0.025 route=/mcp"] == 1
    assert buckets["superpi_request_seconds_bucket le=600.0 route=/mcp"] == 1
    assert buckets["superpi_request_seconds_bucket le=+Inf route=/mcp"] == 2


def test_calls_refusals_and_credentials_are_counted(metrics):
    metrics.tool_call("read", "ok", 0.5)
    metrics.refusal("rule")
    metrics.authentication("ok")
    found = ours(metrics)
    assert found["superpi_tool_calls_total outcome=ok tool=read"] == 1
    assert found["superpi_tool_seconds_sum tool=read"] == 0.5
    assert found["superpi_refusals_total layer=rule"] == 1
    assert found["superpi_authentications_total result=ok"] == 1


@given(st.lists(st.tuples(st.text(), st.text(), st.text(), st.integers(-1000, 1000)), max_size=10))
def test_no_words_of_a_caller_become_a_label_or_take_memory(calls):
    metrics = Metrics(routes=["/mcp"], tools=["read"])
    for route, method, word, status in calls:
        metrics.request(route + "?", method + "?", status, 0.1)
        metrics.tool_call(word + "?", word + "?", 0.1)
        metrics.refusal(word + "?")
        metrics.authentication(word + "?")
    if calls:
        assert ours(metrics)[f"superpi_tool_calls_total outcome={OTHER} tool={OTHER}"] == len(calls)
    cells = [labels for series in metrics._series.values() for labels in series.cells]
    known = {OTHER, "1xx", "2xx", "3xx", "4xx", "5xx", ""}
    assert {value for labels in cells for value in labels} <= known
    assert len(cells) <= 13


def test_a_gauge_asks_at_each_scrape(metrics):
    values = iter([3, 5])
    metrics.watch("superpi_sessions", lambda: next(values))
    assert [ours(metrics)["superpi_sessions"] for _ in range(2)] == [3, 5]


@pytest.mark.parametrize("name", ["superpi_refusals_total", "superpi_unknown"])
def test_only_a_metric_without_labels_can_be_asked_for(metrics, name):
    with pytest.raises(ValueError, match=name):
        metrics.watch(name, lambda: 1)


async def test_the_audit_trail_is_counted(metrics):
    trail = AuditTrail(MemoryAudit(), capacity=2)
    metrics.watch_audit(trail)
    record = AuditRecord("r", "local:alice", "tools/call", "read", "allowed")
    for _ in range(3):
        trail.record(record)
    names = ("buffered", "written_total", "dropped_total", "failures_total")
    assert [ours(metrics)[f"superpi_audit_{name}"] for name in names] == [2, 0, 1, 0]
    await trail.flush()
    assert [ours(metrics)[f"superpi_audit_{name}"] for name in names] == [0, 2, 1, 0]


def test_two_processes_in_one_do_not_share_numbers(metrics):
    metrics.refusal("rule")
    assert "superpi_refusals_total layer=rule" not in ours(Metrics(layers=["rule"]))


def test_the_process_itself_is_shown_too(metrics):
    assert scraped(metrics)["process_open_fds"] > 0


def test_a_scrape_names_every_metric_with_its_kind_and_help(metrics):
    content_type, body = metrics.exposition()
    assert content_type.startswith("text/plain; version=")
    lines = body.decode().splitlines()
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}" in lines
        assert f"# TYPE {metric.name} {metric.kind}" in lines


def test_names_follow_the_conventions_of_prometheus():
    assert [m.name for m in METRICS if (m.kind == "counter") != m.name.endswith("_total")] == []
    assert [m.name for m in METRICS if (m.kind == "histogram") != m.name.endswith("_seconds")] == []
    assert len({m.name for m in METRICS}) == len(METRICS)


def test_counting_loads_no_client_library():
    script = (
        "import sys; from telemetry.metrics import Metrics; Metrics(tools=['read']).tool_call('read', 'ok', 1);"
        "print('prometheus_client' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
