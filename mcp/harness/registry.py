"""The harnesses of a server: those that ship with it, and those of a team's folder, as they are when read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp.harness.definition import Harness, parse_harness
from mcp.harness.frontmatter import HarnessError

#: The harnesses that ship, in the order in which they are listed; their files lie beside this module.
SHIPPED: Final = ("super-pi-code", "super-pi-assistant", "super-pi-librarian", "super-pi-planner")
#: A definition is a prompt; a larger file is a mistake.
MOST_BYTES: Final = 1024 * 1024

_SHIPPED_FOLDER: Final = Path(__file__).with_name("shipped")


@dataclass(frozen=True, slots=True)
class Registry:
    """The harnesses in a stable order: the shipped ones, then those of the team by id."""

    harnesses: tuple[Harness, ...]
    default: str = SHIPPED[0]

    def get(self, id: str) -> Harness | None:
        """The harness with exactly that id."""
        return next((harness for harness in self.harnesses if harness.id == id), None)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids in order."""
        return tuple(harness.id for harness in self.harnesses)

    def __iter__(self) -> Iterator[Harness]:
        return iter(self.harnesses)

    def __len__(self) -> int:
        return len(self.harnesses)


def load(folder: Path | None) -> Registry:
    """Read the shipped harnesses and the `*.md` files that lie directly in `folder`.

    A team's file with the id of a shipped harness takes its place. Names that start with a dot are left out,
    as a mounted ConfigMap keeps its data behind them. Raises `HarnessError` for the first file that is broken.
    """
    shipped = [_read(_SHIPPED_FOLDER / f"{id}.md") for id in SHIPPED]
    team = {} if folder is None else _team(folder)
    own = [team[id] for id in sorted(team) if id not in SHIPPED]
    return Registry((*(team.get(harness.id, harness) for harness in shipped), *own))


def _team(folder: Path) -> dict[str, Harness]:
    found: dict[str, Harness] = {}
    for path in _files(folder):
        harness = _read(path)
        if (other := found.get(harness.id)) is not None:
            raise HarnessError(path.name, None, f"the id {harness.id!r} is already that of {other.source}")
        found[harness.id] = harness
    return found


def _files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise HarnessError(str(folder), None, f"the folder of harnesses cannot be read: {error.strerror}") from None
    return [path for path in paths if path.suffix == ".md" and not path.name.startswith(".") and not path.is_dir()]


def _read(path: Path) -> Harness:
    try:
        if not path.is_file():
            raise HarnessError(path.name, None, "not a regular file, or a link to nothing")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise HarnessError(path.name, None, f"the file cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise HarnessError(path.name, None, f"the file is larger than {MOST_BYTES:,} bytes")
    return parse_harness(content, path.name)
