"""The catalogue: everything the server offers, as data, and the offer that the engine speaks from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp.arguments import argument_check
from mcp.entries import PromptEntry, ResourceEntry, Sources, TemplateEntry
from mcp.exchange import Exchange
from mcp.harness.registry import Registry
from mcp.limits import Limits
from mcp.prompts import prompt_entries
from mcp.protocol.arrival import mirrored_properties
from mcp.protocol.content import Contents
from mcp.protocol.effects import Complete, NotFound, Prompt
from mcp.protocol.offer import Announced, Offer, ServerInfo, ToolSpec
from mcp.protocol.revisions import HANDSHAKE, Revision
from mcp.resources import resource_entries, template_entries
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
    prompts: tuple[PromptEntry, ...]
    resources: tuple[ResourceEntry, ...]
    templates: tuple[TemplateEntry, ...]
    announced: Announced = ANNOUNCED
    #: 2026-07-28 deprecates log notifications, and new servers are not to send them there (LG-5).
    logging: tuple[Revision, ...] = HANDSHAKE

    async def render(self, name: str, arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
        """The messages of a prompt; NotFound for a name or arguments that it does not take (PR-3)."""
        entry = self._prompt(name)
        return NotFound("There is no such prompt.") if entry is None else await entry.render(arguments, exchange)

    async def read(self, uri: str, sources: Sources) -> tuple[Contents, ...] | None:
        """The contents of a resource; None for one that does not exist for this caller."""
        for resource in self.resources:
            if resource.spec.uri == uri:
                return await resource.read(uri, sources)
        for template in self.templates:
            if (found := await template.read(uri, sources)) is not None:
                return found
        return None

    async def exists(self, uri: str, sources: Sources) -> bool:
        """Whether the caller could read the resource now, without reading it."""
        if any(resource.spec.uri == uri for resource in self.resources):
            return True
        for template in self.templates:
            if await template.exists(uri, sources):
                return True
        return False

    async def complete(self, wanted: Complete, sources: Sources) -> tuple[str, ...] | None:
        """The values that an argument may take; None for one that nothing is known of."""
        if wanted.kind == "prompt":
            entry = self._prompt(wanted.name)
            return None if entry is None else entry.complete(wanted.argument, wanted.value, wanted.context)
        for template in self.templates:
            if template.spec.uri_template == wanted.name:
                return await template.complete(wanted.argument, wanted.value, sources)
        return None

    def _prompt(self, name: str) -> PromptEntry | None:
        return next((entry for entry in self.prompts if entry.spec.name == name), None)


def standard_catalogue(harnesses: Registry, limits: Limits) -> Catalogue:
    """The product's own catalogue, with a prompt for each harness; its schemas name these limits."""
    tools = tuple(module.tool(limits) for module in _MODULES)
    return Catalogue(tools, prompt_entries(harnesses), resource_entries(), template_entries())


def tool_definitions(limits: Limits) -> tuple[ToolSpec, ...]:
    """The tools as data, in the order in which they are listed."""
    return tuple(module.tool(limits).spec for module in _MODULES)


def offer_of(catalogue: Catalogue, server: ServerInfo) -> Offer:
    """The engine's view of a catalogue, with an argument validator for each tool."""
    return Offer(
        server,
        INSTRUCTIONS,
        tuple(tool.spec for tool in catalogue.tools),
        tuple(entry.spec for entry in catalogue.prompts),
        tuple(entry.spec for entry in catalogue.resources),
        tuple(entry.spec for entry in catalogue.templates),
        {tool.spec.name: argument_check(tool) for tool in catalogue.tools},
        catalogue.announced,
        {tool.spec.name: mirrored_properties(tool.spec.input_schema) for tool in catalogue.tools},
        logging=catalogue.logging,
    )
