"""Resources: the workspace context, the tool loadout and the transcripts of the caller's conversations.

What there is is data; reading takes everything it needs as a value. A conversation of somebody else is answered
exactly like one that never was.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, assert_never

from mcp.context import workspace_context
from mcp.conversations import Conversation, ConversationStore, Entry
from mcp.entries import ResourceEntry, Sources, TemplateEntry
from mcp.loadout import loadout
from mcp.protocol.content import Contents, TextContents
from mcp.protocol.effects import ResourcePage
from mcp.protocol.offer import ResourceSpec, TemplateSpec
from mcp.transcript import MIME_TYPE, timestamp, transcript_line

CONTEXT_URI: Final = "superpi://workspace/context"
LOADOUT_URI: Final = "superpi://workspace/tools"
#: The variable of the template.
_ID: Final = "id"
TRANSCRIPT_TEMPLATE: Final = "superpi://conversation/{id}/transcript"

RESOURCES: Final = (
    ResourceSpec(
        uri=CONTEXT_URI,
        name="workspace-context",
        title="Workspace context",
        description="The instruction files of the workspace (AGENTS.md, CLAUDE.md), its files and its git state.",
        mime_type="text/markdown",
    ),
    ResourceSpec(
        uri=LOADOUT_URI,
        name="tool-loadout",
        title="Tool loadout",
        description="Which tools this connection may use and how far they reach, and which are refused here and why.",
        mime_type="application/json",
    ),
)
TEMPLATES: Final = (
    TemplateSpec(
        uri_template=TRANSCRIPT_TEMPLATE,
        name="transcript",
        title="Transcript of a conversation",
        description="Everything that happened in a conversation of yours, one JSON object a line.",
        mime_type=MIME_TYPE,
    ),
)

_TRUNCATED: Final = "The transcript goes on with this entry; it is too long to be shown whole."
#: Values that one completion offers (CP-2), and conversations that are looked at for them.
MOST_COMPLETIONS: Final = 100
_MOST_LOOKED_AT: Final = 1000

_TRANSCRIPT: Final = re.compile(r"superpi://conversation/([A-Za-z0-9_-]{1,64})/transcript")


@dataclass(frozen=True, slots=True)
class ContextUri:
    """The workspace context."""


@dataclass(frozen=True, slots=True)
class LoadoutUri:
    """The tool loadout."""


@dataclass(frozen=True, slots=True)
class TranscriptUri:
    """The transcript of the conversation with that id."""

    id: str


Uri = ContextUri | LoadoutUri | TranscriptUri


def parse_uri(uri: str) -> Uri | None:
    """Which resource a URI names. Exactly one spelling of each is known: no escapes, query or other case (RS-6)."""
    if uri == CONTEXT_URI:
        return ContextUri()
    if uri == LOADOUT_URI:
        return LoadoutUri()
    found = _TRANSCRIPT.fullmatch(uri)
    return None if found is None else TranscriptUri(found[1])


def resource_entries() -> tuple[ResourceEntry, ...]:
    """The resources that are there for everybody."""
    return tuple(ResourceEntry(spec, read_resource) for spec in RESOURCES)


def template_entries() -> tuple[TemplateEntry, ...]:
    """The forms that resources of a caller's own have."""
    (transcript,) = TEMPLATES
    return (TemplateEntry(transcript, read_resource, _is_there, _complete),)


def transcript_uri(id: str) -> str:
    """The URI of a conversation's transcript."""
    return TRANSCRIPT_TEMPLATE.replace("{id}", id)


def conversation_spec(conversation: Conversation) -> ResourceSpec:
    """A conversation as a resource."""
    count = "1 entry" if conversation.entries == 1 else f"{conversation.entries} entries"
    return ResourceSpec(
        uri=transcript_uri(conversation.id),
        name=f"conversation-{conversation.id}",
        title=conversation.title or f"Conversation {conversation.id}",
        description=f"{conversation.harness}, {timestamp(conversation.created)}, {count}.",
        mime_type=MIME_TYPE,
    )


async def list_conversations(
    store: ConversationStore, principal: str, *, session: str | None, after: str | None, limit: int
) -> ResourcePage | None:
    """The principal's conversations as resources, newest first; None for an `after` that no page gave."""
    try:
        page = await store.list(principal, session=session, after=after, limit=limit)
    except ValueError:
        return None
    return ResourcePage(tuple(map(conversation_spec, page.items)), page.after)


async def read_resource(uri: str, sources: Sources) -> tuple[Contents, ...] | None:
    """The contents of a resource; None for one that does not exist for this caller."""
    named = parse_uri(uri)
    match named:
        case None:
            return None
        case ContextUri():
            text: str | None = await workspace_context(
                sources.workspace, sources.policy, sources.shell, sources.limits, sources.principal
            )
            mime_type = "text/markdown"
        case LoadoutUri():
            text, mime_type = _loadout(sources), "application/json"
        case TranscriptUri(id):
            text, mime_type = await _transcript(sources, id), MIME_TYPE
        case never:
            assert_never(never)
    return None if text is None else (TextContents(uri, text, mime_type),)


async def complete_conversation(store: ConversationStore, principal: str, value: str) -> tuple[str, ...]:
    """The ids of the principal's conversations that begin with `value`, newest first, for the template's `id`."""
    found: list[str] = []
    after: str | None = None
    for _ in range(_MOST_LOOKED_AT // MOST_COMPLETIONS):
        page = await store.list(principal, after=after, limit=MOST_COMPLETIONS)
        found += [one.id for one in page.items if one.id.casefold().startswith(value.casefold())]
        after = page.after
        if after is None or len(found) >= MOST_COMPLETIONS:
            break
    return tuple(found[:MOST_COMPLETIONS])


async def _is_there(uri: str, sources: Sources) -> bool:
    named = parse_uri(uri)
    if not isinstance(named, TranscriptUri):
        return False
    return await sources.conversations.find(sources.principal, named.id) is not None


async def _complete(variable: str, value: str, sources: Sources) -> tuple[str, ...] | None:
    if variable != _ID:
        return None
    return await complete_conversation(sources.conversations, sources.principal, value)


def _loadout(sources: Sources) -> str:
    described = loadout(
        sources.policy,
        [(tool.spec, tool.need) for tool in sources.tools],
        workspace=sources.workspace_name,
        step=sources.shell.step,
        why=sources.shell.why,
    )
    return json.dumps(described, ensure_ascii=False, indent=2) + "\n"


async def _transcript(sources: Sources, id: str) -> str | None:
    if await sources.conversations.find(sources.principal, id) is None:
        return None
    lines: list[str] = []
    room = sources.transcript_characters
    async for entry in _entries(sources.conversations, sources.principal, id):
        line = transcript_line(entry)
        room -= len(line)
        if room < 0:
            lines.append(transcript_line(Entry(entry.seq, entry.ts, "truncated", {"message": _TRUNCATED})))
            break
        lines.append(line)
    return "".join(lines)


async def _entries(store: ConversationStore, principal: str, id: str) -> AsyncIterator[Entry]:
    since = 0
    while page := await store.entries(principal, id, since=since):
        for entry in page:
            yield entry
        since = page[-1].seq
