"""What tools, resources and prompts give back, as values that no revision has shaped yet.

The per-revision encoders turn them into wire objects; nothing outside this package writes wire objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Text:
    """A text block."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image block; `data` is standard Base64."""

    data: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class Audio:
    """An audio block; `data` is standard Base64. Revision 2024-11-05 does not know it."""

    data: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class TextContents:
    """A resource's contents as text."""

    uri: str
    text: str
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class BlobContents:
    """A resource's contents as bytes; `blob` is standard Base64."""

    uri: str
    blob: str
    mime_type: str | None = None


Contents = TextContents | BlobContents


@dataclass(frozen=True, slots=True)
class Embedded:
    """A resource inside a result."""

    contents: Contents


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A pointer to something the client can fetch. Known from 2025-06-18; text before."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


Block = Text | Image | Audio | Embedded | ResourceLink


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call came to. `structured` is a JSON object and conforms to the tool's output schema."""

    content: tuple[Block, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a rendered prompt."""

    role: Literal["user", "assistant"]
    content: Block
