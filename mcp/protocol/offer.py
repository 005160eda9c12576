"""What a server offers, as data: tools, prompts, resources, templates.

`Offer` is the view that one caller has of the catalogue. It comes into the engine as a value, so that the
engine never asks who is calling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.protocol.revisions import Revision


@dataclass(frozen=True, slots=True)
class Icon:
    """A picture that hosts may show: an https or `data:` URL (CT-3, from 2025-11-25). `sizes` like `48x48` or `any`."""

    src: str
    mime_type: str
    sizes: tuple[str, ...] = ()
    theme: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints by which hosts decide what to approve without asking (server/tools, from 2025-03-26)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as clients see it. Schemas are JSON Schema 2020-12 with an object at the root."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: ToolAnnotations
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt; values are strings on the wire."""

    name: str
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """One prompt as clients see it."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource as clients see it; `size` is in bytes."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    size: int | None = None
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateSpec:
    """One resource template (RFC 6570) as clients see it."""

    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Who answers."""

    name: str
    title: str
    version: str
    description: str = ""
    website_url: str = ""
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, slots=True)
class Announced:
    """Which changes the server tells of: of its lists, and (`updates`) of single resources."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    updates: bool = False

    def __bool__(self) -> bool:
        return self.tools or self.prompts or self.resources or self.updates


@dataclass(frozen=True, slots=True)
class Accepted:
    """Arguments in the schema's own shape, ready for the tool."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rejected:
    """What is wrong with the arguments, one sentence each, with the path in words."""

    faults: tuple[str, ...]


#: Takes the arguments of a call as the client sent them.
ArgumentCheck = Callable[[Mapping[str, Any]], Accepted | Rejected]


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A caller's view of the catalogue. `checks` holds one argument validator a tool, by name.

    Compared by identity, so that what is derived from an offer can be kept for as long as it is in use.
    """

    server: ServerInfo
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    prompts: tuple[PromptSpec, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()
    templates: tuple[TemplateSpec, ...] = ()
    checks: Mapping[str, ArgumentCheck] = field(default_factory=dict)
    announced: Announced = Announced()
    #: Tool -> the arguments that HTTP headers repeat: the path of each, and the rest of the header's name.
    mirrored: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = field(default_factory=dict)
    #: The revisions on which calls may tell their client something for its log.
    logging: tuple[Revision, ...] = ()
