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
from mcp.protocol.offer import Offer, PromptSpec, ResourceSpec, ServerInfo, TemplateSpec, ToolSpec
from mcp.protocol.revisions import Revision

_R1, _R2, _R3, _R4 = Revision.R2024_11_05, Revision.R2025_03_26, Revision.R2025_06_18, Revision.R2025_11_25

#: (object, field) -> the first revision that knows it. Fields not named here are known to all.
FIELD_SINCE: Final[Mapping[tuple[str, str], Revision]] = MappingProxyType(
    {
        ("serverInfo", "title"): _R3,
        ("serverInfo", "description"): _R4,
        ("serverInfo", "websiteUrl"): _R4,
        ("capabilities", "completions"): _R2,
        ("tool", "annotations"): _R2,
        ("tool", "title"): _R3,
        ("tool", "outputSchema"): _R3,
        ("resource", "title"): _R3,
        ("template", "title"): _R3,
        ("prompt", "title"): _R3,
        ("toolResult", "structuredContent"): _R3,
    }
)

_AUDIO_SINCE: Final = _R2
_LINK_SINCE: Final = _R3


def _known(kind: str, revision: Revision, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields that have a value and that the revision knows."""
    return {
        name: value
        for name, value in fields
        if value not in (None, "") and FIELD_SINCE.get((kind, name), _R1) <= revision
    }


def server_info(info: ServerInfo, revision: Revision) -> dict[str, Any]:
    """`Implementation` of the server."""
    return _known(
        "serverInfo",
        revision,
        (
            ("name", info.name),
            ("title", info.title),
            ("version", info.version),
            ("description", info.description),
            ("websiteUrl", info.website_url),
        ),
    )


def capabilities(offer: Offer, revision: Revision) -> dict[str, Any]:
    """`ServerCapabilities`: what the offer holds, and nothing else."""
    return _known(
        "capabilities",
        revision,
        (
            ("tools", {} if offer.tools else None),
            ("resources", {} if offer.resources or offer.templates else None),
            ("prompts", {} if offer.prompts else None),
            ("completions", {} if offer.prompts or offer.templates else None),
        ),
    )


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
    return _known(
        "tool",
        revision,
        (
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("inputSchema", spec.input_schema),
            ("outputSchema", spec.output_schema),
            ("annotations", annotations),
        ),
    )


def prompt(spec: PromptSpec, revision: Revision) -> dict[str, Any]:
    """`Prompt`."""
    arguments = [
        {"name": argument.name, "description": argument.description, "required": argument.required}
        for argument in spec.arguments
    ]
    return _known(
        "prompt",
        revision,
        (
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("arguments", arguments or None),
        ),
    )


def resource(spec: ResourceSpec, revision: Revision) -> dict[str, Any]:
    """`Resource`."""
    return _known(
        "resource",
        revision,
        (
            ("uri", spec.uri),
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("mimeType", spec.mime_type),
            ("size", spec.size),
        ),
    )


def template(spec: TemplateSpec, revision: Revision) -> dict[str, Any]:
    """`ResourceTemplate`."""
    return _known(
        "template",
        revision,
        (
            ("uriTemplate", spec.uri_template),
            ("name", spec.name),
            ("title", spec.title),
            ("description", spec.description),
            ("mimeType", spec.mime_type),
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
    return {"type": "resource_link"} | _known("link", revision, fields)


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


def prompt_message(value: PromptMessage, revision: Revision) -> dict[str, Any]:
    """`PromptMessage`."""
    return {"role": value.role, "content": block(value.content, revision)}
