"""How the suite's fixtures are made: tools that only answer, and the picture and the sound that they show."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from auth.permissions import Need
from mcp.protocol.content import Block, Text, ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.base import Run, Tool, ToolContext

_HINTS: Final = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)


def tool(name: str, description: str, run: Run, *needs: str, schema: Mapping[str, Any] | None = None) -> Tool:
    """A tool of the suite, which needs arguments of these names, all of them strings, unless it has a schema."""
    own = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in needs},
        "required": list(needs),
        "additionalProperties": False,
    }
    return Tool(ToolSpec(name, name, description, schema or own, None, _HINTS), Need.READ, run)


def answering(name: str, description: str, *blocks: Block, schema: Mapping[str, Any] | None = None) -> Tool:
    """A tool that always answers the same."""

    async def run(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult(blocks)

    return tool(name, description, run, schema=schema)


def said(text: str, *, is_error: bool = False) -> ToolResult:
    """A result of text alone."""
    return ToolResult((Text(text),), is_error=is_error)


def _png() -> bytes:
    """One red pixel (PNG: a signature, then chunks of length, kind, data and checksum)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _wav(samples: Sequence[int] = (0, 8000, 0, -8000)) -> bytes:
    """A moment of a tone."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file.getvalue()


PNG: Final = base64.b64encode(_png()).decode()
WAV: Final = base64.b64encode(_wav()).decode()
