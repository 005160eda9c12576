"""The commands by `--url`: what they say and show against a server is what they do against its database."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from gateway.remote_cli import COMMANDS
from tests.support.administration import administered, felt
from tests.support.raw_http import BOTH, INITIALIZE
from tests.support.unprivileged import unprivileged

SECRET = re.compile(r"spi_(pat|svc|adm)_[0-9A-Za-z]{49}")


@pytest.fixture(scope="module")
def office():
    with administered() as office:
        yield office


@pytest.fixture
def superpi(office):
    """Runs the command at the server, or at its database, as the user of the server; what came of it."""

    def superpi(*arguments, at="url", token=None, **more):
        home = {"HOME": str(office.server.home), "SUPERPI_DATA_DIR": str(office.server.home / "data")}
        if at == "url":
            arguments = (*arguments, "--url", more.pop("url", office.server.url))
            home = {"HOME": str(office.server.home), "SUPERPI_TOKEN": office.admin if token is None else token}
        return subprocess.run(
            unprivileged().superpi(*arguments),
            env={**unprivileged().env, **home, **more},
            cwd=office.server.workspace,
            capture_output=True,
            text=True,
        )

    return superpi


def same(superpi, *arguments):
    """What the command says in both ways, which must be the same."""
    # The last use of a token or a session is written now and then, and may be between the two.
    for _ in range(2):
        ran = [superpi(*arguments, at=at) for at in ("url", "database")]
        at_server, at_database = ((one.returncode, one.stdout, one.stderr) for one in ran)
        if at_server == at_database:
            break
    assert at_server == at_database
    return ran[0]


def test_every_command_can_be_run_in_both_ways():
    """Those that `add_run` names, and no other."""
    modules = (Path(__file__).resolve().parents[2] / "gateway").glob("*_cli.py")
    named = [name for module in modules for name in re.findall(r'add_run\(\w+, \w+, "([^"]+)"\)', module.read_text())]
    assert sorted(named) == sorted(COMMANDS)


def test_a_token_is_made_shown_rotated_and_revoked(office, superpi):
    """The secret alone on stdout, and words on stderr."""
    made = superpi("token", "create", "--principal", "local:alice", "--scope", "mcp:read", "--name", "laptop")
    secret = made.stdout.strip()
    assert (made.returncode, bool(SECRET.fullmatch(secret))) == (0, True), made.stderr
    assert "Made the principal local:alice." in made.stderr
    assert "for local:alice, mcp:read, expires 20" in made.stderr
    assert office.is_let_in(secret)
    (token,) = json.loads(same(superpi, "token", "list", "--principal", "local:alice", "--json").stdout)
    assert (token["name"], token["scopes"], token["created_by"]) == ("laptop", ["mcp:read"], "local:root")
    rotated = superpi("token", "rotate", token["id"])
    assert rotated.stderr.endswith(f"Token {token['id']} is revoked.\n")
    assert [office.is_let_in(one) for one in (secret, rotated.stdout.strip())] == [False, True]
    assert "was revoked before, 20" in same(superpi, "token", "revoke", token["id"]).stderr
    assert same(superpi, "token", "list", "--principal", "local:alice").stdout.count("laptop") == 2
    assert same(superpi, "token", "revoke", "unknown").returncode == 1
    assert same(superpi, "token", "rotate", "unknown").returncode == 1


def test_principals(office, superpi):
    assert superpi("principal", "create", "local:bob").stderr == "superpi: Made the principal local:bob.\n"
    assert same(superpi, "principal", "create", "local:bob").returncode == 1
    secret = office.token("bob")
    assert superpi("principal", "disable", "local:bob").stderr == "superpi: Principal local:bob is disabled.\n"
    felt(lambda: not office.is_let_in(secret))
    assert same(superpi, "principal", "disable", "local:bob").returncode == 0
    assert "disabled" in same(superpi, "principal", "list").stdout
    assert superpi("principal", "enable", "local:bob").stderr == "superpi: Principal local:bob is enabled.\n"
    assert same(superpi, "principal", "list", "--json").returncode == 0
    for act in ("disable", "enable"):
        assert same(superpi, "principal", act, "local:nobody").returncode == 1
        assert same(superpi, "principal", act, "https://issuer#nobody").returncode == 1


def test_sessions_are_listed_and_ended(office, superpi):
    token = office.token("carol")
    opened = office.ask("POST", "/mcp", token=token, json=INITIALIZE, headers={"accept": BOTH})
    (session,) = json.loads(same(superpi, "session", "list", "--principal", "local:carol", "--json").stdout)
    assert opened.headers["mcp-session-id"] not in json.dumps(session)
    assert session["label"] in same(superpi, "session", "list").stdout
    ended = superpi("session", "end", session["label"], at="database")
    assert ended.stderr == f"superpi: Session {session['label']} of local:carol has ended.\n"
    assert same(superpi, "session", "end", session["label"]).returncode == 1
    assert same(superpi, "session", "list", "--principal", "local:carol").stderr == "superpi: There are no sessions.\n"
    office.ask("POST", "/mcp", token=token, json=INITIALIZE, headers={"accept": BOTH})
    (session,) = json.loads(superpi("session", "list", "--principal", "local:carol", "--json").stdout)
    assert superpi("session", "end", session["label"]).returncode == 0


def test_grants_and_the_audit_log(superpi):
    assert same(superpi, "grant", "list").stderr == "superpi: There are no grants.\n"
    assert same(superpi, "grant", "revoke", "unknown").returncode == 1
    filters = ("--action", "token.create", "--principal", "cli")
    assert "token.create" in same(superpi, "audit", "list", *filters, "--limit", "1").stdout
    assert same(superpi, "audit", "list", "--action", "none").stderr == (
        "superpi: There are no such rows in the audit log.\n"
    )
    lines = same(superpi, "audit", "export", *filters).stdout.splitlines()
    assert {json.loads(line)["action"] for line in lines} == {"token.create"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"token": ""}, "A token is needed: put an administrator's into SUPERPI_TOKEN, or use --token-file."),
        ({"token": "spi_pat_wrong"}, "Send a valid token as 'Authorization: Bearer <token>'."),
        ({"url": "ftp://x"}, "is no address of a server: write one like https://superpi.example."),
        ({"url": "http://127.0.0.1:9"}, "http://127.0.0.1:9 cannot be asked:"),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(superpi, options, said):
    ran = superpi("token", "list", **options)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_token_without_the_scope_is_told_so(office, superpi):
    ran = superpi("token", "list", token=office.token("dave"))
    assert (ran.returncode, "Administration needs a token with the scope admin" in ran.stderr) == (1, True)


def test_the_token_may_be_in_a_file(office, superpi):
    file = office.server.home / "token"
    file.write_text(office.admin + "\n", "utf-8")
    assert superpi("token", "list", "--token-file", str(file), token="").returncode == 0
    missing = superpi("token", "list", "--token-file", str(file) + "-none", token="")
    assert "The token cannot be read from" in missing.stderr
