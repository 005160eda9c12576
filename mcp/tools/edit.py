"""The tool `edit`: exact replacements in one file, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from auth.permissions import Need, decide_path
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import ToolAnnotations, ToolSpec
from mcp.tools.arguments import normalize_edit
from mcp.tools.base import Tool, ToolContext
from mcp.tools.results import failed, succeeded
from mcp.workspace.changes import CANCELLED, Gate, change
from mcp.workspace.complaints import shown
from mcp.workspace.diffs import Diff, unified
from mcp.workspace.files import read_whole, replace, under_lock
from mcp.workspace.locks import Busy
from mcp.workspace.matching import Change, Edit, apply, plan
from mcp.workspace.names import printable, valid
from mcp.workspace.paths import Target
from mcp.workspace.views import Likeness

NAME: Final = "edit"

_BOM: Final = "\ufeff"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")

_DESCRIPTION: Final = (
    "Change parts of a text file of the workspace. Each edit replaces one piece of text: old_text must occur exactly"
    " once in the file, so take enough lines with it to make it unique, and copy it with its indentation. All edits are"
    " matched against the file as it is before the call, must not overlap, and are made all or not at all. Give"
    " several edits of one file in one call. Line endings, and everything outside the matches, stay as they are. The"
    " result shows the changes as a unified diff."
)

_INPUT: Final = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the workspace root, for example src/app.py.",
        },
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "The replacements to make.",
            "items": {
                "type": "object",
                "properties": {
                    "old_text": {
                        "type": "string",
                        "description": "The text to replace, as it is in the file; it must occur exactly once.",
                    },
                    "new_text": {
                        "type": "string",
                        "description": "The text to put in its place, taken literally. Empty to delete.",
                    },
                },
                "required": ["old_text", "new_text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}

_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file that was changed, links followed."},
        "edits": {"type": "integer", "minimum": 1, "description": "How many edits were made."},
        "added": {"type": "integer", "minimum": 0, "description": "Lines that the change adds."},
        "removed": {"type": "integer", "minimum": 0, "description": "Lines that the change removes."},
        "first_line": {"type": "integer", "minimum": 1, "description": "The first changed line, in the new file."},
        "diff": {"type": "string", "description": "The change as a unified diff."},
        "diff_truncated": {"type": "boolean", "description": "Whether the diff is cut."},
        "inexact": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "description": "Indexes of edits that matched only with differences in blanks or typography ignored.",
        },
    },
    "required": ["path", "edits", "added", "removed", "first_line", "diff", "diff_truncated", "inexact"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Edited:
    """What was changed in which file."""

    path: str
    changes: Sequence[Change]
    diff: Diff


async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Make `edits` in `path`."""
    given: str = arguments["path"]
    edits = [Edit(edit["old_text"], edit["new_text"]) for edit in arguments["edits"]]

    def attempt(gate: Gate) -> ToolResult | Busy:
        outcome = _edit(ctx, given, edits, gate)
        return outcome if isinstance(outcome, Busy) else _result(given, outcome)

    result = await change(attempt, seconds=ctx.limits.tool_seconds / 2)
    return failed(result, NAME) if isinstance(result, Fault) else result


def _edit(ctx: ToolContext, given: str, edits: Sequence[Edit], gate: Gate) -> _Edited | Busy | Fault:
    """Edit under the lock, in a thread."""
    target = ctx.workspace.target(given, lambda path: decide_path(ctx.policy, NAME, Need.WRITE, path), create=False)
    if isinstance(target, Fault):
        return target
    with target:
        return under_lock(target, lambda: _change(target, edits, gate, ctx.limits))


def _change(target: Target, edits: Sequence[Edit], gate: Gate, limits: Limits) -> _Edited | Fault:
    """Read, match, replace. Bytes that are not UTF-8 pass through as surrogates."""
    before = read_whole(target, limit=limits.edit_file_bytes)
    if isinstance(before, Fault):
        return before
    name = shown(target.given)
    if before.startswith(_UTF16):
        return Fault(f"{name} is UTF-16 text, and edit changes UTF-8. Use bash to change or convert it.")
    text = before.decode("utf-8", "surrogateescape")
    changes = plan(text, edits, name)
    if isinstance(changes, Fault):
        return changes
    try:
        after = apply(text, changes).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return Fault("new_text is not valid Unicode: it contains half of a surrogate pair.")
    if gate.is_shut:
        return CANCELLED
    written = replace(target, after, gate, expected=before)
    if isinstance(written, Fault):
        return written
    diff = unified(
        printable(target.path), *_without_mark(text, changes),
        lines=limits.output_lines, size=limits.output_bytes, width=limits.grep_line_chars,
    )  # fmt: skip
    return _Edited(target.path, changes, diff)


def _without_mark(text: str, changes: Sequence[Change]) -> tuple[str, Sequence[Change]]:
    """The text and its changes without the BOM, which nobody sees, unless it is what changes."""
    if not text.startswith(_BOM) or any(not change.start and not change.text.startswith(_BOM) for change in changes):
        return text, changes
    return text[1:], [
        Change(
            max(change.start - 1, 0),
            change.end - 1,
            change.text if change.start else change.text.removeprefix(_BOM),
            change.likeness,
        )
        for change in changes
    ]


def _result(given: str, outcome: _Edited | Fault) -> ToolResult:
    """What to tell about an edit."""
    if isinstance(outcome, Fault):
        return failed(outcome, NAME)
    diff = outcome.diff
    inexact = [index for index, change in enumerate(outcome.changes) if change.likeness is Likeness.TOLERANT]
    made = "1 edit" if len(outcome.changes) == 1 else f"{len(outcome.changes)} edits"
    words = [f"Made {made} in {shown(given)} (+{diff.added} -{diff.removed} lines)."]
    words += [f"edits[{index}] matched with blanks or typography ignored." for index in inexact]
    cut = ["[The diff is cut here. Read the file to see the rest.]"] if diff.cut else []
    structured = {
        "path": valid(outcome.path),
        "edits": len(outcome.changes),
        "added": diff.added,
        "removed": diff.removed,
        "first_line": diff.first_line,
        "diff": diff.text,
        "diff_truncated": diff.cut,
        "inexact": inexact,
    }
    return succeeded("\n".join([" ".join(words), "", diff.text, *cut]), structured)


def tool(_: Limits) -> Tool:
    """The tool; neither its description nor its schema has a number that is a limit."""
    return Tool(
        spec=ToolSpec(
            name=NAME,
            title="Edit a file",
            description=_DESCRIPTION,
            input_schema=_INPUT,
            output_schema=_OUTPUT,
            annotations=ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False),
        ),
        need=Need.WRITE,
        run=run,
        normalize=normalize_edit,
    )


TOOL: Final = tool(Limits())
