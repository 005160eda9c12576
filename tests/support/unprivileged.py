"""Server processes as an ordinary user, also when the tests run as root.

A server that runs as root proves nothing about files that it must not reach, and the sandbox behaves differently under
it. So the child drops to an id that owns nothing. It may not be able to run the interpreter of the tests (under a
closed home, say) or read the project; then the system's interpreter of the same version or copies of both serve it.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.environments import ROOT

#: The id that owns nothing: `nobody` on most systems.
NOBODY: Final = 65534
PACKAGES: Final = ("auth", "gateway", "mcp", "migrations", "telemetry")

#: `setpriv` still has root's rights while it executes its command, even one below a closed folder; `env` has none.
_DROP: Final = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--no-new-privs",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "env",
)
#: Copies that this process made.
_COPIES: Final[list[Path]] = []
_PROBE: Final = "import gateway.settings, sqlalchemy, uvicorn"


@dataclass(frozen=True, slots=True)
class Launcher:
    """How to start a program of the project: what comes before its arguments, and the environment it needs."""

    interpreter: tuple[str, ...]
    env: Mapping[str, str]
    module: str = "gateway.cli"

    def superpi(self, *arguments: str) -> list[str]:
        """The command line of `superpi`. `-P`: the folder it is started in is a workspace, not a place of modules."""
        return [*self.interpreter, "-P", "-m", self.module, *arguments]


def as_caller() -> Launcher:
    """Start programs as whoever runs the tests."""
    return Launcher((sys.executable,), _environment([ROOT], _scripts()))


@functools.cache
def unprivileged() -> Launcher:
    """Start programs as an ordinary user: as the caller, or as `NOBODY` when the caller is root."""
    if os.getuid() != 0:
        return as_caller()
    tried = []
    for launcher in _candidates():
        probe = subprocess.run(
            [*launcher.interpreter, "-P", "-B", "-c", _PROBE], capture_output=True, text=True, env=launcher.env, cwd="/"
        )
        if probe.returncode == 0:
            return launcher
        tried.append(f"{' '.join(launcher.interpreter)}: {probe.stderr.strip().rpartition(os.linesep)[2]}")
    raise AssertionError("No interpreter runs the server as an ordinary user. Tried:\n" + "\n".join(tried))


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own that the unprivileged user owns and can reach; pytest's own are closed to other users."""
    path = _reachable_folder()
    try:
        own(path)
        yield path
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder with all that is in it, also what a test closed to its own user."""
    for parent, names, _ in os.walk(path):
        for found in (Path(parent, name) for name in names):
            if not found.is_symlink():
                found.chmod(0o700)
    shutil.rmtree(path)


def own(path: Path) -> None:
    """Give a folder and all that is in it to the unprivileged user."""
    if os.getuid() != 0:
        return
    for found in (path, *path.rglob("*")):
        os.chown(found, NOBODY, NOBODY, follow_symlinks=False)


def remove_copies() -> None:
    """Remove what was copied for the unprivileged user, at the end of the tests: xdist's workers skip `atexit`."""
    unprivileged.cache_clear()
    while _COPIES:
        shutil.rmtree(_COPIES.pop())


def _environment(path: Sequence[Path], scripts: Path) -> dict[str, str]:
    return {
        "PATH": f"{scripts}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
    }


def _scripts() -> Path:
    return Path(sysconfig.get_path("scripts"))


def _candidates() -> Iterator[Launcher]:
    """Ways to start a program, the nearest to what the tests themselves run with first."""
    library = Path(sysconfig.get_path("purelib"))
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    system = [found for name in ("/usr/bin/", "/usr/local/bin/") if (found := Path(name + minor)).exists()]
    yield Launcher((*_DROP, sys.executable), _environment([ROOT], _scripts()))
    for interpreter in system:
        yield Launcher((*_DROP, str(interpreter)), _environment([ROOT, library], _scripts()))
    copy = _copied(library)
    environment = _environment([copy, copy / "library"], copy / "bin")
    for interpreter in (Path(sys.executable).resolve(), *system):
        yield Launcher((*_DROP, str(interpreter)), environment)
    home = _copied_interpreter(copy / "python")
    environment |= {"PYTHONHOME": str(home), "LD_LIBRARY_PATH": str(home / "lib")}
    yield Launcher((*_DROP, str(home / "bin" / minor)), environment)


def _copied(library: Path) -> Path:
    """A copy of the project, its libraries and the programs they bring, where every user can read it."""
    copy = _reachable_folder()
    _COPIES.append(copy)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package)
    shutil.copytree(library, copy / "library")
    (copy / "bin").mkdir()
    shutil.copy2(_scripts() / "rg", copy / "bin" / "rg")
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return copy


def _copied_interpreter(home: Path) -> Path:
    """A copy of the interpreter that runs the tests with its standard library."""
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib")).relative_to(base)
    shutil.copytree(base / library, home / library, ignore=shutil.ignore_patterns("test", "site-packages", "config-*"))
    for shared in (base / "lib").glob("libpython*.so*"):
        shutil.copy2(shared, home / "lib")
    (home / "bin").mkdir()
    shutil.copy2(Path(sys.executable).resolve(), home / "bin")
    subprocess.run(["chmod", "-R", "a+rX", home], check=True)
    return home


def _reachable_folder() -> Path:
    """A new folder below one that every user can enter."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if os.getuid() != 0 or _enters(parent):
            return Path(tempfile.mkdtemp(prefix="superpi-", dir=parent)).resolve()
    raise AssertionError("There is no temporary folder that an ordinary user can enter; set TMPDIR to one")


def _enters(parent: str) -> bool:
    return subprocess.run([*_DROP, "test", "-x", parent], cwd="/").returncode == 0
