"""The suite's resources, and its template."""

from __future__ import annotations

import json
import re
from typing import Final

from mcp.entries import ResourceEntry, Sources, TemplateEntry
from mcp.protocol.content import BlobContents, Contents, TextContents
from mcp.protocol.offer import ResourceSpec, TemplateSpec
from tests.conformance.making import PNG

_TEMPLATE: Final = "test://template/{id}/data"
_DATA: Final = re.compile(r"test://template/([^/]+)/data")


async def _text(uri: str, sources: Sources) -> tuple[Contents, ...]:
    return (TextContents(uri, "This is the content of the static text resource.", "text/plain"),)


async def _binary(uri: str, sources: Sources) -> tuple[Contents, ...]:
    return (BlobContents(uri, PNG, "image/png"),)


async def _data(uri: str, sources: Sources) -> tuple[Contents, ...] | None:
    found = _DATA.fullmatch(uri)
    if found is None:
        return None
    id = found[1]
    text = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
    return (TextContents(uri, text, "application/json"),)


async def _is_data(uri: str, sources: Sources) -> bool:
    return _DATA.fullmatch(uri) is not None


async def _complete(variable: str, value: str, sources: Sources) -> tuple[str, ...] | None:
    return ("123",) if variable == "id" else None


def _spec(name: str, mime_type: str) -> ResourceSpec:
    return ResourceSpec(f"test://{name}", name, name, "A resource of the suite.", mime_type)


def resources() -> tuple[ResourceEntry, ...]:
    """The resources."""
    return (
        ResourceEntry(_spec("static-text", "text/plain"), _text),
        ResourceEntry(_spec("static-binary", "image/png"), _binary),
        ResourceEntry(_spec("watched-resource", "text/plain"), _text),
    )


def templates() -> tuple[TemplateEntry, ...]:
    """The template."""
    spec = TemplateSpec(_TEMPLATE, "data", "data", "Data for any id.", "application/json")
    return (TemplateEntry(spec, _data, _is_data, _complete),)
