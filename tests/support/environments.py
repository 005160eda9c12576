"""The environments that `make test` lays below `.venvs`, each for one purpose and from one lock file."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def environment(name: str) -> Path:
    """The folder of an environment; fails with the command that makes it when it is missing."""
    folder = ROOT / ".venvs" / name
    if not (folder / ".ready").exists():
        raise AssertionError(
            f".venvs/{name} is missing: run 'make .venvs/{name}/.ready', or 'make test', which makes it"
        )
    return folder


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return environment(name) / "bin" / "python"


def node() -> Path:
    """The Node of its environment, which runs the clients written in JavaScript."""
    return environment("node") / "bin" / "node"
