"""The tool `ls`: what is in one folder. It decides what is listed and in which words."""

from __future__ import annotations

import functools
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from auth.permissions import Allow, Decision, Need, Policy, decide_found, decide_path
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.amounts import Count, count, kibibytes
from mcp.tools.arguments import tolerating
from mcp.tools.base import Tool, ToolContext
from mcp.tools.results import failed, succeeded
from mcp.workspace.names import printable, valid
from mcp.workspace.paths import Located
from mcp.workspace.search_process import Halt, off_loop

NAME: Final = "ls"
MOST_ENTRIES: Final = 2000
#: Kept free of the output limit for what is said about the entries.
_NOTICE_BYTES: Final = 512

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "type": {"enum": ["file", "directory", "symlink", "other"]},
                    "size": {"type": ["integer", "null"], "description": "Bytes of a file, null for the others."},
                },
                "required": ["name", "type", "size"],
                "additionalProperties": False,
            },
        },
        "total": {"type": "integer", "description": "How many entries the folder has."},
        "truncated": {"type": "boolean", "description": "Whether these are not all."},
    },
    "required": ["entries", "total", "truncated"],
    "additionalProperties": False,
}


def _count(limits: Limits) -> Count:
    return count(limits.ls_entries, MOST_ENTRIES, limits.output_lines)


def _description(limits: Limits) -> str:
    return (
        "List what is in one folder, sorted by name without regard to case, dotfiles and ignored files included. "
        f"Folders end in /, symbolic links in @ (they are not followed). At most {_count(limits).default} "
        f"entries or {kibibytes(limits.output_bytes)}. To look into folders below use find."
    )


def _input(limits: Limits) -> dict[str, Any]:
    entries = _count(limits)
    return {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Folder to list, relative to the workspace root. Default: the root itself.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": entries.maximum,
                "description": f"Most entries, {entries.default} by default, at most {entries.most}.",
            },
        },
        "additionalProperties": False,
    }


#: What follows a name of that type.
_MARKS: Final = {"file": "", "directory": "/", "symlink": "@", "other": ""}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; `size` in bytes, None for all but regular files."""

    name: str
    type: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Contents:
    """The first entries of a folder, how many it has in all, and how many the policy keeps from being seen."""

    entries: tuple[Entry, ...]
    total: int
    left_out: int


def decide(policy: Policy, path: str) -> Decision:
    """Whether a folder may be listed."""
    return decide_path(policy, NAME, Need.READ, path)


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """List; takes validated arguments."""
    return await off_loop(functools.partial(_list, ctx, arguments), ctx.limits.tool_seconds)


def _list(ctx: ToolContext, arguments: Mapping[str, Any], _: Halt) -> ToolResult:
    given = arguments.get("path", ".")
    located = ctx.workspace.locate(given, functools.partial(decide, ctx.policy), directory=True)
    if isinstance(located, Fault):
        return failed(located, NAME)
    limit = min(int(arguments.get("limit", ctx.limits.ls_entries)), ctx.limits.output_lines)
    with located:
        where = "The workspace" if located.path == "." else printable(given)
        try:
            return _shown(_contents(ctx.policy, located, limit), where, ctx.limits)
        except OSError as error:
            return failed(Fault(f"{where} could not be listed: {os.strerror(error.errno or 0)}."), NAME)


def _contents(policy: Policy, folder: Located, limit: int) -> Contents:
    """Read a folder; keeps no more of it in memory than is shown. Raises OSError."""
    total = left_out = 0

    def allowed(entries: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        nonlocal total, left_out
        prefix = "" if folder.path == "." else f"{folder.path.rstrip('/')}/"
        for entry in entries:
            if isinstance(decide_found(policy, NAME, Need.READ, prefix + entry.name, folder.path), Allow):
                total += 1
                yield entry
            else:
                left_out += 1

    with os.scandir(folder.fd) as entries:
        first = heapq.nsmallest(limit, allowed(entries), key=lambda entry: (entry.name.casefold(), entry.name))
        return Contents(tuple(map(_entry, first)), total, left_out)


def _entry(entry: os.DirEntry[str]) -> Entry:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return Entry(entry.name, "other", None)
    match stat.S_IFMT(status.st_mode):
        case stat.S_IFREG:
            return Entry(entry.name, "file", status.st_size)
        case stat.S_IFDIR:
            return Entry(entry.name, "directory", None)
        case stat.S_IFLNK:
            return Entry(entry.name, "symlink", None)
        case _:
            return Entry(entry.name, "other", None)


def _shown(contents: Contents, where: str, limits: Limits) -> ToolResult:
    """The entries as far as there is room for them. Pure."""
    names, room = list[str](), limits.output_bytes - _NOTICE_BYTES
    for entry in contents.entries:
        name = printable(entry.name) + _MARKS[entry.type]
        room -= len(name.encode()) + 1
        if room < 0 and names:
            break
        names.append(name)
    notes = list[str]()
    if len(names) < contents.total:
        more = " Give a higher limit, or use find with a pattern." if len(names) < _count(limits).most else " Use find."
        notes.append(f"{len(names)} of {contents.total} entries shown.{more}")
    if contents.left_out:
        entries = "1 entry is" if contents.left_out == 1 else f"{contents.left_out} entries are"
        notes.append(f"{entries} left out by the permission policy.")
    body = "\n".join(names) or (f"{where} is empty." if not contents.left_out else f"{where} has no entry to show.")
    shown = [{"name": valid(one.name), "type": one.type, "size": one.size} for one in contents.entries[: len(names)]]
    return succeeded(
        body + "".join(f"\n\n[{note}]" for note in notes),
        {"entries": shown, "total": contents.total, "truncated": len(names) < contents.total},
    )


def tool(limits: Limits) -> Tool:
    """The tool, with these limits in its description and schema."""
    spec = ToolSpec(
        name=NAME,
        title="List a folder",
        description=_description(limits),
        input_schema=_input(limits),
        output_schema=_OUTPUT,
        annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    )
    return Tool(spec, need=Need.READ, run=run, normalize=tolerating(whole=("limit",), blank=("path",)))


TOOL: Final = tool(Limits())
