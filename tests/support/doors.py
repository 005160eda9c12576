"""What a client is given to reach a server: a URL and a token, or a command to start."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.asking import HARNESS
from tests.support.postgres import running
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Servers over HTTP, by the database behind them.
DATABASES: Final = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Way:
    """What a client is given to connect in the harness that asks, and the file of that harness."""

    target: list[str]
    harness: Path


@dataclass(frozen=True, slots=True)
class Door:
    """A way in over HTTP."""

    url: str
    token: str
    harness: Path | None = None

    @property
    def careful(self) -> Way:
        """The same, in the harness that asks."""
        assert self.harness is not None, "the server has no such harness"
        return Way([f"{self.url}?harness=careful", self.token], self.harness)


def _harness(home: Path) -> Path:
    return home / "harnesses" / "careful.md"


def _settings(home: Path) -> dict[str, str]:
    """A server of a team that has a harness of its own, which nobody has to use."""
    return {"SUPERPI_HARNESS_DIR": str(_harness(home).parent)}


def _variables(home: Path) -> dict[str, str]:
    return {
        **unprivileged().env,
        **_settings(home),
        "HOME": str(home),
        "SUPERPI_WORKSPACE": str(home / "workspace"),
        "SUPERPI_DATA_DIR": str(home / "data"),
    }


def _issued(home: Path, settings: Mapping[str, str]) -> str:
    """A new token, made by the command beside the running server; from then on no request is let in without one."""
    made = subprocess.run(
        unprivileged().superpi("token", "create", "--principal", "local:visitor"),
        capture_output=True,
        text=True,
        cwd=home,
        env={**_variables(home), **settings},
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@dataclass(slots=True)
class Doors:
    """Servers, each started when it is first asked for; the stack ends them."""

    stack: ExitStack
    _open: dict[str, Door] = field(default_factory=dict)

    def http(self, database: str) -> Door:
        """A server on that database."""
        if database not in self._open:
            self._open[database] = self._served(database)
        return self._open[database]

    def careful(self, door: str) -> Way:
        """The server on that database, or for "stdio" a command of its own, in the harness that asks."""
        return self._stdio() if door == "stdio" else self.http(door).careful

    def _stdio(self) -> Way:
        """A command that serves a workspace of its own; `env -i`, for clients pass on little of their environment."""
        home = self._home()
        variables = [f"{name}={value}" for name, value in _variables(home).items()]
        return Way(["env", "-i", *variables, *unprivileged().superpi("stdio", "--harness", "careful")], _harness(home))

    def _served(self, database: str) -> Door:
        home = self._home()
        settings = _settings(home)
        if database == "postgresql":
            postgres = self.stack.enter_context(running())
            settings["SUPERPI_DATABASE_URL"] = self.stack.enter_context(postgres.database())
        server = self.stack.enter_context(serving(unprivileged(), home / "workspace", home, **settings))
        return Door(server.url, _issued(home, settings), _harness(home))

    def _home(self) -> Path:
        home = self.stack.enter_context(folder())
        (home / "workspace").mkdir()
        _harness(home).parent.mkdir()
        _harness(home).write_text(HARNESS, "utf-8")
        own(home)
        return home
