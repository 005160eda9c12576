"""The git state of a workspace: the one command that tells it, and what its output says. Pure.

A repository can name programs that git runs (hooks, filters, monitors, pagers, signature checkers). So git runs in
the sandbox only, read-only, with those turned off that can be, and what it says on stderr is thrown away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcp.workspace.names import printable
from mcp.workspace.shell import CommandResult

#: Changed files and commits that are shown.
MOST_CHANGES: Final = 50
MOST_COMMITS: Final = 5

_OFF: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
    "safe.directory=*",
    "status.submoduleSummary=false",
)
#: Ends the status; no line of it can be the same.
_END: Final = "--"
_SCRIPT: Final = rf"""command -v git >/dev/null || exit 127
g() {{ git --no-pager --no-optional-locks {" ".join(f"-c '{option}'" for option in _OFF)} "$@" 2>/dev/null; }}
g status --porcelain --branch --ignore-submodules=all | sed -n -e '1,{MOST_CHANGES + 1}p' -e '$='
echo {_END}
g log -{MOST_COMMITS} --no-show-signature --no-decorate --format='%h %s'
exit 0
"""
#: The command line. Its output is the status, the number of lines that has, `--`, and the log.
ARGV: Final = ("sh", "-c", _SCRIPT)
_NO_GIT: Final = 127
#: A URL's user and password.
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")


def git_lines(result: CommandResult) -> tuple[str, ...]:
    """What the command's output says, as lines of Markdown; a sentence when there is nothing to say."""
    if result.exit_code == _NO_GIT:
        return ("git is not installed on the server.",)
    if result.timed_out or result.exit_code:
        return ("The git state could not be read in time.",)
    lines = _CREDENTIALS.sub("", result.output).rstrip("\n").split("\n")
    if _END not in lines or not lines[0].startswith("## "):
        return ("The workspace is not a git repository.",)
    end = lines.index(_END)
    branch, *changes, count = lines[:end]
    total = int(count) - 1 if count.isdigit() else len(changes)
    return (f"Branch: {printable(branch[3:])}", *_changes(changes, total), *_commits(lines[end + 1 :]))


def _changes(changes: list[str], total: int) -> Iterator[str]:
    if not changes:
        yield "No uncommitted changes."
        return
    yield f"Uncommitted changes ({total:,}):"
    yield ""
    yield from (f"    {printable(line)}" for line in changes)
    if total > len(changes):
        yield f"    ... and {total - len(changes):,} more"
    yield ""


def _commits(commits: list[str]) -> Iterator[str]:
    if not commits:
        yield "No commits yet."
        return
    yield "Last commits:"
    yield ""
    yield from (f"    {printable(line)}" for line in commits)
