"""What a search of file contents came to, in words and as data. Pure.

Files come by path, and within one file lines come in order. Which matches are shown when there are more than the
limit is not fixed: files are searched in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.tools.amounts import Count, count, kibibytes
from mcp.tools.results import failed, succeeded
from mcp.workspace.names import printable, valid
from mcp.workspace.search import MOST_COUNTED, Query, Searched
from mcp.workspace.search_globs import Glob
from mcp.workspace.search_process import End, Ending
from mcp.workspace.search_records import FileLines, Full

NAME: Final = "grep"
MOST_MATCHES: Final = 1000
#: The part of a call's time that the search itself may take; the rest is for the answer.
SEARCH_SHARE: Final = 0.95
ONE_LINE: Final = Fault(
    "A pattern matches within one line, so it cannot contain a line break. Search for one of the lines, with context."
)
_SHOWN_PATTERN: Final = 200
_NARROW: Final = "Search a smaller path, only some files with glob, or a more exact pattern."
_NO_NEWLINE: Final = 'the literal "\\n" is not allowed'


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asks for; `where` is the folder or file in words."""

    query: Query
    glob: Glob | None
    where: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. `files_searched` is None when it did not come to its end."""

    files: list[FileLines]
    full: Full | None
    files_searched: int | None
    searched: Searched

    @property
    def may_lack(self) -> bool:
        """Whether there may be more matches."""
        ending = self.searched.ending
        return self.full is not None or ending.end is not End.COMPLETE or ending.status < 0


def match_count(limits: Limits) -> Count:
    """How many matching lines a call gets."""
    return count(limits.grep_matches, MOST_MATCHES, limits.output_lines)


def result(asked: Asked, found: Found, limits: Limits) -> ToolResult:
    """What to answer. Pure."""
    ending = found.searched.ending
    if ending.end is End.COMPLETE and ending.status > 1 and ending.complaint:
        return failed(_engine_fault(asked.query, ending.complaint), NAME)
    if not found.files and (ending.end is End.OUT_OF_TIME or ending.status < 0):
        return failed(_unfinished(ending, limits), NAME)
    head = _head(asked, found, limits)
    lines = _lines(found.files, context=asked.query.context > 0)
    notes = [f"[{note}]" for note in _notes(asked, found, limits)]
    parts = ["\n".join(part) for part in (head, lines, notes) if part]
    return succeeded("\n\n".join(parts), structured(found.files, found))


def _engine_fault(query: Query, complaint: str) -> Fault:
    """What ripgrep says about a pattern, without its advice on options that this tool does not have."""
    if _NO_NEWLINE in complaint:
        return ONE_LINE
    message = complaint.removeprefix("rg: ").split("\n\nConsider", 1)[0].strip()
    if query.literal:
        return Fault(f"The pattern cannot be searched for: {message}")
    return Fault(
        f"The pattern is not a valid regular expression: {message}\n"
        "Correct it, or set literal to true to search for the text as it is."
    )


def _unfinished(ending: Ending, limits: Limits) -> Fault:
    """A search that found nothing before it was ended."""
    if ending.end is End.OUT_OF_TIME:
        return Fault(
            f"Nothing was found in {limits.tool_seconds * SEARCH_SHARE:g} s, and then the search was stopped. {_NARROW}"
        )
    return Fault(
        f"Nothing was found before the search ran out of memory, as on a line of hundreds of megabytes. {_NARROW}"
    )


def _head(asked: Asked, found: Found, limits: Limits) -> list[str]:
    """What is to be known before the matches, or instead of them."""
    if found.searched.ending.end is End.OUT_OF_TIME:
        return [f"The search was stopped after {limits.tool_seconds * SEARCH_SHARE:g} s; partial results follow."]
    if found.files:
        return []
    glob = asked.glob.pattern if asked.glob else None
    if glob and found.files_searched == 0:
        return [f"No file in {asked.where} fits the glob {printable(glob)}, so nothing was searched."]
    among = f" (files: {printable(glob)})" if glob else ""
    return [f"Nothing matches {_brief(asked.query.pattern)} in {asked.where}{among}."]


def _brief(pattern: str) -> str:
    text = printable(pattern)
    return text if len(text) <= _SHOWN_PATTERN else f"{text[:_SHOWN_PATTERN]}…"


def _lines(files: Iterable[FileLines], *, context: bool) -> list[str]:
    """`path:line: text` and `path-line- text`; with context `--` where lines are left out."""
    shown: list[str] = []
    for file in files:
        path = printable(file.path)
        expected = 0
        for line in file.lines:
            if context and shown and line.number != expected:
                shown.append("--")
            expected = line.number + 1
            mark = ":" if line.matched else "-"
            shown.append(f"{path}{mark}{line.number}{mark} {line.text}")
    return shown


def _notes(asked: Asked, found: Found, limits: Limits) -> Iterator[str]:
    ending = found.searched.ending
    if found.full is not None:
        yield f"Stopped at {_bound(found.full, asked.query.limit, limits)}; there are more. {_NARROW}"
    if cut := sum(line.cut for file in found.files for line in file.lines):
        yield f"{_lines_are(cut)} longer than {limits.grep_line_chars} characters and cut at …; read shows more."
    if any(file.binary for file in found.files):
        yield "Binary data was met in a file; matches after it are not shown."
    if ending.end is End.COMPLETE and ending.status < 0:
        yield f"The search ran out of memory and ended early; there may be more matches. {_NARROW}"
    if ending.end is End.COMPLETE and ending.status > 1:
        yield "Some files or folders could not be read."
    if found.searched.left_out:
        yield _left_out(found.searched.left_out)


def _bound(full: Full, limit: int, limits: Limits) -> str:
    match full:
        case Full.MATCHES:
            return f"the limit of {limit} {'match' if limit == 1 else 'matches'}" + (
                f" (at most {match_count(limits).most} can be asked for)" * (limit < match_count(limits).most)
            )
        case Full.LINES:
            return f"{limits.output_lines} lines"
        case Full.SIZE:
            return f"{kibibytes(limits.output_bytes)}"
        case _:
            assert_never(full)


def _lines_are(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"


def _left_out(count: int) -> str:
    files = (
        "1 file was" if count == 1 else f"{count} files were" if count < MOST_COUNTED else f"{count} files or more were"
    )
    return f"{files} left out by the permission policy."


def structured(files: Iterable[FileLines], found: Found | None = None) -> Mapping[str, Any]:
    """The matches as the output schema has them."""
    matches = [
        {"path": valid(file.path), "line": line.number, "text": line.text, "cut": line.cut}
        for file in files
        for line in file.lines
        if line.matched
    ]
    return {
        "matches": matches,
        "truncated": found is not None and found.may_lack,
        "files_left_out": found.searched.left_out if found else 0,
    }
