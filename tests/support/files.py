"""What tests of the workspace tools share: a context over a folder, and a call as the server makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from auth.permissions import Allow, Cap, Decision, Layer, Mode, Policy, Rule
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.tools.base import Tool, ToolContext
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import unavailable

TOOLS: Final = frozenset({"read", "write", "edit", "bash", "grep", "find", "ls", "harness_task"})


def allow(path: str) -> Decision:
    """A permit for everything."""
    return Allow()


def context(
    root: Path,
    *extra: Path,
    mode: Mode = Mode.FULL,
    rules: tuple[Rule, ...] = (),
    limits: Limits | None = None,
) -> ToolContext:
    """A context for the tools in a workspace, without a shell."""
    return ToolContext(
        workspace=Workspace(root, extra),
        policy=Policy("test", TOOLS, (Cap(Layer.HARNESS, mode),), rules),
        limits=limits or Limits(),
        shell=unavailable("tests", "no shell"),
        principal="anonymous",
    )


async def call(tool: Tool, ctx: ToolContext, **arguments: Any) -> ToolResult:
    """Call a tool as the server does: normalized, held against its schema, its result held against its schema too."""
    normalized = tool.normalize(arguments)
    problems = problems_with(tool.spec.input_schema, normalized)
    assert problems == [], problems
    result = await tool.run(ctx, normalized)
    if result.is_error:
        assert result.structured is None
    elif tool.spec.output_schema is not None:
        assert problems_with(tool.spec.output_schema, result.structured) == []
    return result


async def said(tool: Tool, ctx: ToolContext, **arguments: Any) -> str:
    """The text of a call that must succeed."""
    result = await call(tool, ctx, **arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(tool: Tool, ctx: ToolContext, **arguments: Any) -> str:
    """The text of a call that must fail."""
    result = await call(tool, ctx, **arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: ToolResult) -> str:
    """All text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def problems_with(schema: Mapping[str, Any], value: object) -> list[str]:
    """What JSON Schema 2020-12 finds wrong with a value."""
    return [error.message for error in jsonschema_rs.Draft202012Validator(dict(schema)).iter_errors(value)]


def tree(root: Path) -> dict[str, bytes | str]:
    """Everything in a folder but the server's own: contents of files, `->` and the aim of links, `/` for folders."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name == ".superpi" or name.startswith(".superpi/"):
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "/"
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
