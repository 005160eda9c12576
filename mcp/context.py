"""The workspace context: instructions, files and git state as one Markdown page, within the policy of who asks.

It reads as the tools do: paths are opened and judged by `Workspace.locate`, files are listed by ripgrep, git runs
in the sandbox and nowhere else. Nobody is asked here, so what a rule asks about is left out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from auth.permissions import Allow, Deny, Mode, Need, Policy, decide_path, decide_tool, decide_whole
from mcp.context_files import MOST_FILE_BYTES, MOST_FILES, Instruction, candidates, instruction_lines
from mcp.context_git import ARGV, git_lines
from mcp.context_tree import counted, outline
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.workspace.paths import Workspace
from mcp.workspace.search import as_folder, list_files, plain_name
from mcp.workspace.search_process import End, Halt, off_loop
from mcp.workspace.shell import Command, SandboxStep, Shell

#: Files that are counted; more are only said to be there.
MOST_LISTED: Final = 20_000
_LISTING_SECONDS: Final = 10.0
_GIT_SECONDS: Final = 5.0
#: The tools by whose permission names are shown.
_LISTING_TOOLS: Final = ("ls", "find")


@dataclass(frozen=True, slots=True)
class _Listing:
    """Files that may be named, and whether they are all."""

    paths: tuple[str, ...]
    whole: bool


async def workspace_context(workspace: Workspace, policy: Policy, shell: Shell, limits: Limits, principal: str) -> str:
    """The page. A part that cannot be had, or that the policy keeps from this caller, is a sentence in its place."""
    listing = await _listing(workspace, policy, limits)
    sections = [
        ("Instructions", await _instructions(workspace, policy, listing)),
        ("Files", _files(listing)),
        ("Git", await _git(workspace, policy, shell, limits, principal)),
    ]
    lines = ["# Workspace"]
    for title, body in sections:
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines).rstrip("\n") + "\n"


async def _listing(workspace: Workspace, policy: Policy, limits: Limits) -> _Listing | Fault:
    tools = [tool for tool in _LISTING_TOOLS if tool in policy.tools] or list(_LISTING_TOOLS)
    seconds = min(_LISTING_SECONDS, limits.tool_seconds)
    return await off_loop(lambda halt: _list(workspace, policy, tools[0], halt), seconds)


def _list(workspace: Workspace, policy: Policy, tool: str, halt: Halt) -> _Listing | Fault:
    """Every file that is not ignored and that the tool may name. Blocking."""
    listed = bytearray()

    def feed(data: bytes) -> bool:
        listed.extend(data)
        return listed.count(b"\0") < MOST_LISTED

    root = workspace.locate(".", lambda path: decide_path(policy, tool, Need.READ, path), directory=True)
    if isinstance(root, Fault):
        return root
    with root:
        ending = list_files(as_folder(workspace, root), feed, halt)
    if isinstance(ending, Fault):
        return ending
    names = (plain_name(os.fsdecode(name)) for name in bytes(listed).split(b"\0")[:-1])
    allowed = (name for name in names if isinstance(decide_path(policy, tool, Need.READ, name), Allow))
    return _Listing(tuple(allowed), ending.end is End.COMPLETE)


def _files(listing: _Listing | Fault) -> tuple[str, ...]:
    if isinstance(listing, Fault):
        return (_not_shown(listing, "listing"),)
    if not listing.paths:
        return ("There are none that are not ignored.",)
    head = counted(len(listing.paths)) if listing.whole else f"More than {counted(len(listing.paths))}"
    return (
        f"{head}, without those that .gitignore leaves out:",
        "",
        *(f"    {line}" for line in outline(listing.paths)),
    )


async def _instructions(workspace: Workspace, policy: Policy, listing: _Listing | Fault) -> tuple[str, ...]:
    if isinstance(refused := decide_tool(policy, "read", Need.READ), Deny):
        return (_not_shown(Fault(refused.reason, refused), "read"),)
    paths = candidates(() if isinstance(listing, Fault) else listing.paths)
    files = await asyncio.to_thread(_read_all, workspace, policy, paths[:MOST_FILES])
    if not files and not isinstance(asked := decide_whole(policy, "read", Need.READ), Allow):
        return (_not_shown(Fault(asked.reason, asked), "read"),)
    return instruction_lines(files, left_out=len(paths[MOST_FILES:]))


def _read_all(workspace: Workspace, policy: Policy, paths: Iterable[str]) -> list[Instruction]:
    """Those of the files that exist and may be read. Blocking."""
    found = (_read(workspace, policy, path) for path in paths)
    return [file for file in found if file is not None]


def _read(workspace: Workspace, policy: Policy, path: str) -> Instruction | None:
    located = workspace.locate(path, lambda real: decide_path(policy, "read", Need.READ, real), directory=False)
    if isinstance(located, Fault):
        return None
    with located, os.fdopen(os.dup(located.fd), "rb") as file:
        content = file.read(MOST_FILE_BYTES + 1)
    return Instruction(path, content[:MOST_FILE_BYTES], whole=len(content) <= MOST_FILE_BYTES)


async def _git(workspace: Workspace, policy: Policy, shell: Shell, limits: Limits, principal: str) -> tuple[str, ...]:
    if not isinstance(refused := decide_whole(policy, "read", Need.READ), Allow):
        return (_not_shown(Fault(refused.reason, refused), "read"),)
    if shell.step in {SandboxStep.UNSANDBOXED, SandboxStep.UNAVAILABLE}:
        return ("Not shown: a repository can make git run programs, and there is no sandbox here to run them in.",)
    seconds = min(_GIT_SECONDS, limits.tool_seconds)
    command = Command(ARGV, workspace.root, Mode.READ_ONLY, seconds, principal=principal, spool=False)
    result = await shell.run(command)
    return (_not_shown(result, "git"),) if isinstance(result, Fault) else git_lines(result)


def _not_shown(fault: Fault, what: str) -> str:
    refused = f"{what} is refused here: " if fault.deny is not None else ""
    return f"Not shown: {refused}{fault.message.rstrip('.')}."
