"""What a tool is: its data for clients, what it needs from the policy, and the function that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from auth.permissions import Need, Policy
from mcp.exchange import SILENT, Exchange
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolSpec
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import Shell


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything a running tool may use. Cancellation is the cancellation of the task that runs it."""

    workspace: Workspace
    policy: Policy
    limits: Limits
    shell: Shell
    principal: str
    exchange: Exchange = SILENT


#: Takes the arguments exactly as the client sent them.
Normalize = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Run = Callable[[ToolContext, Mapping[str, Any]], Awaitable[ToolResult]]


def as_sent(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The default normalization: nulls count as absent, everything else stays as it is."""
    return {name: value for name, value in arguments.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `normalize` maps tolerated argument shapes to the schema's before they are validated."""

    spec: ToolSpec
    need: Need
    run: Run
    normalize: Normalize = as_sent
