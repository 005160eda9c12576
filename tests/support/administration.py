"""A server with an administrator: how tests ask the administrative interface, and `/mcp` beside it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import httpx

from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from tests.support.postgres import Postgres
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, unprivileged

TOKENS: Final = "/admin/v1/tokens"
#: How long a change may take to be felt in another process, in seconds (security promises).
ELSEWHERE: Final = 2.0


@dataclass(slots=True)
class Office:
    """A server, the command beside it, and the token of `local:root`, who administers it."""

    server: Server
    settings: Mapping[str, str]
    http: httpx.Client
    admin: str = ""

    @property
    def base(self) -> str:
        """The server's URL without a path."""
        return self.server.url.removesuffix("/mcp")

    def superpi(self, *arguments: str) -> str:
        """What the command printed."""
        launcher = unprivileged()
        home = {"HOME": str(self.server.home), "SUPERPI_WORKSPACE": str(self.server.workspace)}
        home |= {"SUPERPI_DATA_DIR": str(self.server.home / "data")}
        done = subprocess.run(
            launcher.superpi(*arguments),
            env={**launcher.env, **home, **self.settings},
            cwd=self.server.workspace,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def token(self, name: str, *arguments: str) -> str:
        """A token that the command made."""
        return self.superpi("token", "create", "--principal", f"local:{name}", *arguments)

    def ask(self, method: str, path: str, *, token: str | None = None, **options: Any) -> httpx.Response:
        """Ask as the administrator, or with another token; an empty one for none."""
        shown = self.admin if token is None else token
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        headers |= options.pop("headers", {})
        return self.http.request(method, self.base + path, headers=headers, **options)

    def create(self, **wanted: Any) -> dict[str, Any]:
        """A token that the interface made, with its secret."""
        answer = self.ask("POST", TOKENS, json={"principal": "local:alice"} | wanted)
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def is_let_in(self, secret: str, base: str | None = None) -> bool:
        """Whether `/mcp` takes that token."""
        message = {"jsonrpc": "2.0", "method": "notifications/none"}
        headers = {"authorization": f"Bearer {secret}", "accept": "application/json"}
        answer = self.http.post((base or self.base) + "/mcp", json=message, headers=headers)
        return answer.status_code != 401

    def audit(self, principal: str | None = None) -> list[dict[str, Any]]:
        """The rows of the audit log, the oldest first, read beside the server: the command takes a second to start."""

        async def read() -> list[dict[str, Any]]:
            file = f"sqlite:///{self.server.home / 'data' / 'superpi.db'}"
            database = open_database(self.settings.get("SUPERPI_DATABASE_URL", file), readers=1, writers=1)
            try:
                return [row.plain() for row in await SqlAudit(database).page(principal=principal, limit=10_000)]
            finally:
                await database.close()

        return asyncio.run(read())


@contextmanager
def administered(postgres: Postgres | None = None, **settings: str) -> Iterator[Office]:
    """A running server with an administrator, on SQLite or on a new database of that PostgreSQL."""
    with folder() as workspace, folder() as home, postgres.database() if postgres else nullcontext("") as url:
        settings |= {"SUPERPI_DATABASE_URL": url} if url else {}
        with (
            serving(unprivileged(), workspace, home, **settings) as server,
            httpx.Client(timeout=30, trust_env=False) as http,
        ):
            office = Office(server, settings, http)
            office.admin = office.token("root", "--kind", "adm")
            felt(lambda: office.ask("GET", TOKENS).status_code == 200)
            yield office


def felt(condition: Callable[[], bool], seconds: float = ELSEWHERE) -> None:
    """Wait until a change is felt, at most as long as promised and a second for a busy machine."""
    deadline = time.monotonic() + seconds + 1
    while not condition():
        assert time.monotonic() < deadline, "the change was not felt in time"
        time.sleep(0.02)
