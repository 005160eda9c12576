"""The tool `grep`: search the contents of files. It decides what may be shown; `grep_answer` has the words.

A file that the policy keeps from `read` is kept from here too, and neither its matches nor their absence can be
told from the answer.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from auth.permissions import Allow, Decision, Deny, Need, Policy, decide_found, decide_path, denied_globs
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.amounts import kibibytes
from mcp.tools.arguments import tolerating
from mcp.tools.base import Tool, ToolContext
from mcp.tools.grep_answer import NAME, ONE_LINE, SEARCH_SHARE, Asked, Found, match_count, result, structured
from mcp.tools.results import failed, succeeded
from mcp.workspace.names import printable
from mcp.workspace.paths import Located
from mcp.workspace.search import (
    WIDE_BOMS,
    Folder,
    Query,
    Searched,
    Unreadable,
    as_folder,
    confirmed,
    plain_name,
    search_file,
    search_folder,
)
from mcp.workspace.search_globs import Glob, file_filter
from mcp.workspace.search_process import Halt, off_loop
from mcp.workspace.search_records import Bounds, Collector, FileLines

MOST_CONTEXT: Final = 50
#: Kept free of the output limit for what is said about the matches.
_NOTICE_BYTES: Final = 1024
#: Decisions remembered: a decision takes longer than all else about a file with a match.
_DECISIONS: Final = 16_384
_SNIFFED_BYTES: Final = 64 * 1024

#: The arguments that are the same on every server.
_ARGUMENTS: Final = {
    "pattern": {
        "type": "string",
        "minLength": 1,
        "maxLength": 10_000,
        "description": "Regular expression, or plain text with literal. Matches within one line.",
    },
    "path": {
        "type": "string",
        "description": "Folder or file, relative to the workspace root. Default: the whole workspace.",
    },
    "glob": {
        "type": "string",
        "minLength": 1,
        "maxLength": 1000,
        "description": (
            "Search only files that fit, relative to path: *.py (any depth), src/**/*.{ts,tsx}, or !*.min.js "
            "to leave files out. Only for folders."
        ),
    },
    "ignore_case": {"type": "boolean", "default": False, "description": "Ignore upper and lower case."},
    "literal": {
        "type": "boolean",
        "default": False,
        "description": "Take the pattern as plain text, not as a regular expression.",
    },
    "context": {
        "type": "integer",
        "minimum": 0,
        "maximum": MOST_CONTEXT,
        "default": 0,
        "description": "Lines to show before and after each match, as `path-line- text`.",
    },
}

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "matches": {
            "type": "array",
            "description": "The matching lines, without context, by path and line.",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace root."},
                    "line": {"type": "integer", "minimum": 0, "description": "1-based; 0 when unknown."},
                    "text": {"type": "string", "description": "The line, or the part of it around the match."},
                    "cut": {"type": "boolean", "description": "Whether text is only a part of the line."},
                },
                "required": ["path", "line", "text", "cut"],
                "additionalProperties": False,
            },
        },
        "truncated": {"type": "boolean", "description": "Whether there may be more matches than these."},
        "files_left_out": {
            "type": "integer",
            "minimum": 0,
            "description": "Files that the permission policy keeps from being searched.",
        },
    },
    "required": ["matches", "truncated", "files_left_out"],
    "additionalProperties": False,
}


def _description(limits: Limits) -> str:
    return (
        "Search the contents of files for a regular expression (Rust syntax, no look-around or back-references), "
        "or for plain text with `literal`. Matches are per line and come as `path:line: text`, paths relative to the "
        "workspace root, so they can be given to read and edit. Hidden files are searched; what .gitignore excludes, "
        "the .git folder and binary files are not, and symbolic links are not followed (name an ignored folder as "
        f"`path` to search it). Stops at {match_count(limits).default} matches or {kibibytes(limits.output_bytes)} and "
        f"says so; lines over {limits.grep_line_chars} characters are cut around the match. To find files by name use "
        "find."
    )


def _input(limits: Limits) -> dict[str, Any]:
    matches = match_count(limits)
    limit = {
        "type": "integer",
        "minimum": 1,
        "maximum": matches.maximum,
        "description": f"Most matching lines to show, {matches.default} by default, at most {matches.most}.",
    }
    return {
        "type": "object",
        "properties": {**_ARGUMENTS, "limit": limit},
        "required": ["pattern"],
        "additionalProperties": False,
    }


#: `ignoreCase` is the name that other agents give `ignore_case`.
normalize: Final = tolerating(
    whole=("context", "limit"), blank=("path", "glob"), renamed=MappingProxyType({"ignoreCase": "ignore_case"})
)


def decide(policy: Policy, path: str) -> Decision:
    """Whether a file or folder may be searched: only what `read` may show too, where there is `read`.

    A rule that denies or asks in `read` does so in `grep`, so `read` needs to be asked only for what its rules allow.
    """
    return _as_read(policy, decide_path(policy, NAME, Need.READ, path), path)


@functools.lru_cache(maxsize=_DECISIONS)
def _may_show(policy: Policy, path: str, folder: str) -> bool:
    """Whether matches in a file may be shown that a search of the folder came to."""
    decision = decide_found(policy, NAME, Need.READ, path, folder)
    return isinstance(_as_read(policy, decision, path), Allow)


def _as_read(policy: Policy, decision: Decision, path: str) -> Decision:
    if not isinstance(decision, Deny) and policy.rules and "read" in policy.tools:
        read = decide_path(policy, "read", Need.READ, path)
        return read if isinstance(read, Deny) else decision
    return decision


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Search; takes validated arguments."""
    work = functools.partial(_search, ctx, arguments)
    return await off_loop(work, ctx.limits.tool_seconds * SEARCH_SHARE)


def _search(ctx: ToolContext, arguments: Mapping[str, Any], halt: Halt) -> ToolResult:
    query = _query(ctx.limits, arguments)
    glob = file_filter(arguments["glob"]) if "glob" in arguments else None
    if isinstance(query, Fault):
        return failed(query, NAME)
    if isinstance(glob, Fault):
        return failed(glob, NAME)
    located = ctx.workspace.locate(arguments.get("path", "."), functools.partial(decide, ctx.policy))
    if isinstance(located, Fault):
        return failed(located, NAME)
    with located:
        asked = Asked(query, glob, "the workspace" if located.path == "." else printable(located.given))
        if not located.is_dir and _is_binary(located):
            return succeeded(f"{asked.where} is a binary file, which grep does not search.", structured([]))
        return _answered(ctx, located, asked, halt)


def _answered(ctx: ToolContext, located: Located, asked: Asked, halt: Halt) -> ToolResult:
    bounds = Bounds(
        matches=asked.query.limit,
        lines=ctx.limits.output_lines,
        size=max(ctx.limits.output_bytes - _NOTICE_BYTES, 1),
        line_chars=ctx.limits.grep_line_chars,
        context=asked.query.context,
    )
    if not located.is_dir:
        collector = Collector(lambda _: located.path, bounds)
        return _reported(ctx, asked, collector, search_file(located, asked.query, collector, halt), collector.files())
    folder = as_folder(ctx.workspace, located)
    hidden = denied_globs(ctx.policy, Need.READ)
    unreadable = Unreadable(hidden, lambda path: not _may_show(ctx.policy, path, located.path))
    collector = Collector(functools.partial(_admitted, folder, asked.glob, unreadable), bounds)
    searched = search_folder(folder, asked.query, asked.glob, unreadable, collector, halt)
    return _reported(ctx, asked, collector, searched, confirmed(folder, collector.files()))


def _reported(
    ctx: ToolContext, asked: Asked, collector: Collector, searched: Searched | Fault, files: list[FileLines]
) -> ToolResult:
    if isinstance(searched, Fault):
        return failed(searched, NAME)
    return result(asked, Found(files, collector.full, collector.searched, searched), ctx.limits)


def _admitted(folder: Folder, glob: Glob | None, unreadable: Unreadable, name: str) -> str | None:
    """The path of a file that ripgrep found, when the caller wants it and may see it."""
    name = plain_name(name)
    path = folder.path_of(name)
    return None if (glob and not glob.matches(name)) or unreadable.denied(path) else path


def _query(limits: Limits, arguments: Mapping[str, Any]) -> Query | Fault:
    pattern = arguments["pattern"]
    if "\0" in pattern:
        return Fault("The pattern holds a NUL character, which no text file has.")
    if "\n" in pattern:
        return ONE_LINE
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return Fault("The pattern is not valid Unicode: it contains half of a surrogate pair.")
    return Query(
        pattern=pattern,
        literal=arguments.get("literal", False),
        ignore_case=arguments.get("ignore_case", False),
        context=int(arguments.get("context", 0)),
        limit=int(arguments.get("limit", limits.grep_matches)),
    )


def _is_binary(file: Located) -> bool:
    """Whether the beginning of the file has a NUL and is not UTF-16, as ripgrep judges too."""
    beginning = os.pread(file.fd, _SNIFFED_BYTES, 0)
    return b"\0" in beginning and not beginning.startswith(WIDE_BOMS)


def tool(limits: Limits) -> Tool:
    """The tool, with these limits in its description and schema."""
    spec = ToolSpec(
        name=NAME,
        title="Search file contents",
        description=_description(limits),
        input_schema=_input(limits),
        output_schema=_OUTPUT,
        annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    )
    return Tool(spec, need=Need.READ, run=run, normalize=normalize)


TOOL: Final = tool(Limits())
