"""Why a command could not get at a path that the sandbox covers up, in words for the end of its output. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Final

from auth.permissions import Allow, Need, Policy, decide_path
from mcp.workspace.sandbox_masks import Masks

#: What git runs when somebody uses the repository outside the sandbox later; the rest of .git stays writable.
FROZEN: Final = (".superpi", ".git/hooks", ".git/config", ".git/config.worktree")

MOST_HINTS: Final = 3
#: The end of a long output is enough to look at, in lines.
_MOST_LINES: Final = 200

#: What the system and git say of a mask.
_COMPLAINT: Final = re.compile(
    r"permission denied|resource busy|read-only file system|can only add regular files|unsupported file type"
    r"|operation not permitted",
    re.IGNORECASE,
)


def hints(policy: Policy, masks: Masks, output: str) -> list[str]:
    """A sentence for each mask that the output complains about, at most `MOST_HINTS`."""
    lines = [line for line in output.splitlines()[-_MOST_LINES:] if _COMPLAINT.search(line)]
    if not lines:
        return []
    hidden = (f"[{name} {_hidden(policy, name)}]" for name in masks.hidden if _named(name, lines))
    frozen = (f"[{name} {_frozen(policy, name)}]" for name in masks.frozen if _named(name, lines))
    return list(islice(chain(hidden, frozen), MOST_HINTS))


def _named(name: str, lines: list[str]) -> bool:
    """Whether a line names the path from the root, or alone, as a command in its folder would."""
    last = re.escape(PurePosixPath(name).name)
    mention = re.compile(rf"((?<![\w.-]){re.escape(name)}|(?<![\w./-])(\./)?{last})(?![\w.-]*\w)")
    return any(mention.search(line) for line in lines)


def _hidden(policy: Policy, name: str) -> str:
    why = _reason(policy, "grep", Need.READ, name)
    return (
        f"is masked: commands cannot read, change or move it{why}. Where git "
        "tracks it, it looks changed: name the other files to add, commit or stash them."
    )


def _frozen(policy: Policy, name: str) -> str:
    if name in FROZEN or name == ".git":
        return "is read-only to commands: what they could plant there would be run outside the sandbox later."
    return f"is read-only to commands{_reason(policy, 'edit', Need.WRITE, name)}."


def _reason(policy: Policy, tool: str, need: Need, name: str) -> str:
    """Which rule it is, as the end of a sentence. The tool set is another question, and no yes lifts a mask."""
    decision = decide_path(replace(policy, tools=policy.tools | {tool}, granted=frozenset()), tool, need, name)
    return "" if isinstance(decision, Allow) else f", since {decision.reason}"
