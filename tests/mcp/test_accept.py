"""Which reply form a client takes, by its headers."""

import pytest

from mcp.accept import Form, accepted, is_json

BOTH = Form.JSON | Form.EVENTS


@pytest.mark.requirement("HL-5", "HM-5")
@pytest.mark.parametrize(
    ("header", "form"),
    [
        (None, BOTH),
        ("", BOTH),
        ("*/*", BOTH),
        ("application/json", Form.JSON),
        ("application/*", Form.JSON),
        ("text/event-stream", Form.EVENTS),
        ("text/*", Form.EVENTS),
        ("application/json, text/event-stream", BOTH),
        ("TEXT/EVENT-STREAM , Application/JSON;q=0.5", BOTH),
        ("application/json;q=0, text/event-stream", Form.EVENTS),
        ("*/*, application/json;q=0", Form.EVENTS),
        ("*/*, application/json; q=0.000", Form.EVENTS),
        ("application/json;q=0.001", Form.JSON),
        ("text/html", Form.NONE),
        ("application/json-seq", Form.NONE),
        (";;;,,", Form.NONE),
    ],
)
def test_accept(header, form):
    """RFC 9110 section 12.5.1 for the two forms there are."""
    assert accepted(header) == form


@pytest.mark.parametrize(
    ("header", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        ('application/json; charset="utf-8"', True),
        ("application/json; charset=latin-1", False),
        ("text/plain", False),
        ("application/jsonl", False),
        ("", False),
        (None, False),
    ],
)
def test_content_type(header, json):
    """Only JSON in UTF-8; a form or plain text could be sent by any web page (case C02)."""
    assert is_json(header) is json
