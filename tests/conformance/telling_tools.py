"""The suite's tools that tell their client something before they answer, and those that change what there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp.protocol.content import ToolResult
from mcp.protocol.questions import Elicit
from mcp.protocol.state import LogLevel
from mcp.tools.base import Tool, ToolContext
from tests.conformance.making import said, tool

#: The pause that the suite prescribes between two notes, in seconds.
_PAUSE: Final = 0.05
_CONFIRM: Final = Elicit("Go on?", {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})


async def _log(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    await context.exchange.log(LogLevel.INFO, "Tool execution started")
    await asyncio.sleep(_PAUSE)
    await context.exchange.log(LogLevel.INFO, "Tool processing data")
    await asyncio.sleep(_PAUSE)
    await context.exchange.log(LogLevel.INFO, "Tool execution completed")
    return said("Logged three times.")


async def _progress(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    for done in (0, 50, 100):
        await context.exchange.progress(done, 100)
        await asyncio.sleep(_PAUSE)
    return said("Told of progress three times.")


async def _stream(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Says something and then asks: on a stateless revision the question must not be a request on the stream."""
    await context.exchange.log(LogLevel.INFO, "About to ask")
    answers = await context.exchange.ask({"confirm": _CONFIRM})
    return said(f"Asked, and got {answers['confirm']}.")


def _changing(change: Callable[[], None]) -> Callable[[ToolContext, Mapping[str, Any]], Any]:
    async def run(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        change()
        return said("Changed.")

    return run


def telling_tools(change_tools: Callable[[], None], change_prompts: Callable[[], None]) -> tuple[Tool, ...]:
    """The tools; the arguments change the list of tools and that of prompts."""
    return (
        tool("test_tool_with_logging", "Logs three times.", _log),
        tool("test_logging_tool", "Logs three times.", _log),
        tool("test_tool_with_progress", "Tells of progress three times.", _progress),
        tool("test_reconnection", "Logs three times.", _log),
        tool("test_streaming_elicitation", "Logs, then asks.", _stream),
        tool("test_trigger_tool_change", "Changes the list of tools.", _changing(change_tools)),
        tool("test_trigger_prompt_change", "Changes the list of prompts.", _changing(change_prompts)),
    )
