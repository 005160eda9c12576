"""Results made of faults and texts."""

from __future__ import annotations

import pytest

from auth.permissions import Deny, Layer, Mode
from mcp.faults import Fault
from mcp.protocol.content import Image, Text, ToolResult
from mcp.tools.refusal import refusal_result
from mcp.tools.results import failed, succeeded


@pytest.mark.requirement("TL-14", "TL-6")
def test_a_fault_becomes_its_words_and_nothing_structured() -> None:
    assert failed(Fault("x does not exist."), "read") == ToolResult((Text("x does not exist."),), is_error=True)


def test_a_fault_of_the_policy_becomes_the_refusal() -> None:
    deny = Deny("no", Layer.RULE, Mode.FULL)
    assert failed(Fault("no", deny), "read") == refusal_result("read", deny)


def test_a_success_has_its_text_first() -> None:
    image = Image("aGk=", "image/png")
    assert succeeded("done", {"a": 1}, images=[image]) == ToolResult((Text("done"), image), {"a": 1})
