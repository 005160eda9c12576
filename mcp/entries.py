"""What a catalogue is made of beside tools: prompts, resources and templates, each with what makes it work.

An entry takes everything it needs as a value, so that a catalogue is data and knows no server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from auth.permissions import Policy
from mcp.conversations import ConversationStore
from mcp.exchange import Exchange
from mcp.limits import Limits
from mcp.protocol.content import Contents
from mcp.protocol.effects import NotFound, Prompt
from mcp.protocol.offer import PromptSpec, ResourceSpec, TemplateSpec
from mcp.tools.base import Tool
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import Shell

#: A transcript goes out whole up to this many characters; then a last line says where it goes on.
MOST_CHARACTERS: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sources:
    """What a read may draw on. `workspace_name` is how users know the workspace, never a folder of the server."""

    workspace: Workspace
    workspace_name: str
    policy: Policy
    tools: tuple[Tool, ...]
    shell: Shell
    limits: Limits
    conversations: ConversationStore
    principal: str
    transcript_characters: int = MOST_CHARACTERS


#: The arguments, with every required one there, to the messages; NotFound says what is wrong with them.
Render = Callable[[Mapping[str, str], Exchange], Awaitable[Prompt | NotFound]]
#: An argument, what was typed of it, and the arguments that are filled in, to the values it may take (CP-1, CP-3).
CompletePrompt = Callable[[str, str, Mapping[str, str]], tuple[str, ...] | None]
#: A URI to its contents; None when there is no such resource for this caller.
Read = Callable[[str, Sources], Awaitable[tuple[Contents, ...] | None]]
#: Whether `Read` would find something now, without reading it.
Exists = Callable[[str, Sources], Awaitable[bool]]
#: A variable of a template and what was typed of it to the values it may take; None for an unknown variable.
CompleteTemplate = Callable[[str, str, Sources], Awaitable[tuple[str, ...] | None]]


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """A prompt."""

    spec: PromptSpec
    render: Render
    complete: CompletePrompt


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A resource with a URI of its own."""

    spec: ResourceSpec
    read: Read


@dataclass(frozen=True, slots=True)
class TemplateEntry:
    """Resources of one form. `read` and `exists` answer for URIs of that form, and know no other."""

    spec: TemplateSpec
    read: Read
    exists: Exists
    complete: CompleteTemplate
