"""The suite's tools that answer at once: each kind of content, an error, and schemas that must arrive whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.protocol.content import Audio, Embedded, Image, Text, TextContents, ToolResult
from mcp.tools.base import Tool, ToolContext
from tests.conformance.making import PNG, WAV, answering, said, tool

#: Keywords of JSON Schema 2020-12 that a server may lose on the way: the suite looks for each of them.
_SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
#: An argument that an HTTP header repeats (HDR-6).
_MIRRORED: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
    "additionalProperties": False,
}


async def _fail(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    return said("This tool intentionally returns an error for testing", is_error=True)


def plain_tools() -> tuple[Tool, ...]:
    """The tools, the simplest first: the suite calls the first of all without arguments."""
    picture = Image(PNG, "image/png")
    inside = TextContents("test://embedded-resource", "This is an embedded resource content.", "text/plain")
    mixed = TextContents("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return (
        answering("test_simple_text", "Answers text.", Text("This is a simple text response for testing.")),
        answering("test_image_content", "Answers a picture.", picture),
        answering("test_audio_content", "Answers a sound.", Audio(WAV, "audio/wav")),
        answering("test_embedded_resource", "Answers with a resource inside.", Embedded(inside)),
        answering(
            "test_multiple_content_types",
            "Answers text, a picture and a resource.",
            Text("Multiple content types test:"),
            picture,
            Embedded(mixed),
        ),
        tool("test_error_handling", "Always fails.", _fail),
        answering("json_schema_2020_12_tool", "Takes what a rich schema allows.", Text("ok"), schema=_SCHEMA),
        answering("test_x_mcp_header", "Takes an argument that a header repeats.", Text("ok"), schema=_MIRRORED),
    )
