"""The tool `bash`: a shell command in the workspace, in the sandbox of this server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from auth.permissions import Allow, Ask, Deny, Mode, Need, Policy, decide_command, decide_exposing, denied_globs
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.amounts import kibibytes
from mcp.tools.arguments import tolerating
from mcp.tools.base import Tool, ToolContext
from mcp.tools.bash_hints import FROZEN, hints
from mcp.tools.refusal import refusal_result
from mcp.tools.results import failed, succeeded
from mcp.workspace.sandbox_masks import Masks, find_masks
from mcp.workspace.sandbox_tracked import without_tracked
from mcp.workspace.shell import Command, CommandResult

NAME: Final = "bash"
#: The key of the machine-readable part of a failed command, which has no structured result, in `_meta`.
META_KEY: Final = "io.superpi/command"
#: The kernel takes 131,072 bytes in one argument (MAX_ARG_STRLEN); the rest is for what goes around it.
MOST_COMMAND_BYTES: Final = 120_000

_NO_TERMINAL: Final = "A command that waits for a terminal (an editor, a pager, a password) cannot be used here."

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "output": {"type": "string", "description": "The end of stdout and stderr; all of it unless truncated."},
        "exit_code": {"type": "integer", "description": "0; other codes are errors and not structured."},
        "duration": {"type": "number", "minimum": 0, "description": "Seconds."},
        "truncated": {"type": "boolean", "description": "Whether earlier output was left off."},
        "timed_out": {"type": "boolean"},
        "spool": {
            "type": ["string", "null"],
            "description": "When truncated: the file with all output, relative to the workspace root.",
        },
    },
    "required": ["output", "exit_code", "duration", "truncated", "timed_out", "spool"],
    "additionalProperties": False,
}


def _description(limits: Limits) -> str:
    return (
        "Run a bash command in the workspace root. stdout and stderr come back in one stream, in order; there is no"
        " stdin and no terminal. Every call is a new shell: variables and `cd` do not last, files do. Only the last"
        f" {limits.output_lines} lines or {kibibytes(limits.output_bytes)} are shown; all of it is then kept in a file"
        " that the result names, for read and grep. The call ends when the command ends, and what it left in the"
        " background is killed. What a command may change, and whether it has network, depends on the mode. Prefer"
        " read, grep, find and ls over cat, grep, find and ls."
    )


def _input(limits: Limits) -> dict[str, Any]:
    most = most_seconds(limits)
    return {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "maxLength": MOST_COMMAND_BYTES,
                "description": "The command, as after `bash -c`. It may have several lines.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": most,
                "description": (
                    f"Seconds (not milliseconds) after which the command and all it started is killed. Default "
                    f"{limits.shell_seconds:g}, at most {most:g}."
                ),
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    }


def most_seconds(limits: Limits) -> float:
    """The longest timeout that can be given: what is waited without one can also be asked for."""
    return max(limits.shell_seconds_max, limits.shell_seconds)


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Run `command`, for at most `timeout` seconds."""
    script = arguments["command"]
    # Off the event loop: a long script that nests takes the policy a second to read.
    decision = await asyncio.to_thread(decide_command, ctx.policy, NAME, script)
    if isinstance(decision, Deny):
        return refusal_result(NAME, decision)
    timeout = arguments.get("timeout", ctx.limits.shell_seconds)
    if (fault := _unfit(script, timeout, ctx.limits)) is not None:
        return failed(fault, NAME)
    if isinstance(decision, Ask):
        return refusal_result(NAME, decision)
    found = await asyncio.to_thread(_masks, ctx) if ctx.shell.masks else Masks()
    if isinstance(found, Fault):
        return failed(found, NAME)
    masks = await without_tracked(ctx.shell, ctx.workspace.root, found, ctx.principal)
    exposed = set(found.hidden).difference(masks.hidden) if ctx.shell.masks else None
    if not isinstance(decision := decide_exposing(ctx.policy, NAME, script, exposed), Allow):
        return refusal_result(NAME, decision)
    command = Command(
        argv=("bash", "-c", script),
        root=ctx.workspace.root,
        mode=ctx.policy.mode,
        timeout=timeout,
        principal=ctx.principal,
        hidden=masks.hidden,
        frozen=masks.frozen,
        pinned=masks.pinned,
    )
    result = await ctx.shell.run(command)
    if isinstance(result, Fault):
        return failed(result, NAME)
    explained = hints(ctx.policy, masks, result.output) if result.exit_code else []
    return _answer(result, timeout, ctx.limits, explained)


def _unfit(script: str, timeout: float, limits: Limits) -> Fault | None:
    """What is wrong with a call beyond what a schema can say."""
    if not 0 < timeout <= most_seconds(limits):
        most = f"{most_seconds(limits):g}"
        return Fault(f"timeout must be more than 0 and at most {most} seconds; without it, {limits.shell_seconds:g}.")
    try:
        size = len(script.encode())
    except UnicodeEncodeError:
        return Fault("The command holds half of a surrogate pair, which is no character. Nothing was run.")
    if size > MOST_COMMAND_BYTES:
        return Fault(
            f"The command has {size:,} bytes, and {MOST_COMMAND_BYTES:,} fit. Write it to a file and run the file."
        )
    return Fault("The command holds a NUL character. Nothing was run.") if "\0" in script else None


def _masks(ctx: ToolContext) -> Masks | Fault:
    """What the sandbox covers up for this call: what rules keep back, and what others would run later."""
    root = ctx.workspace.root
    may_write = ctx.policy.mode is not Mode.READ_ONLY
    found = find_masks(root, denied_globs(ctx.policy, Need.READ), _rules_on_writing(ctx.policy) if may_write else ())
    if isinstance(found, Fault) or not may_write:
        return found
    kept = tuple(name for name in (*FROZEN, ".git") if (root / name).exists() and not (root / name).is_symlink())
    frozen = tuple(name for name in kept if name != ".git" or (root / name).is_file())
    pinned = tuple(name for name in kept if name not in frozen)
    return Masks(found.hidden, (*found.frozen, *frozen), (*found.pinned, *pinned))


def _rules_on_writing(policy: Policy) -> tuple[str, ...]:
    """Globs of what must not be written, without the built-in ones: a command may well run `git commit`."""
    built_in = denied_globs(replace(policy, rules=()), Need.WRITE)
    return tuple(glob for glob in denied_globs(policy, Need.WRITE) if glob not in built_in)


def _answer(result: CommandResult, timeout: float, limits: Limits, explained: list[str]) -> ToolResult:
    notes = [*_left_off(result, limits), *_ending(result, timeout, limits), *explained]
    shown = result.output.removesuffix("\n")
    text = "\n\n".join([shown or "(no output)", *notes])
    fields = {
        "exit_code": result.exit_code,
        "duration": round(result.duration, 3),
        "truncated": result.truncated,
        "timed_out": result.timed_out,
        "spool": result.spool,
    }
    if result.exit_code == 0 and not result.timed_out:
        return succeeded(text, {"output": result.output, **fields})
    return ToolResult((Text(text),), is_error=True, meta={META_KEY: fields})


def _left_off(result: CommandResult, limits: Limits) -> list[str]:
    """What is not shown, and where it is; nothing when nothing was left off."""
    if not result.truncated:
        return []
    if result.cut_line_bytes:
        size = f"{len(result.output.encode()):,} of {result.cut_line_bytes:,} bytes"
        what = f"Only the end of line {result.last_line:,} of {result.total_lines:,} is shown: {size}."
    else:
        what = f"Only lines {result.first_line:,} to {result.last_line:,} of {result.total_lines:,} are shown."
    if result.spool is None:
        return [f"[{what} The rest was not kept; send the output to a file to keep it.]"]
    kept = f"The first {limits.spool_bytes:,} bytes are" if result.spool_capped else "All output is"
    return [f"[{what} {kept} in {result.spool}: use read or grep on it.]"]


def _ending(result: CommandResult, timeout: float, limits: Limits) -> list[str]:
    """How it ended, unless it ended well."""
    if result.timed_out:
        most = f"{most_seconds(limits):g}"
        what = f"Timed out after {timeout:g} s: the command and everything it started was killed"
        longer = f"A longer timeout can be given, up to {most} s"
        return [f"[{what}, and its output until then is above. {longer}. {_NO_TERMINAL}]"]
    return [f"[exit code {result.exit_code}{_signal(result.exit_code)}]"] if result.exit_code else []


def _signal(code: int) -> str:
    try:
        return f", killed by {signal.Signals(code - 128).name}"
    except ValueError:
        return ""


def tool(limits: Limits) -> Tool:
    """The tool, with these limits in its description and schema."""
    spec = ToolSpec(
        name=NAME,
        title="Run a shell command",
        description=_description(limits),
        input_schema=_input(limits),
        output_schema=_OUTPUT,
        annotations=ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=True),
    )
    return Tool(spec, Need.EXECUTE, run, tolerating(whole=("timeout",)))


TOOL: Final = tool(Limits())
