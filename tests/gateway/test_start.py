"""Starting the command: what it says, and what it refuses in one readable line each."""

import os
import socket
import sqlite3
import subprocess

import pytest

from tests.support.unprivileged import folder, own, unprivileged

OIDC = {"SUPERPI_OIDC_ISSUER": "https://issuer.example", "SUPERPI_PUBLIC_URL": "https://team.example"}


@pytest.fixture
def place():
    with folder() as path:
        (path / "workspace").mkdir()
        own(path)
        yield path


def superpi(place, *arguments, **settings):
    """Run a command to its end as an ordinary user; its settings lie in `place` unless given."""
    launcher = unprivileged()
    home = {"HOME": str(place), "SUPERPI_WORKSPACE": str(place / "workspace"), "SUPERPI_DATA_DIR": str(place / "data")}
    return subprocess.run(
        launcher.superpi(*arguments),
        env={**launcher.env, **home, **settings},
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def complaint(done):
    """What a refused start said: one or more readable lines, and no traceback."""
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("superpi: ")]
    assert lines, done.stderr
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"SUPERPI_HOST": "0.0.0.0"}, ["SUPERPI_HOST", "0.0.0.0", "127.0.0.1"]),
        ({"SUPERPI_HOST": "::"}, ["SUPERPI_HOST", "127.0.0.1"]),
        ({"SUPERPI_HOST": "example.com"}, ["SUPERPI_HOST", "127.0.0.1"]),
        ({"SUPERPI_HOST": ""}, ["SUPERPI_HOST: must be more than nothing, got ''"]),
        ({"SUPERPI_PORT": "eighty"}, ["SUPERPI_PORT: must be a whole number, got 'eighty'"]),
        ({"SUPERPI_PORT": "70000"}, ["SUPERPI_PORT: must be at most 65535, got '70000'"]),
        ({"SUPERPI_WORKSPACE": "nowhere"}, ["SUPERPI_WORKSPACE: must be a folder that there is, got 'nowhere'"]),
        ({"SUPERPI_WORKSPACE": ""}, ["SUPERPI_WORKSPACE: must be more than nothing, got ''"]),
        (
            {"SUPERPI_REMOTE_MODE": "root"},
            ["SUPERPI_REMOTE_MODE: must be one of read_only, workspace_write, full, got 'root'"],
        ),
        ({"SUPERPI_HARNESS": "nope"}, ["SUPERPI_HARNESS", "nope", "super-pi-code"]),
        ({"SUPERPI_LIMITS__TOOL_SECONDS": "-1"}, ["SUPERPI_LIMITS__TOOL_SECONDS: must be above 0, got -1"]),
        (
            {"SUPERPI_HTTP__BODY_BYTES": "many"},
            ["SUPERPI_HTTP__BODY_BYTES: must be a whole number, got 'many'"],
        ),
        (
            {"SUPERPI_LOG_LEVEL": "loud"},
            ["SUPERPI_LOG_LEVEL: must be 'debug', 'info', 'warning' or 'error', got 'loud'"],
        ),
        ({"SUPERPI_PORT": "x", "SUPERPI_SANDBOX": "y"}, ["SUPERPI_PORT", "SUPERPI_SANDBOX"]),
        ({"SUPERPI_OIDC_ISSUER": "https://issuer.example"}, ["SUPERPI_PUBLIC_URL", "https://superpi.example"]),
        (OIDC | {"SUPERPI_OIDC_ISSUER": "http://issuer.example"}, ["SUPERPI_OIDC_ISSUER", "https://"]),
        (OIDC | {"SUPERPI_PUBLIC_URL": "team.example"}, ["SUPERPI_PUBLIC_URL", "https://"]),
        (OIDC | {"SUPERPI_OIDC_KEYS_URL": "file:///keys"}, ["SUPERPI_OIDC_KEYS_URL"]),
        (OIDC | {"SUPERPI_OIDC_ALGORITHMS": "RS256,HS256"}, ["SUPERPI_OIDC_ALGORITHMS", "ES256"]),
        (OIDC | {"SUPERPI_OIDC_SCOPES": "mcp:all"}, ["SUPERPI_OIDC_SCOPES", "mcp:read"]),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_to_do(place, settings, words):
    """Exit status 2, one line a fault; binding beyond loopback is refused without a token (case C01)."""
    done = superpi(place, "serve", **{"SUPERPI_PORT": "0"} | settings)
    assert done.returncode == 2
    said = complaint(done)
    assert [word for word in words if word not in said] == []


def test_a_port_that_is_taken_is_named(place):
    """With the way out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = superpi(place, "serve", SUPERPI_PORT=port)
    assert (done.returncode, port in complaint(done), "SUPERPI_PORT" in complaint(done)) == (2, True, True)


def test_a_broken_harness_file_is_named_with_its_line(place):
    """A team sees which file to mend, and where."""
    harnesses = place / "harnesses"
    harnesses.mkdir()
    (harnesses / "ours.md").write_text("---\nid: ours\ntitle: Ours\ndescription: D\ntool: [read]\nmode: full\n---\nx\n")
    own(harnesses)
    done = superpi(place, "serve", SUPERPI_PORT="0", SUPERPI_HARNESS_DIR=str(harnesses))
    assert done.returncode == 2
    assert "ours.md:5" in complaint(done)


def test_a_variable_that_is_no_setting_is_pointed_out(place):
    """A typing error must not pass in silence, nor end the start, also in a group."""
    done = superpi(place, "stdio", SUPERPI_WORKSAPCE="/x", SUPERPI_HTTP__BODY="1", SUPERPI_HOTS="x")
    assert (done.returncode, complaint(done).splitlines()) == (
        0,
        [
            "superpi: SUPERPI_HOTS is not a setting and has no effect; did you mean SUPERPI_HOST?",
            "superpi: SUPERPI_HTTP__BODY is not a setting and has no effect; did you mean SUPERPI_HTTP__BODY_BYTES?",
            "superpi: SUPERPI_WORKSAPCE is not a setting and has no effect; did you mean SUPERPI_WORKSPACE?",
        ],
    )


def test_a_database_of_a_newer_version_is_left_alone(place):
    """Exit status 1 and a sentence; nothing is written."""
    data = place / "data"
    data.mkdir()
    with sqlite3.connect(data / "superpi.db") as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        database.execute("INSERT INTO alembic_version VALUES ('9999')")
    database.close()
    own(data)
    before = (data / "superpi.db").read_bytes()
    done = superpi(place, "serve", SUPERPI_PORT="0")
    assert (done.returncode, "9999" in complaint(done)) == (1, True)
    assert (data / "superpi.db").read_bytes() == before


def test_a_data_folder_that_cannot_be_made_is_a_sentence(place):
    """Here a file stands in its way."""
    (place / "data").write_text("in the way")
    done = superpi(place, "serve", SUPERPI_PORT="0")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "data" in complaint(done)


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["stdio", "--help"], ["--version"]])
def test_help_and_version_answer(place, arguments):
    """Without settings, and whatever the settings are."""
    done = superpi(place, *arguments, SUPERPI_PORT="x")
    assert (done.returncode, done.stderr, done.stdout != "") == (0, "", True)


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["serve", "--no-such-option"]])
def test_a_wrong_command_line_is_explained(place, arguments):
    """The usage and the mistake, on stderr."""
    done = superpi(place, *arguments)
    assert (done.returncode, done.stdout, "usage: superpi" in done.stderr) == (2, "", True)


def test_help_loads_nothing_heavy(place):
    """The command answers at once: no web framework, no database, no tools."""
    program = (
        "import sys, contextlib, gateway.cli\n"
        "with contextlib.suppress(SystemExit): gateway.cli.main(['--help'])\n"
        "heavy = {'fastapi', 'sqlalchemy', 'pydantic', 'uvicorn', 'alembic', 'PIL'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    launcher = unprivileged()
    done = subprocess.run(
        [*launcher.interpreter, "-P", "-c", program], env=launcher.env, cwd=place, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_data_folder_is_closed_to_others(place):
    """Sessions and keys are nobody else's business."""
    done = superpi(place, "stdio")
    assert done.returncode == 0, done.stderr
    modes = {path.name: path.stat().st_mode & 0o777 for path in (place / "data", place / "data" / "superpi.db")}
    assert modes == {"data": 0o700, "superpi.db": 0o600}
    assert os.listdir(place / "data")


@pytest.mark.parametrize("command", ["serve", "stdio"])
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        pytest.param({"SUPERPI_DATA_DIR": "workspace"}, "SUPERPI_DATA_DIR", id="the workspace itself"),
        pytest.param({"SUPERPI_DATA_DIR": "link"}, "SUPERPI_DATA_DIR", id="by a link"),
        pytest.param(
            {"SUPERPI_WORKSPACE": "workspace:more", "SUPERPI_DATA_DIR": "more"}, "SUPERPI_DATA_DIR", id="extra"
        ),
        pytest.param({"SUPERPI_DATABASE_URL": "sqlite:///workspace/x.db"}, "SUPERPI_DATABASE_URL", id="a URL into it"),
        pytest.param(
            {"SUPERPI_WORKSPACE": "workspace:more", "SUPERPI_DATABASE_URL": "sqlite:///more/x.db"},
            "SUPERPI_DATABASE_URL",
            id="a URL into an extra root",
        ),
    ],
)
def test_a_database_among_the_files_that_are_worked_on_is_refused(place, command, settings, named):
    """It holds sessions and keys. Nothing is made."""
    (place / "more").mkdir()
    (place / "link").symlink_to("workspace")
    done = superpi(place, command, SUPERPI_PORT="0", **settings)
    words = (
        "must lie outside the workspace and its extra roots: tools work there, and the database holds sessions and "
        "keys. Set SUPERPI_DATA_DIR to a folder elsewhere, or SUPERPI_WORKSPACE to one that does not hold it."
    )
    assert (done.returncode, complaint(done)) == (2, f"superpi: {named}: {words}")
    assert not list((place / "workspace").iterdir())


def test_a_data_folder_below_a_closed_one_is_a_sentence(place):
    """Nobody may look into it."""
    closed = place / "closed"
    closed.mkdir(mode=0o000)
    done = superpi(place, "stdio", SUPERPI_DATA_DIR=str(closed / "data"))
    assert (done.returncode, "Permission denied" in complaint(done)) == (1, True)
