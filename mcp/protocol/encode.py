"""Values to wire objects, by revision. One table says from which revision on each field exists.

A field that a revision does not know is left out (section 30); a content block that it does not know becomes
the nearest one that it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, assert_never

from mcp.protocol.content import (
    Audio,
    Block,
    Contents,
    Embedded,
    Image,
    PromptMessage,
    ResourceLink,
    Text,
    TextContents,
    ToolResult,
)
from mcp.protocol.offer import Icon, Offer, PromptSpec, ResourceSpec, ServerInfo, TemplateSpec, ToolSpec
from mcp.protocol.questions import Elicit, ElicitUrl, ListRoots, Question, Sample
from mcp.protocol.revisions import NEWEST_HANDSHAKE, Revision
from mcp.protocol.state import State

_R1, _R2, _R3, _R4 = Revision.R2024_11_05, Revision.R2025_03_26, Revision.R2025_06_18, Revision.R2025_11_25
_R5 = Revision.R2026_07_28

#: (object, field) -> the first revision that knows it. Fields not named here are known to all.
FIELD_SINCE: Final[Mapping[tuple[str, str], Revision]] = MappingProxyType(
    {
        ("serverInfo", "title"): _R3,
        ("serverInfo", "description"): _R4,
        ("serverInfo", "websiteUrl"): _R4,
        ("serverInfo", "icons"): _R4,
        ("capabilities", "completions"): _R2,
        ("tool", "annotations"): _R2,
        ("tool", "title"): _R3,
        ("tool", "outputSchema"): _R3,
        ("tool", "icons"): _R4,
        ("resource", "title"): _R3,
        ("resource", "icons"): _R4,
        ("template", "title"): _R3,
        ("template", "icons"): _R4,
        ("prompt", "title"): _R3,
        ("prompt", "icons"): _R4,
        ("toolResult", "structuredContent"): _R3,
        ("progress", "message"): _R2,
        ("elicitation", "mode"): _R4,
        ("elicitation", "elicitationId"): _R4,
        ("result", "resultType"): _R5,
        ("result", "serverInfo"): _R5,
        ("result", "ttlMs"): _R5,
        ("result", "cacheScope"): _R5,
    }
)

#: (object, field) -> the last revision that knows it.
FIELD_UNTIL: Final[Mapping[tuple[str, str], Revision]] = MappingProxyType({("elicitation", "elicitationId"): _R4})

_AUDIO_SINCE: Final = _R2
_LINK_SINCE: Final = _R3


def knows(kind: str, name: str, revision: Revision) -> bool:
    """Whether the revision has that field of that object."""
    return FIELD_SINCE.get((kind, name), _R1) <= revision <= FIELD_UNTIL.get((kind, name), _R5)


def known(kind: str, revision: Revision, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields that have a value and that the revision knows."""
    return {name: value for name, value in fields if value not in (None, "", ()) and knows(kind, name, revision)}


def revision_of(state: State) -> Revision:
    """The agreed revision; the newest of the handshake before there is one."""
    return state.revision or NEWEST_HANDSHAKE


def _icons(icons: tuple[Icon, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(
        known(
            "icon",
            _R5,
            (("src", icon.src), ("mimeType", icon.mime_type), ("sizes", icon.sizes), ("theme", icon.theme)),
        )
        for icon in icons
    )


def server_info(info: ServerInfo, revision: Revision) -> dict[str, Any]:
    """`Implementation` of the server."""
    return known(
        "serverInfo",
        revision,
        (
            ("name", info.name),
            ("title", info.title),
            ("version", info.version),
            ("description", info.description),
            ("websiteUrl", info.website_url),
            ("icons", _icons(info.icons)),
        ),
    )


def capabilities(offer: Offer, revision: Revision) -> dict[str, Any]:
    """`ServerCapabilities`: what the offer holds, and nothing else."""
    told, has_resources = offer.announced, bool(offer.resources or offer.templates)
    return known(
        "capabilities",
        revision,
        (
            ("tools", _flags(listChanged=told.tools) if offer.tools else None),
            ("resources", _flags(subscribe=told.updates, listChanged=told.resources) if has_resources else None),
            ("prompts", _flags(listChanged=told.prompts) if offer.prompts else None),
            ("completions", {} if offer.prompts or offer.templates else None),
            ("logging", {} if revision in offer.logging else None),
        ),
    )


def _flags(**flags: bool) -> dict[str, bool]:
    return {name: True for name, flag in flags.items() if flag}


def tool(spec: ToolSpec, revision: Revision) -> dict[str, Any]:
    """`Tool`."""
    hints = spec.annotations
    annotations = {
        "title": spec.title,
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    return known(
        "tool",
        revision,
        (
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("inputSchema", spec.input_schema),
            ("outputSchema", spec.output_schema),
            ("annotations", annotations),
            ("icons", _icons(spec.icons)),
        ),
    )


def prompt(spec: PromptSpec, revision: Revision) -> dict[str, Any]:
    """`Prompt`."""
    arguments = [
        {"name": argument.name, "description": argument.description, "required": argument.required}
        for argument in spec.arguments
    ]
    return known(
        "prompt",
        revision,
        (
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("arguments", arguments or None),
            ("icons", _icons(spec.icons)),
        ),
    )


def resource(spec: ResourceSpec, revision: Revision) -> dict[str, Any]:
    """`Resource`."""
    return known(
        "resource",
        revision,
        (
            ("uri", spec.uri),
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("mimeType", spec.mime_type),
            ("size", spec.size),
            ("icons", _icons(spec.icons)),
        ),
    )


def template(spec: TemplateSpec, revision: Revision) -> dict[str, Any]:
    """`ResourceTemplate`."""
    return known(
        "template",
        revision,
        (
            ("uriTemplate", spec.uri_template),
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("mimeType", spec.mime_type),
            ("icons", _icons(spec.icons)),
        ),
    )


def contents(value: Contents) -> dict[str, Any]:
    """`TextResourceContents` or `BlobResourceContents`."""
    body = {"uri": value.uri}
    if value.mime_type:
        body["mimeType"] = value.mime_type
    if isinstance(value, TextContents):
        return body | {"text": value.text}
    return body | {"blob": value.blob}


def block(value: Block, revision: Revision) -> dict[str, Any]:
    """`ContentBlock`; a kind that the revision does not know becomes text that says what it was."""
    match value:
        case Text():
            return {"type": "text", "text": value.text}
        case Image():
            return {"type": "image", "data": value.data, "mimeType": value.mime_type}
        case Audio():
            if revision < _AUDIO_SINCE:
                return {"type": "text", "text": f"[audio, {value.mime_type}: this protocol revision cannot carry it]"}
            return {"type": "audio", "data": value.data, "mimeType": value.mime_type}
        case Embedded():
            return {"type": "resource", "resource": contents(value.contents)}
        case ResourceLink():
            return _link(value, revision)
        case _:
            assert_never(value)


def _link(value: ResourceLink, revision: Revision) -> dict[str, Any]:
    if revision < _LINK_SINCE:
        return {"type": "text", "text": f"{value.title or value.name}: {value.uri}"}
    fields = (
        ("uri", value.uri),
        ("name", value.name),
        ("title", value.title),
        ("description", value.description),
        ("mimeType", value.mime_type),
        ("size", value.size),
    )
    return {"type": "resource_link"} | known("link", revision, fields)


def tool_result(value: ToolResult, revision: Revision) -> dict[str, Any]:
    """`CallToolResult`."""
    body: dict[str, Any] = {"content": [block(item, revision) for item in value.content]}
    if value.structured is not None and FIELD_SINCE["toolResult", "structuredContent"] <= revision:
        body["structuredContent"] = value.structured
    if value.is_error:
        body["isError"] = True
    if value.meta is not None:
        body["_meta"] = value.meta
    return body


def question(value: Question, revision: Revision | None) -> dict[str, Any]:
    """A server's request without its envelope: `method` and `params`."""
    since = revision or NEWEST_HANDSHAKE
    match value:
        case Elicit():
            form = (("mode", "form"), ("message", value.message), ("requestedSchema", value.schema))
            return {"method": "elicitation/create", "params": known("elicitation", since, form)}
        case ElicitUrl():
            url = (("mode", "url"), ("message", value.message), ("url", value.url), ("elicitationId", value.id))
            return {"method": "elicitation/create", "params": known("elicitation", since, url)}
        case Sample():
            messages = [prompt_message(message, since) for message in value.messages]
            fields = (("messages", messages), ("systemPrompt", value.system), ("maxTokens", value.max_tokens))
            return {"method": "sampling/createMessage", "params": known("sampling", since, fields)}
        case ListRoots():
            return {"method": "roots/list", "params": {}}
        case _:
            assert_never(value)


def prompt_message(value: PromptMessage, revision: Revision) -> dict[str, Any]:
    """`PromptMessage`."""
    return {"role": value.role, "content": block(value.content, revision)}
