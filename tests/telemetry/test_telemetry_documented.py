"""docs/telemetry.md has every metric, span attribute and audit field, and none that does not exist."""

import re
from pathlib import Path

import pytest

from telemetry.audit import CAPACITY, COLUMNS, INTERVAL, PATIENCE
from telemetry.metrics import METRICS, OUTCOMES
from telemetry.redaction import SHORTEST, redact
from telemetry.tracing import ATTRIBUTES, EXPORT_SECONDS, SHUTDOWN_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text("utf-8")


def section(heading):
    """The text below a heading, up to the next one of its rank or higher."""
    rank = heading.split()[0]
    rest = PAGE.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{len(rank)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text):
    """The cells of every row of the tables in a text, without the headings."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if cells[0].startswith("`")]


def test_every_metric_is_documented_with_its_kind_labels_and_help():
    documented = [cells for cells in rows(section("## Metrics")) if len(cells) == 4]
    labels = [", ".join(f"`{label}`" for label in metric.labels) or "none" for metric in METRICS]
    expected = [[f"`{m.name}`", m.kind, label, m.help] for m, label in zip(METRICS, labels, strict=True)]
    assert documented == expected


def test_every_label_is_documented():
    documented = {cells[0].strip("`"): cells[1] for cells in rows(section("## Metrics")) if len(cells) == 2}
    assert set(documented) == {label for metric in METRICS for label in metric.labels}
    assert documented["outcome"] == ", ".join(f"`{outcome}`" for outcome in OUTCOMES) + ", and `other`."


def test_every_attribute_of_a_span_is_documented():
    assert rows(section("## Spans")) == [[f"`{key.value}`", meaning] for key, meaning in ATTRIBUTES.items()]


def test_every_field_of_the_audit_log_is_documented():
    documented = [cells[0].strip("`") for cells in rows(section("## Audit log"))]
    assert set(documented) == {"seq", "at", *COLUMNS}
    assert len(documented) == len(set(documented))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("spi_pat_abc", "spi_pat_***", id="a token"),
        pytest.param("Bearer abc", "Bearer ***", id="a credential"),
        pytest.param("postgresql://user:secret@host", "postgresql://user:***@host", id="a password in a URL"),
        pytest.param("https://secret@host", "https://***@host", id="a user in a URL"),
        pytest.param("password=secret", "password=***", id="a password"),
        pytest.param("/mcp?secret=1", "/mcp?***", id="a query"),
    ],
)
def test_what_the_page_says_of_redaction_is_so(text, masked):
    assert redact(text) == masked
    assert f"`{masked}`" in section("## Logs")


def test_the_numbers_on_the_page_are_those_of_the_code():
    assert f"up to {CAPACITY:,} rows wait" in PAGE
    assert f"waits up to {PATIENCE:g} s for room" in PAGE
    assert f"fewer than {SHORTEST} characters" in PAGE
    assert f"given up after {EXPORT_SECONDS:g} s" in PAGE
    assert (INTERVAL < 1, EXPORT_SECONDS == SHUTDOWN_SECONDS) == (True, True)
