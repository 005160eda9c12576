"""What a client is given to reach a server: a URL and a token, or a command to start."""

from __future__ import annotations

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
    token: str | None = None

    @property
    def target(self) -> list[str]:
        """What a client's program takes as its arguments."""
        return [self.url, self.token] if self.token else [self.url]

    @property
    def headers(self) -> dict[str, str]:
        """What a request needs to be let in."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


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
        launcher = unprivileged()
        home = self._home()
        variables = {
            **launcher.env,
            "HOME": str(home),
            "SUPERPI_WORKSPACE": str(home / "workspace"),
            "SUPERPI_DATA_DIR": str(home / "data"),
        }
        return ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *launcher.superpi("stdio")]

    def _served(self, database: str) -> Door:
        settings = {}
        if database == "postgresql":
            postgres = self.stack.enter_context(running())
            settings["SUPERPI_DATABASE_URL"] = self.stack.enter_context(postgres.database())
        home = self._home()
        server = self.stack.enter_context(serving(unprivileged(), home / "workspace", home, **settings))
        return Door(server.url)

    def _home(self) -> Path:
        home = self.stack.enter_context(folder())
        (home / "workspace").mkdir()
        own(home)
        return home
