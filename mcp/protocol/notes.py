"""What a server tells a client without being asked: notes as values.

A note says what happened, never how a revision spells it or to whom it goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp.protocol.state import LogLevel


@dataclass(frozen=True, slots=True)
class Filter:
    """Which changes a client wants to hear of: of the three lists, and of the resources with these URIs (SUB-3)."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class PromptsChanged:
    """The list of prompts is another one."""


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The list of tools is another one."""


@dataclass(frozen=True, slots=True)
class ResourcesChanged:
    """The list of resources is another one."""


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """The resource with that URI reads differently."""

    uri: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The part of a filter that will be honoured; the first note of its subscription (SUB-4)."""

    filter: Filter


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is: `done` of `total`, None where that is unknown, in a unit of the call's own (PRG-1)."""

    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """Something worth a client's log: `data` is any JSON value, `logger` names the part that says it (LG-1)."""

    level: LogLevel
    data: Any
    logger: str = "superpi"


#: What changed for whoever listens; equal changes are one.
Changed = PromptsChanged | ToolsChanged | ResourcesChanged | ResourceUpdated

#: Everything a client is told.
Note = Changed | Acknowledged | Progress | Log


def wants(filter: Filter, changed: Changed) -> bool:
    """Whether a client with that filter wants to hear of that change (SUB-3)."""
    match changed:
        case PromptsChanged():
            return filter.prompts
        case ToolsChanged():
            return filter.tools
        case ResourcesChanged():
            return filter.resources
        case ResourceUpdated(uri=uri):
            return uri in filter.uris
