"""What is measured, as a table: one row is one server, and how it is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from tests.benchmarks import calls, floors
from tests.benchmarks.asking import Shot, ask
from tests.benchmarks.calls import CALLS, Call
from tests.benchmarks.receiver import Receiver
from tests.support import postgres
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, own, unprivileged

_TYPES: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Target(Protocol):
    """A server that runs."""

    def shot(self, call: Call) -> Shot:
        """The request that asks it for that call."""


@dataclass(slots=True)
class Surroundings:
    """What the servers of one benchmark share: their cores, the collector, and the answers of the first product."""

    cores: Cores
    receiver: Receiver
    answers: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """One row. The answers of a floor are those that the product gave, so products come first."""

    name: str
    start: Callable[[Surroundings], AbstractContextManager[Target]]
    floor: bool = False


@dataclass(frozen=True, slots=True)
class Cores:
    """One core for a server, the others for everything else; no numbers where the system cannot pin."""

    server: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    @classmethod
    def here(cls) -> Cores:
        """The cores of this machine. Raises SystemExit where there is just one."""
        if not hasattr(os, "sched_setaffinity"):
            return cls()
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise SystemExit("The benchmark needs two cores: one for the server, one for the load.")
        return cls(frozenset(cores[-1:]), frozenset(cores[:-1]))


@contextmanager
def pinned(cores: frozenset[int]) -> Iterator[None]:
    """Processes that are started in the block run on those cores alone."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Product:
    """A `superpi serve` with a token; each shot gets a session of its own, begun as a host does."""

    server: Server
    token: str

    def shot(self, call: Call) -> Shot:
        """The request, in a session that `initialize` has just opened."""
        headers = {**_TYPES, "Authorization": f"Bearer {self.token}", **call.headers}
        if call.in_session:
            begin = next(row for row in CALLS if row.method == "initialize")
            opened = ask(Shot(self.server.url, headers, begin.body))
            headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": calls.REVISION}
            ready = Shot(self.server.url, headers, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            assert ask(ready).status == 202
        return Shot(self.server.url, headers, call.body)


@dataclass(frozen=True, slots=True)
class Floor:
    """A program that answers from a table. Its shots have the headers of the product's, for they are parsed too."""

    url: str

    def shot(self, call: Call) -> Shot:
        """The request, with stand-ins for what only the product reads."""
        headers = {**_TYPES, "Authorization": f"Bearer spi_pat_{'0' * 49}", **call.headers}
        if call.in_session:
            headers |= {"Mcp-Session-Id": "0" * 43, "MCP-Protocol-Version": calls.REVISION}
        return Shot(f"{self.url}?{_key(call.name)}", headers, call.body)


def _key(name: str) -> str:
    """The name of a call as a query."""
    return name.replace(",", "").replace(" ", "-")


#: Requests are counted, and none of a benchmark is too many.
_UNBOUND: Final = {"SUPERPI_RATES__SECONDS": "1", "SUPERPI_RATES__CALLS": "1000000"}


def _sqlite(around: Surroundings) -> AbstractContextManager[Product]:
    return _product(around, {"SUPERPI_OTLP_ENDPOINT": around.receiver.endpoint("sqlite")})


def _without_spans(around: Surroundings) -> AbstractContextManager[Product]:
    return _product(around, {})


@contextmanager
def _postgresql(around: Surroundings) -> Iterator[Product]:
    with pinned(around.cores.others), postgres.running() as server, server.database() as url:
        settings = {"SUPERPI_DATABASE_URL": url, "SUPERPI_OTLP_ENDPOINT": around.receiver.endpoint("postgresql")}
        with _product(around, settings) as product:
            yield product


@contextmanager
def _product(around: Surroundings, settings: Mapping[str, str]) -> Iterator[Product]:
    """The product as an operator runs it: metrics counted, calls audited, a token demanded, and these settings."""
    settings = {**_UNBOUND, **settings}
    with folder() as workspace, folder() as home:
        calls.fill(workspace)
        own(workspace)
        with pinned(around.cores.server), serving(unprivileged(), workspace, home, **settings) as server:
            product = Product(server, _token(server, settings))
            _take_answers(around, product)
            yield product


def _token(server: Server, settings: Mapping[str, str]) -> str:
    launcher = unprivileged()
    home = {"HOME": str(server.home), "SUPERPI_DATA_DIR": str(server.home / "data")}
    command = launcher.superpi("token", "create", "--principal", "local:bench")
    environment = {**launcher.env, **home, **settings}
    done = subprocess.run(
        command, env=environment, cwd=server.workspace, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return done.stdout.decode().strip()


def _take_answers(around: Surroundings, product: Product) -> None:
    """Keep the answers of the first product for the floors, and see that those of every other are the same bytes."""
    for call in CALLS:
        answer = ask(product.shot(call))
        wrong = answer.status != 200 or b'"error"' in answer.body[:60] or b'"isError"' in answer.body
        if wrong or around.answers.setdefault(call.name, answer.body) != answer.body:
            raise SystemExit(f"{call.name} was answered with {answer.status} {answer.body[:500]!r}")


@contextmanager
def _floor(kind: str, around: Surroundings) -> Iterator[Floor]:
    with folder() as home:
        program, bodies = home / "floors.py", home / "bodies.json"
        program.write_text(Path(floors.__file__).read_text())
        texts = {_key(name): body.decode() for name, body in around.answers.items()}
        bodies.write_text(json.dumps(texts))
        own(home)
        launcher = unprivileged()
        command = [*launcher.interpreter, "-P", program, kind, bodies]
        with pinned(around.cores.server):
            process = subprocess.Popen(command, cwd=home, env=dict(launcher.env), stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield Floor(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


SUBJECTS: Final = (
    Subject("Super-Pi, SQLite", _sqlite),
    Subject("Super-Pi, PostgreSQL", _postgresql),
    Subject("Super-Pi, SQLite, no spans", _without_spans),
    Subject("bare FastAPI route", partial(_floor, "fastapi"), floor=True),
    Subject("bare uvicorn ASGI", partial(_floor, "asgi"), floor=True),
)
