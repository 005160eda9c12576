"""The tool `write`: a whole file, made or replaced in one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from auth.permissions import Need, decide_path
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.base import Tool, ToolContext
from mcp.tools.results import failed, succeeded
from mcp.workspace.changes import Gate, change
from mcp.workspace.complaints import shown
from mcp.workspace.files import Written, replace, under_lock
from mcp.workspace.locks import Busy
from mcp.workspace.names import valid

NAME: Final = "write"

_DESCRIPTION: Final = (
    "Write a file of the workspace: make it, with its parent folders, or replace all that it holds. It is written in"
    " one step and keeps its mode. Use edit to change parts of a file that exists."
)

_INPUT: Final = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the workspace root, for example src/app.py.",
        },
        "content": {"type": "string", "description": "All that the file shall hold, written as UTF-8."},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file that was written, links followed."},
        "bytes": {"type": "integer", "minimum": 0, "description": "How many bytes it holds now."},
        "created": {"type": "boolean", "description": "Whether the file is new."},
    },
    "required": ["path", "bytes", "created"],
    "additionalProperties": False,
}


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Write `content` to `path`."""
    given: str = arguments["path"]
    try:
        content = arguments["content"].encode()
    except UnicodeEncodeError:
        return failed(Fault("content is not valid Unicode: it contains half of a surrogate pair."), NAME)

    def attempt(gate: Gate) -> ToolResult | Busy:
        outcome = _write(ctx, given, content, gate)
        return outcome if isinstance(outcome, Busy) else _result(given, outcome)

    result = await change(attempt, seconds=ctx.limits.tool_seconds / 2)
    return failed(result, NAME) if isinstance(result, Fault) else result


def _write(ctx: ToolContext, given: str, content: bytes, gate: Gate) -> tuple[str, Written] | Busy | Fault:
    """Write under the lock, in a thread; answers the path that was written."""
    target = ctx.workspace.target(given, lambda path: decide_path(ctx.policy, NAME, Need.WRITE, path))
    if isinstance(target, Fault):
        return target
    with target:
        outcome = under_lock(target, lambda: replace(target, content, gate))
        return (target.path, outcome) if isinstance(outcome, Written) else outcome


def _result(given: str, outcome: tuple[str, Written] | Fault) -> ToolResult:
    """What to tell about a write."""
    if isinstance(outcome, Fault):
        return failed(outcome, NAME)
    path, written = outcome
    size = "1 byte" if written.size == 1 else f"{written.size:,} bytes"
    verb = "Created" if written.created else "Replaced"
    structured = {"path": valid(path), "bytes": written.size, "created": written.created}
    return succeeded(f"{verb} {shown(given)} with {size}.", structured)


def tool(_: Limits) -> Tool:
    """The tool; neither its description nor its schema has a number that is a limit."""
    return Tool(
        spec=ToolSpec(
            name=NAME,
            title="Write a file",
            description=_DESCRIPTION,
            input_schema=_INPUT,
            output_schema=_OUTPUT,
            annotations=ToolAnnotations(read_only=False, destructive=True, idempotent=True, open_world=False),
        ),
        need=Need.WRITE,
        run=run,
    )


TOOL: Final = tool(Limits())
