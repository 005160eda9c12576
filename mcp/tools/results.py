"""Tool results from what the work came to: a Fault, or text with data and images beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcp.faults import Fault
from mcp.protocol.content import Image, Text, ToolResult
from mcp.tools.refusal import refusal_result


def failed(fault: Fault, tool: str) -> ToolResult:
    """An error result: the fault's words, or the refusal when the policy said no. Never structured (TL-6)."""
    if fault.deny is None:
        return ToolResult((Text(fault.message),), is_error=True)
    return refusal_result(tool, fault.deny)


def succeeded(
    text: str,
    structured: Mapping[str, Any] | None = None,
    images: Iterable[Image] = (),
) -> ToolResult:
    """A success: the text first, then images; `structured` conforms to the tool's output schema."""
    return ToolResult((Text(text), *images), structured)
