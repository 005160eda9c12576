"""A server whose database is away, behind or too new: it stays up and says so, and serves once it can (case C13)."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import httpx
import psycopg
import pytest
from psycopg import sql

from gateway.store.migrate import migrate
from tests.support import postgres as support
from tests.support.raw_http import INITIALIZE
from tests.support.relay import linked
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, unprivileged

#: Seconds from the database's return until the server is ready, and from SIGTERM until it has ended.
READY_WITHIN = 10.0
ENDED_WITHIN = 10.0
AWAY = "the database is away"
BEHIND = "the schema is behind: run superpi migrate"


@pytest.fixture(scope="module")
def postgres():
    with support.running() as server:
        yield server


@pytest.fixture
def empty(postgres):
    """The URL of a database without a table."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def place(stack):
    """A workspace and a home, as the arguments of a server."""
    return unprivileged(), stack.enter_context(folder()), stack.enter_context(folder())


def later_at(port, role="superpi", password=support.PASSWORD, database="postgres"):
    """The URL of a database where nothing listens yet."""
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{database}"


def probe(server, path="/readyz"):
    answer = httpx.get(server.url.removesuffix("/mcp") + path, timeout=30, trust_env=False, verify=False)
    return answer.status_code, answer.json()


def told(server):
    """What `/readyz` says of the database."""
    status, body = probe(server)
    return status, body["status"], body["store"], body["store_detail"]


def post(server, message, session=None):
    headers = {"accept": "application/json"} | ({"mcp-session-id": session} if session else {})
    return httpx.post(server.url, json=message, headers=headers, timeout=30, trust_env=False, verify=False)


def refusal(answer):
    return answer.status_code, answer.headers["retry-after"].isdigit(), answer.json()["error"]["code"]


def becomes_ready(server):
    """Wait until it is, not longer than it may take, and see that it serves."""
    began = time.monotonic()
    while told(server)[0] != 200:
        assert time.monotonic() - began < READY_WITHIN, server.said
    assert post(server, INITIALIZE).status_code == 200
    assert told(server) == (200, "ok", "ok", "")


def warnings(server):
    return [line for line in server.said.splitlines() if " WARNING " in line and "not ready" in line]


def superpi(place, *arguments, **settings):
    launcher, workspace, home = place
    own = {"HOME": str(home), "SUPERPI_WORKSPACE": str(workspace), "SUPERPI_DATA_DIR": str(home / "data")}
    return subprocess.run(
        launcher.superpi(*arguments),
        env={**launcher.env, **own, **settings},
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@contextmanager
def launched(place, **settings):
    """A server that need not get as far as saying that it serves; it listens on a port that is chosen here."""
    server = Server(*place, settings, url=f"http://127.0.0.1:{support.free_port()}/mcp")
    server.launch()
    try:
        yield server
    finally:
        if server.process is not None:
            server.kill9()


def listens(server):
    """Wait until it answers its first probe."""
    began = time.monotonic()
    while True:
        try:
            return probe(server, "/livez")
        except httpx.TransportError:
            assert time.monotonic() - began < 60, server.said
            assert server.process.poll() is None, server.said


def ended(server):
    """Its exit status after a signal, given in time."""
    os.kill(server.pid, signal.SIGTERM)
    return server.ended(ENDED_WITHIN)


def test_a_server_started_before_its_database_serves_once_that_is_there(place, stack):
    port = support.free_port()
    server = stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=later_at(port)))
    assert probe(server, "/livez") == (200, {"status": "ok"})
    assert told(server) == (503, AWAY, "unavailable", "The database refuses connections: is it running?")
    assert refusal(post(server, INITIALIZE)) == (503, True, 503)
    stack.enter_context(support.running(port))
    becomes_ready(server)
    assert len([line for line in warnings(server) if "refuses connections" in line]) == 1
    assert support.PASSWORD not in server.said


def test_three_servers_started_before_their_database_all_serve_once_that_is_there(stack):
    port = support.free_port()
    places = [(unprivileged(), stack.enter_context(folder()), stack.enter_context(folder())) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        url = later_at(port)
        start = lambda place: stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=url))  # noqa: E731
        servers = list(threads.map(start, places))
        stack.enter_context(support.running(port))
        list(threads.map(becomes_ready, servers))


def test_a_role_and_a_database_that_are_made_later_are_waited_for(place, stack, postgres):
    url = later_at(postgres.port, "late", "late-secret-0451", "late")
    server = stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=url))
    assert told(server) == (503, AWAY, "unavailable", "The database does not let this user in.")
    postgres.run(sql.SQL("CREATE ROLE late LOGIN PASSWORD 'late-secret-0451'"))
    while told(server)[3] == "The database does not let this user in.":
        assert server.process.poll() is None
    assert told(server) == (503, AWAY, "unavailable", "The database or its user does not exist.")
    postgres.run(sql.SQL("CREATE DATABASE late OWNER late"))
    becomes_ready(server)
    assert "late-secret-0451" not in server.said


def test_a_database_that_accepts_and_never_answers_is_waited_for(place, stack, postgres, empty):
    """With one line in the log for all attempts, and without a thread or a connection kept for each."""
    link = stack.enter_context(linked(postgres.port))
    url = empty.replace(str(postgres.port), str(link.relay.port))
    link.freeze()
    server = stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=url))
    assert told(server) == (503, AWAY, "unavailable", "The database does not answer.")
    while link.relay.asked < 3:
        assert probe(server, "/livez")[0] == 200
    assert refusal(post(server, INITIALIZE)) == (503, True, 503)
    assert len(warnings(server)) == 1
    link.thaw()
    becomes_ready(server)


def test_a_database_that_falls_silent_while_it_is_looked_at_is_given_up(place, stack, postgres, empty):
    """The connection stood already, so no time limit for making one ends the wait; the next attempt succeeds."""
    link = stack.enter_context(linked(postgres.port))
    link.freeze_after(3)
    url = empty.replace(str(postgres.port), str(link.relay.port))
    server = stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=url))
    assert told(server) == (503, AWAY, "unavailable", "The database did not answer in time.")
    link.thaw()
    becomes_ready(server)


def test_a_host_name_that_is_not_known_yet_is_waited_for_and_not_shown(place, stack):
    url = "postgresql://secret-user:secret@secret-host.invalid/superpi"
    server = stack.enter_context(serving(*place, SUPERPI_DATABASE_URL=url))
    detail = "The database cannot be found: its host name is not known."
    assert told(server) == (503, AWAY, "unavailable", detail)
    for said in (str(probe(server)), post(server, INITIALIZE).text):
        assert "secret" not in said


@pytest.mark.parametrize("product", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    ("how", "detail"),
    [
        pytest.param("check", "The database schema is at revision none, not ", id="check"),
        pytest.param("off", "The database lacks tables that this superpi needs: run `superpi migrate`.", id="off"),
    ],
)
def test_a_server_on_an_empty_database_serves_once_a_job_has_migrated_it(place, stack, request, product, how, detail):
    settings = {"SUPERPI_DATABASE_URL": request.getfixturevalue("empty")} if product == "postgresql" else {}
    server = stack.enter_context(serving(*place, SUPERPI_MIGRATE=how, **settings))
    status, phase, store, why = told(server)
    assert (status, phase, store, why[: len(detail)]) == (503, BEHIND, "behind", detail)
    assert refusal(post(server, INITIALIZE)) == (503, True, 503)
    done = superpi(place, "migrate", **settings)
    assert done.returncode == 0, done.stderr
    becomes_ready(server)
    assert len(warnings(server)) == 1


def test_a_newer_schema_ends_the_start_with_a_sentence(place, empty):
    migrate(empty)
    with closing(psycopg.connect(empty, autocommit=True)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    done = superpi(place, "serve", SUPERPI_PORT="0", SUPERPI_DATABASE_URL=empty)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert "superpi: The database schema is at revision 9999, newer than this superpi knows" in done.stderr


def test_a_newer_schema_ends_the_wait_too(place, stack, postgres):
    """Here it stands in a database that is made under the server's eyes."""
    server = Server(*place, {"SUPERPI_DATABASE_URL": later_at(postgres.port, database="newer")})
    server.start()
    stack.callback(postgres.drop, "newer")
    with postgres.database() as url:
        migrate(url)
        name = url.rpartition("/")[2]
        postgres.run("UPDATE alembic_version SET version_num = '9999'", name)
        postgres.run(sql.SQL("CREATE DATABASE newer TEMPLATE {}").format(sql.Identifier(name)))
    assert server.ended(60) == 1
    assert "superpi: The database schema is at revision 9999, newer than this superpi knows" in server.said


def test_a_door_that_would_be_open_to_all_stays_closed_while_nobody_can_tell(place, stack, postgres):
    """And once the database says that no token was ever made, the start is refused as ever (case C01)."""
    settings = {"SUPERPI_HOST": "0.0.0.0", "SUPERPI_DATABASE_URL": later_at(postgres.port, database="strangers")}
    server = Server(*place, settings)
    server.start()
    assert refusal(post(server, INITIALIZE)) == (503, True, 503)
    stack.callback(postgres.drop, "strangers")
    postgres.run("CREATE DATABASE strangers")
    assert server.ended(60) == 2
    assert "superpi: SUPERPI_HOST: 0.0.0.0 can be reached from other machines" in server.said


def test_a_signal_ends_a_server_that_waits_for_its_database(place):
    with launched(
        place, SUPERPI_DATABASE_URL=later_at(support.free_port()), SUPERPI_DRAIN_DELAY_SECONDS="60"
    ) as server:
        listens(server)
        assert ended(server) == 0
        assert "Traceback" not in server.said


def test_a_signal_ends_a_server_whose_database_never_answers(place, stack, postgres, empty):
    link = stack.enter_context(linked(postgres.port))
    link.freeze()
    with launched(place, SUPERPI_DATABASE_URL=empty.replace(str(postgres.port), str(link.relay.port))) as server:
        listens(server)
        assert ended(server) == 0
        assert "Traceback" not in server.said


def test_a_server_that_waits_for_anothers_migration_answers_its_probes_and_ends_on_a_signal(place, empty):
    with closing(psycopg.connect(empty)) as other, launched(place, SUPERPI_DATABASE_URL=empty) as server:
        other.execute(f"SELECT pg_advisory_xact_lock({0x5350_4D49})")
        assert listens(server) == (200, {"status": "ok"})
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while other.execute(waiting).fetchone() != (1,):
            assert server.process.poll() is None, server.said
        assert probe(server, "/livez")[0] == 200
        assert told(server) == (503, "starting", "unavailable", "")
        assert refusal(post(server, INITIALIZE)) == (503, True, 503)
        assert ended(server) == 0
        assert "Traceback" not in server.said


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("mysql://superpi@db/superpi", "of a kind that is not supported", id="unsupported"),
        pytest.param("postgresql://superpi:a@b@c/superpi", "cannot be read", id="malformed"),
    ],
)
def test_a_url_at_which_there_can_be_no_database_ends_the_start(place, url, words):
    done = superpi(place, "serve", SUPERPI_PORT="0", SUPERPI_DATABASE_URL=url)
    assert (done.returncode, done.stdout, words in done.stderr, "Traceback" in done.stderr) == (1, "", True, False)


def test_a_command_on_an_empty_database_that_it_is_told_not_to_look_at_says_what_to_do(place, empty):
    done = superpi(place, "token", "list", SUPERPI_DATABASE_URL=empty, SUPERPI_MIGRATE="off")
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert "lacks tables that this superpi needs: run `superpi migrate`." in done.stderr


def test_stdio_does_not_wait_for_a_database(place):
    """The host shows its user what was said, and starts the process anew."""
    done = superpi(place, "stdio", SUPERPI_DATABASE_URL=later_at(support.free_port()))
    assert (done.returncode, done.stdout) == (1, "")
    assert "refuses connections: is it running?" in done.stderr.splitlines()[-1]
