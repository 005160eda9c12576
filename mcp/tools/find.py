"""The tool `find`: files and folders by name. It decides what is listed and in which words."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from auth.permissions import ANY_TOOL, Allow, Decision, Effect, Need, Policy, decide_found, decide_path
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.amounts import Count, count, kibibytes
from mcp.tools.arguments import tolerating
from mcp.tools.base import Tool, ToolContext
from mcp.tools.results import failed, succeeded
from mcp.workspace.names import printable, valid
from mcp.workspace.search import Folder, as_folder, list_files
from mcp.workspace.search_globs import Glob, name_finder
from mcp.workspace.search_listing import Listing
from mcp.workspace.search_process import End, Halt, off_loop

NAME: Final = "find"
MOST_RESULTS: Final = 2000
#: The part of a call's time that the search itself may take; the rest is for the answer.
SEARCH_SHARE: Final = 0.95
#: Kept free of the output limit for what is said about the results.
_NOTICE_BYTES: Final = 512
_SUGGESTIONS: Final = 5

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Paths relative to the workspace root, sorted; folders end in /.",
        },
        "truncated": {"type": "boolean", "description": "Whether there may be more than these."},
    },
    "required": ["files", "truncated"],
    "additionalProperties": False,
}


def _count(limits: Limits) -> Count:
    return count(limits.find_results, MOST_RESULTS, limits.output_lines)


def _description(limits: Limits) -> str:
    return (
        "Find files and folders by a glob. Without a slash the pattern is held against names at any depth "
        "(*.py, Dockerfile); with one against the path relative to `path` (src/**/*.test.ts). *, ?, **, [abc] and "
        "{a,b} work, letter case matters, a leading ./ is ignored, and a trailing slash takes folders only. Results "
        "are sorted paths relative to the workspace root, folders end in /. Hidden files are included; what "
        ".gitignore excludes, the .git folder, symbolic links and folders without files are not (ls shows those). "
        f"At most {_count(limits).default} results or {kibibytes(limits.output_bytes)}. To search contents use grep."
    )


def _input(limits: Limits) -> dict[str, Any]:
    results = _count(limits)
    return {
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "Glob: *.py, src/**/*.{ts,tsx}, **/migrations/*.sql, tests/.",
            },
            "path": {
                "type": "string",
                "description": "Folder to search, relative to the workspace root. Default: the whole workspace.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": results.maximum,
                "description": f"Most results, {results.default} by default, at most {results.most}.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Found:
    """Policy paths in order, folders with a slash; whether they are all; and whether there was no time for all."""

    paths: tuple[str, ...]
    complete: bool
    timed_out: bool
    unreadable: bool


def decide(policy: Policy, path: str) -> Decision:
    """Whether a folder may be searched."""
    return decide_path(policy, NAME, Need.READ, path)


def _may_list(policy: Policy, path: str, folder: str) -> bool:
    return isinstance(decide_found(policy, NAME, Need.READ, path, folder), Allow)


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """List; takes validated arguments."""
    work = functools.partial(_find, ctx, arguments)
    return await off_loop(work, ctx.limits.tool_seconds * SEARCH_SHARE)


def _find(ctx: ToolContext, arguments: Mapping[str, Any], halt: Halt) -> ToolResult:
    pattern = arguments["pattern"]
    glob = name_finder(pattern)
    if isinstance(glob, Fault):
        return failed(glob, NAME)
    located = ctx.workspace.locate(arguments.get("path", "."), functools.partial(decide, ctx.policy), directory=True)
    if isinstance(located, Fault):
        return failed(located, NAME)
    limit = min(int(arguments.get("limit", ctx.limits.find_results)), ctx.limits.output_lines)
    with located:
        where = "the workspace" if located.path == "." else printable(located.given)
        folder = as_folder(ctx.workspace, located)
        found = _found(ctx.policy, folder, glob, limit, halt)
        if isinstance(found, Fault):
            return failed(found, NAME)
        if found.paths:
            return _listed(found, limit, ctx.limits, has_rules=_has_rules(ctx.policy))
        if found.timed_out:
            return failed(_too_slow(ctx.limits), NAME)
        return succeeded(_nothing(ctx.policy, folder, pattern, where, halt), {"files": [], "truncated": False})


def _found(policy: Policy, folder: Folder, glob: Glob, limit: int, halt: Halt) -> Found | Fault:
    listing = Listing(glob)
    ending = list_files(folder, listing.feed, halt)
    if isinstance(ending, Fault):
        return ending
    names, complete = listing.found()
    paths = (folder.path_of(name) for name in names)
    allowed = (path for path in paths if _may_list(policy, path.removesuffix("/"), folder.located.path))
    first = tuple(itertools.islice(allowed, limit))
    complete = complete and next(allowed, None) is None
    return Found(
        first, complete, ending.end is End.OUT_OF_TIME, ending.end is End.COMPLETE and ending.status not in {0, 1}
    )


def _listed(found: Found, limit: int, limits: Limits, *, has_rules: bool) -> ToolResult:
    """The results as far as there is room for them. Pure."""
    paths = _within(found.paths, limits.output_bytes - _NOTICE_BYTES)
    complete = found.complete and len(paths) == len(found.paths)
    notes = list[str]()
    if found.timed_out:
        notes.append(f"Stopped after {limits.tool_seconds * SEARCH_SHARE:g} s: these are not all. {_NARROW}")
    elif len(paths) < len(found.paths):
        notes.append(f"Stopped at {kibibytes(limits.output_bytes)}; there are more results. {_NARROW}")
    elif not complete:
        notes.append(f"Stopped at the limit of {limit} results; there are more. {_NARROW}")
    if found.unreadable:
        notes.append("Some folders could not be read.")
    if has_rules:
        notes.append("What the permission policy keeps back is not listed.")
    text = "\n".join(map(printable, paths))
    tail = "".join(f"\n\n[{note}]" for note in notes)
    return succeeded(text + tail, {"files": list(map(valid, paths)), "truncated": not complete or found.timed_out})


_NARROW: Final = "Search a smaller path or a more exact pattern."


def _within(paths: Iterable[str], size: int) -> list[str]:
    """The first paths that fit into so many bytes, a newline each; always at least one."""
    sizes = itertools.accumulate(len(valid(path).encode()) + 1 for path in paths)
    return [path for index, (path, total) in enumerate(zip(paths, sizes, strict=True)) if not index or total <= size]


def _has_rules(policy: Policy) -> bool:
    return any(rule.tool in {NAME, ANY_TOOL} and rule.effect is not Effect.ALLOW for rule in policy.rules)


def _too_slow(limits: Limits) -> Fault:
    seconds = limits.tool_seconds * SEARCH_SHARE
    return Fault(f"Nothing was found in {seconds:g} s, and the search was stopped before its end. {_NARROW}")


def _nothing(policy: Policy, folder: Folder, pattern: str, where: str, halt: Halt) -> str:
    """The sentence for no result, with what there is in another letter case."""
    sentence = f"Nothing in {where} fits the pattern {printable(pattern)}."
    glob = name_finder(pattern, any_case=True)
    other = None if isinstance(glob, Fault) else _found(policy, folder, glob, _SUGGESTIONS, halt)
    if isinstance(other, Fault) or other is None or not other.paths:
        return sentence
    return f"{sentence} In another letter case there is: {', '.join(map(printable, other.paths))}."


def tool(limits: Limits) -> Tool:
    """The tool, with these limits in its description and schema."""
    spec = ToolSpec(
        name=NAME,
        title="Find files by name",
        description=_description(limits),
        input_schema=_input(limits),
        output_schema=_OUTPUT,
        annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    )
    return Tool(spec, need=Need.READ, run=run, normalize=tolerating(whole=("limit",), blank=("path",)))


TOOL: Final = tool(Limits())
