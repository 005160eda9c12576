"""The catalogue: everything the server offers, as data, and the offer that the engine speaks from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp.arguments import argument_check
from mcp.harness.registry import Registry
from mcp.limits import Limits
from mcp.prompts import prompt_specs
from mcp.protocol.arrival import mirrored_properties
from mcp.protocol.offer import Announced, Offer, PromptSpec, ResourceSpec, ServerInfo, TemplateSpec, ToolSpec
from mcp.resources import RESOURCES, TEMPLATES
from mcp.tools import bash, edit, find, grep, ls, read, write
from mcp.tools.base import Tool

#: The modules of the workspace tools, in the order in which they are listed.
_MODULES: Final = (read, write, edit, bash, grep, find, ls)

#: What a host may tell its model about the server as a whole.
INSTRUCTIONS: Final = (
    "These tools work on one workspace; paths are relative to its root. Read superpi://workspace/context first: it "
    "holds the project's own instructions. Prefer grep, find and read over shell commands for looking, and edit over "
    "write for changing a part of a file. A refusal names what decided; superpi://workspace/tools says what this "
    "connection may do."
)


#: What the product tells of: a team's prompts change with its harnesses, transcripts grow, tools stay.
ANNOUNCED: Final = Announced(prompts=True, resources=True, updates=True)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What there is, whoever asks."""

    tools: tuple[Tool, ...]
    prompts: tuple[PromptSpec, ...]
    resources: tuple[ResourceSpec, ...]
    templates: tuple[TemplateSpec, ...]
    announced: Announced = ANNOUNCED


def standard_catalogue(harnesses: Registry, limits: Limits) -> Catalogue:
    """The product's own catalogue, with a prompt for each harness; its schemas name these limits."""
    tools = tuple(module.tool(limits) for module in _MODULES)
    return Catalogue(tools, prompt_specs(harnesses), RESOURCES, TEMPLATES)


def tool_definitions(limits: Limits) -> tuple[ToolSpec, ...]:
    """The tools as data, in the order in which they are listed."""
    return tuple(module.tool(limits).spec for module in _MODULES)


def offer_of(catalogue: Catalogue, server: ServerInfo) -> Offer:
    """The engine's view of a catalogue, with an argument validator for each tool."""
    return Offer(
        server,
        INSTRUCTIONS,
        tuple(tool.spec for tool in catalogue.tools),
        catalogue.prompts,
        catalogue.resources,
        catalogue.templates,
        {tool.spec.name: argument_check(tool) for tool in catalogue.tools},
        catalogue.announced,
        {tool.spec.name: mirrored_properties(tool.spec.input_schema) for tool in catalogue.tools},
        logging=True,
    )
