"""The tool `read`: one page of a text file, or an image."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from auth.permissions import Need, decide_path
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import Image, ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.amounts import kibibytes
from mcp.tools.arguments import tolerating
from mcp.tools.base import Tool, ToolContext
from mcp.tools.results import failed, succeeded
from mcp.workspace.complaints import failed_open, shown
from mcp.workspace.filetypes import image_type
from mcp.workspace.images import NotShown, Picture, load_picture
from mcp.workspace.names import printable, valid
from mcp.workspace.paths import Located
from mcp.workspace.reading import HEAD, BeyondEnd, Binary, Bounds, LongLine, Page, Reading, Stopped, read_page
from mcp.workspace.threads import in_thread

NAME: Final = "read"

#: The structured result of a text file. It is no output schema: with one, every success would have to be structured,
#: and hosts that hand structured results to the model drop the image blocks beside them (anthropics/claude-code#54737).
TEXT_RESULT: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file that was read, links followed."},
        "content": {"type": "string", "description": "The lines shown, with their line endings."},
        "first_line": {"type": "integer", "minimum": 1, "description": "Number of the first line shown."},
        "last_line": {"type": "integer", "minimum": 0, "description": "Number of the last line shown."},
        "total_lines": {"type": "integer", "minimum": 0, "description": "Lines in the file, when that is known."},
        "truncated": {"type": "boolean", "description": "Whether lines follow that are not shown."},
        "next_offset": {"type": "integer", "minimum": 1, "description": "The offset to go on with when truncated."},
    },
    "required": ["path", "content", "first_line", "last_line", "truncated"],
    "additionalProperties": False,
}


def _description(limits: Limits) -> str:
    return (
        f"Read a file of the workspace. Text comes back as it is, at most {limits.output_lines} lines or"
        f" {kibibytes(limits.output_bytes)} at a time; when lines are left off, the result says with which offset to go"
        " on. PNG, JPEG, GIF and WebP images come back as images. Other binary files are refused with their type and"
        " size. Use grep to find the lines worth reading in a large file, and ls for folders."
    )


def _input(limits: Limits) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "minLength": 1,
                "description": "The file, relative to the workspace root, for example src/app.py.",
            },
            "offset": {
                "type": "integer",
                "minimum": 1,
                "description": "The first line to show, counted from 1. Default 1.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": f"How many lines to show at most. Default and maximum: {limits.output_lines}.",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Read `path` from line `offset`, at most `limit` lines."""
    stop = threading.Event()
    try:
        return await in_thread(lambda: _read(ctx, arguments, stop.is_set))
    except asyncio.CancelledError:
        stop.set()
        raise


def _read(ctx: ToolContext, arguments: Mapping[str, Any], stopped: Callable[[], bool]) -> ToolResult:
    """The whole call, in a thread."""
    located = ctx.workspace.locate(
        arguments["path"], lambda path: decide_path(ctx.policy, NAME, Need.READ, path), directory=False
    )
    if isinstance(located, Fault):
        return failed(located, NAME)
    with located:
        try:
            head = os.read(located.fd, HEAD)
            if (mime_type := image_type(head)) is not None:
                shown_image = _image(located, head, mime_type, ctx.limits)
                if shown_image is not None:
                    return shown_image
                os.lseek(located.fd, len(head), os.SEEK_SET)
            bounds = _bounds(arguments, ctx.limits)
            return _result(located, read_page(located.fd, head, located.size, bounds, stopped), bounds)
        except OSError as error:
            return failed(failed_open(located.given, error), NAME)


def _bounds(arguments: Mapping[str, Any], limits: Limits) -> Bounds:
    """What the page may hold. Whole numbers may come as 10.0, which is an integer to JSON Schema."""
    wanted = int(arguments.get("limit", limits.output_lines))
    return Bounds(int(arguments.get("offset", 1)), min(wanted, limits.output_lines), limits.output_bytes)


def _image(located: Located, head: bytes, mime_type: str, limits: Limits) -> ToolResult | None:
    """The result of a file with an image's signature; None when it is a text that begins like one."""
    kind = f"{mime_type.removeprefix('image/').upper().replace('WEBP', 'WebP')} image, {located.size:,} bytes"
    name = shown(located.given)
    with os.fdopen(os.dup(located.fd), "rb") as file:
        outcome = load_picture(file, located.size, mime_type, pixels=limits.image_pixels, data_bytes=limits.image_bytes)
    match outcome:
        case NotShown(damaged=True) if b"\0" not in head:
            return None
        case NotShown(reason):
            return succeeded(f"{name} is not shown ({kind}): {reason}.")
        case Picture(data, image_mime_type, width, height, original):
            text = f"{name}: {kind}, {original[0]} x {original[1]} pixels"
            scaled = "" if (width, height) == original else f", scaled to {width} x {height}"
            return succeeded(f"{text}{scaled}.", images=(Image(data, image_mime_type),))
        case _:
            assert_never(outcome)


def _result(located: Located, reading: Reading, bounds: Bounds) -> ToolResult:
    """The result of a text file."""
    name = shown(located.given)
    match reading:
        case Page():
            return _page(located, reading)
        case BeyondEnd(total):
            lines = "1 line" if total == 1 else f"{total} lines"
            fault = f"offset {bounds.first} is beyond the end of {name}, which has {lines}."
        case LongLine(number):
            command = f"sed -n '{number}p' {_quoted(located.path)} | head -c {bounds.size}"
            fault = (
                f"Line {number} of {name} is longer than {bounds.size:,} bytes, the most that read shows."
                f" See its beginning with bash: {command}"
            )
        case Binary(kind):
            fault = f"{name} is not a text file ({kind}, {located.size:,} bytes). Use bash to look into it."
        case Stopped():
            fault = "The call was cancelled."
        case _:
            assert_never(reading)
    return failed(Fault(fault), NAME)


def _quoted(path: str) -> str:
    """The path as one word of a bash command that can be copied; ANSI-C quoting where it cannot be shown."""
    if printable(path) == path:
        return shlex.quote(path)
    escaped = re.sub(rb"[^\w./-]", lambda found: b"\\x%02x" % ord(found[0]), os.fsencode(path))
    return f"$'{escaped.decode()}'"


def _page(located: Located, page: Page) -> ToolResult:
    """A page as text, with a notice when lines were left off."""
    structured: dict[str, Any] = {
        "path": valid(located.path),
        "content": page.text,
        "first_line": page.first,
        "last_line": page.last,
        "truncated": page.more,
    }
    if page.total is not None:
        structured["total_lines"] = page.total
    if page.last == 0:
        return succeeded(f"{shown(located.given)} is empty.", structured)
    if not page.more:
        return succeeded(page.text, structured)
    structured["next_offset"] = page.last + 1
    of = "" if page.total is None else f" of {page.total}"
    notice = f"[Lines {page.first}-{page.last}{of} shown. Continue with offset={page.last + 1}.]"
    return succeeded(f"{page.text}\n{notice}", structured)


def tool(limits: Limits) -> Tool:
    """The tool, with these limits in its description and schema."""
    return Tool(
        spec=ToolSpec(
            name=NAME,
            title="Read a file",
            description=_description(limits),
            input_schema=_input(limits),
            output_schema=None,
            annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
        ),
        need=Need.READ,
        run=run,
        normalize=tolerating(whole=("offset", "limit")),
    )


TOOL: Final = tool(Limits())
