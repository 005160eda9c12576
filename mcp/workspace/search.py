"""Searching a folder or a file of the workspace with ripgrep: contents by a pattern, files by listing them.

The folder is searched through its open descriptor, ripgrep reads nothing outside it (`search_confine`), follows no
link, and is told about ignore files here, never by its own configuration. What a caller may see is decided by the
functions passed in; messages for users are not made here.

The glob that says which files to search is not handed over as ripgrep's `--glob`, which would overrule ignore
files: it becomes the weakest of the ignore rules, and every file found is held against the glob itself again.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mcp.faults import Fault
from mcp.workspace import kernel
from mcp.workspace.opening import place_of
from mcp.workspace.paths import Located, Workspace
from mcp.workspace.search_globs import Glob, narrowing_to
from mcp.workspace.search_ignores import inherited_rules, remainders
from mcp.workspace.search_process import (
    NOT_STARTED,
    End,
    Ending,
    Feed,
    Halt,
    Process,
    Start,
    drain,
    finish,
    program,
    start,
)
from mcp.workspace.search_records import Collector, FileLines, Line

_EVERY_RUN: Final = ("--no-config", "--color=never", "--no-messages", "--no-mmap")
_WALK: Final = (
    *_EVERY_RUN,
    "--hidden",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-ignore-messages",
    "--glob=!.git/",
    "--glob=!/.superpi/",
)
#: Makes git's ignore files count outside of a repository, and reach into repositories further in.
_WITHOUT_GIT: Final = "--no-require-git"
_OPEN_FILES: Final = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_LIST: Final = ("--files", "--null")
#: On one thread, so that it takes little from the search beside it.
_COUNT: Final = (*_LIST, "--threads=1")
#: Ignore rules that leave out every file, to be followed by those that take some back in.
_NOTHING: Final = ("*", "!*/")
#: How UTF-16 begins; ripgrep reads it as text.
WIDE_BOMS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_WIDE_BYTES: Final = 32 * 1024 * 1024
#: How many files that may not be read are looked at to count them.
MOST_COUNTED: Final = 1000


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for. `limit` matching lines at most, and one more to know that there are more."""

    pattern: str
    literal: bool
    ignore_case: bool
    context: int
    limit: int

    def options(self) -> tuple[str, ...]:
        """The arguments of ripgrep; the pattern is part of one, so it cannot be taken for an option (pi-mono#4018)."""
        return (
            "--json",
            "--line-number",
            f"--max-count={self.limit + 1}",
            f"--context={self.context}",
            *(("--fixed-strings",) if self.literal else ()),
            *(("--ignore-case",) if self.ignore_case else ()),
            # Lets `$` match before CRLF; costs time, so only where it matters.
            *(("--crlf",) if "$" in self.pattern and not self.literal else ()),
            f"--regexp={self.pattern}",
        )


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder to search, the rules of the ignore files above it, and whether it is a git repository."""

    located: Located
    inherited: tuple[str, ...]
    is_repository: bool

    def path_of(self, name: str) -> str:
        """The policy path of a name below the folder."""
        return name if self.located.path == "." else f"{self.located.path.rstrip('/')}/{name}"

    def name_of(self, path: str) -> str:
        """The name below the folder of a policy path."""
        return path if self.located.path == "." else path.removeprefix(f"{self.located.path.rstrip('/')}/")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Files whose content may not be shown: globs as of `auth.permissions.denied_globs`, and the test that decides."""

    globs: tuple[str, ...]
    denied: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Searched:
    """How a search ended. `left_out` files may not be read, whatever is in them; 0 when the search was not complete."""

    ending: Ending
    left_out: int = 0


def as_folder(workspace: Workspace, located: Located) -> Folder:
    """The folder with what its parents in the workspace ignore. Reads their ignore files."""
    place = place_of(str(located.real), workspace.roots)
    inherited = inherited_rules(place.root, place.relative) if place else ()
    return Folder(located, inherited, is_repository=_has_entry(located.fd, ".git"))


def _has_entry(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def plain_name(name: str) -> str:
    """A name as ripgrep gives it, relative to the folder searched."""
    return name.removeprefix("./")


def list_files(folder: Folder, feed: Feed, halt: Halt) -> Ending | Fault:
    """Every file that is not ignored, NUL after each, names as bytes that begin with `./`, in no order."""
    with contextlib.ExitStack() as stack:
        one = _walk(stack, folder, _LIST, folder.inherited)
        processes = _started(stack, (one,), folder.located, halt)
        return processes if isinstance(processes, Fault) else drain(processes[0], feed, halt)


def search_folder(
    folder: Folder, query: Query, glob: Glob | None, unreadable: Unreadable, collector: Collector, halt: Halt
) -> Searched | Fault:
    """Search the files of a folder, and count those that may not be read.

    They are counted by a walk of their own: a count of those that match would tell what is in them.
    """
    hidden = _narrowing_to_hidden(unreadable.globs, folder.located.path)
    chosen = (*_NOTHING, *glob.narrowing) if glob and glob.narrowing else ()
    with contextlib.ExitStack() as stack:
        starts = [_walk(stack, folder, query.options(), (*chosen, *folder.inherited))]
        if hidden:
            starts.append(_walk(stack, folder, _COUNT, (*_NOTHING, *hidden, *folder.inherited)))
        processes = _started(stack, starts, folder.located, halt)
        if isinstance(processes, Fault):
            return processes
        ending = drain(processes[0], collector.feed, halt)
        if ending.end is not End.COMPLETE or not hidden:
            return Searched(ending)
        names = _names(processes[1], halt)
    denied = (unreadable.denied(folder.path_of(name)) for name in names if glob is None or glob.matches(name))
    return Searched(ending, sum(denied))


@functools.lru_cache(maxsize=256)
def _narrowing_to_hidden(globs: tuple[str, ...], path: str) -> tuple[str, ...]:
    """The rules that leave in, of a folder with that policy path, the files that the globs name."""
    below = [part for part in path.split("/") if part not in {"", "."}]
    return narrowing_to(rest for pattern in globs for rest in remainders(pattern, below))


def search_file(file: Located, query: Query, collector: Collector, halt: Halt) -> Searched | Fault:
    """Search one file, whatever ignore files say; it is read through its descriptor."""
    one = Start((*_EVERY_RUN, *query.options(), "--", "-"), "/", file.fd)
    with contextlib.ExitStack() as stack:
        processes = _started(stack, (one,), file, halt)
        return processes if isinstance(processes, Fault) else Searched(drain(processes[0], collector.feed, halt))


def confirmed(folder: Folder, files: Sequence[FileLines]) -> list[FileLines]:
    """The files without those whose lines are not, or no longer, in the file of that very path.

    Between listing and opening, ripgrep can be made to follow a link that takes a file's place. What it read then is
    not shown, whether it lies outside or is a file that the policy keeps from the caller.
    """
    return [file for file in files if _holds(folder, file)]


def _holds(folder: Folder, file: FileLines) -> bool:
    try:
        fd = kernel.open_exact(folder.located.fd, folder.name_of(file.path), kernel.READ)
    except OSError:
        return False
    try:
        beginning = os.pread(fd, 2, 0)
        if beginning in WIDE_BOMS:
            text = os.pread(fd, _MOST_WIDE_BYTES, 0).decode("utf-16", "replace")
            return all(_body(line) in text for line in file.lines if line.end > line.start)
        return all(_body(line) in _text_at(fd, line) for line in file.lines if line.end > line.start)
    except OSError:
        return False
    finally:
        os.close(fd)


def _body(line: Line) -> str:
    return line.text.removeprefix("…").removesuffix("…") if line.cut else line.text


def _text_at(fd: int, line: Line) -> str:
    """What the file holds where the line was, and a BOM's length further."""
    data = os.pread(fd, line.end - line.start + len(codecs.BOM_UTF8), line.start)
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _started(
    stack: contextlib.ExitStack, starts: Sequence[Start], searched: Located, halt: Halt
) -> list[Process] | Fault:
    """The runs, which end with the stack at the latest."""
    rg = program()
    if isinstance(rg, Fault):
        return rg
    try:
        processes = start(rg, starts, (searched.fd,), halt)
    except OSError:
        return NOT_STARTED
    for process in processes:
        stack.callback(finish, process)
    return processes


def _walk(stack: contextlib.ExitStack, folder: Folder, options: Sequence[str], rules: Sequence[str]) -> Start:
    """A run in a folder. What it needs stays open as long as the stack."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    stack.callback(os.close, null)
    located = folder.located
    where = f"/proc/self/fd/{located.fd}" if kernel.has_openat2() else str(located.real)
    flags = [*_WALK, *options] if folder.is_repository else [*_WALK, _WITHOUT_GIT, *options]
    if not rules:
        return Start((*flags, "--", "./"), where, null)
    kept = stack.enter_context(_rules_file("\n".join([*rules, ""])))
    return Start((*flags, f"--ignore-file={_OPEN_FILES}/{kept}", "--", "./"), where, null, (kept,))


@contextlib.contextmanager
def _rules_file(text: str) -> Iterator[int]:
    """A file without a name that holds the rules."""
    data = text.encode("utf-8", "surrogateescape")
    if sys.platform == "linux":
        with open(os.memfd_create("rules"), "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            file.write(data)
            yield file.fileno()
    else:
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(data)
            file.seek(0)
            yield file.fileno()


def _names(process: Process, halt: Halt) -> list[str]:
    """The names that a run lists, at most `MOST_COUNTED` of them."""
    listed = bytearray()

    def feed(data: bytes) -> bool:
        listed.extend(data)
        return listed.count(b"\0") < MOST_COUNTED

    drain(process, feed, halt)
    return [plain_name(os.fsdecode(name)) for name in bytes(listed).split(b"\0")[:-1]][:MOST_COUNTED]
