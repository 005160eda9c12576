"""What a client is given to reach a server: a URL and a token, or a command to start."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.postgres import running
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: Servers over HTTP, by the database behind them.
DATABASES: Final = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Door:
    """A way in over HTTP."""

    url: str
    token: str

    @property
    def target(self) -> list[str]:
        """What a client's program takes as its arguments."""
        return [self.url, self.token]


def _variables(home: Path) -> dict[str, str]:
    return {
        **unprivileged().env,
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

    def stdio(self) -> list[str]:
        """A command that serves a workspace of its own; `env -i`, for clients pass on little of their environment."""
        variables = _variables(self._home()).items()
        return ["env", "-i", *(f"{name}={value}" for name, value in variables), *unprivileged().superpi("stdio")]

    def _served(self, database: str) -> Door:
        settings = {}
        if database == "postgresql":
            postgres = self.stack.enter_context(running())
            settings["SUPERPI_DATABASE_URL"] = self.stack.enter_context(postgres.database())
        home = self._home()
        server = self.stack.enter_context(serving(unprivileged(), home / "workspace", home, **settings))
        return Door(server.url, _issued(home, settings))

    def _home(self) -> Path:
        home = self.stack.enter_context(folder())
        (home / "workspace").mkdir()
        own(home)
        return home
