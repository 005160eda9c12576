"""`superpi token` and `superpi principal`, from the arguments to the rows and the words."""

import argparse
import asyncio
import json
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from auth.scopes import Scope
from auth.tokens import Kind, Presented, recognise
from gateway import token_cli
from gateway.store.audit import SqlAudit
from gateway.store.changes import record
from gateway.store.engine import open_database
from gateway.store.faults import StoreUnavailable
from gateway.store.migrate import migrate
from gateway.store.tokens import SqlTokens

FIRST = "This is the first token: anonymous access is closed from now on, and every caller over HTTP needs one."


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    file = tmp_path_factory.mktemp("template") / "superpi.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def data(tmp_path, template, monkeypatch):
    """The data folder of the settings, with an empty database."""
    shutil.copy(template, tmp_path)
    monkeypatch.setenv("SUPERPI_DATA_DIR", str(tmp_path))
    return tmp_path


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def words(self):
        return self.err.replace("superpi: ", "").splitlines()


@pytest.fixture
def superpi(data, capsys):
    def superpi(*arguments):
        parser = argparse.ArgumentParser("superpi")
        token_cli.add_commands(parser.add_subparsers(required=True))
        try:
            options = parser.parse_args(arguments)
            status = options.run(options)
        except SystemExit as exit:
            status = exit.code
        return Ran(status, *capsys.readouterr())

    return superpi


@pytest.fixture
def lookup(data):
    """What the database has for a secret."""

    def lookup(secret):
        async def ask():
            database = open_database(f"sqlite:///{data / 'superpi.db'}")
            try:
                return await SqlTokens(database, record).lookup(recognise(secret).sha256)
            finally:
                await database.close()

        return asyncio.run(ask())

    return lookup


def listed(superpi, *arguments):
    return json.loads(superpi("token", "list", "--json", *arguments).out)


def test_the_secret_is_alone_on_stdout_and_works(superpi, lookup):
    ran = superpi("token", "create", "--principal", "local:alice", "--scope", "mcp:read", "--name", "søren's laptop")
    assert (ran.status, ran.out.count("\n"), isinstance(recognise(ran.out.strip()), Presented)) == (0, 1, True)
    token, principal = lookup(ran.out.strip())
    assert (token.principal, token.name, token.scopes, token.created_by, principal.disabled) == (
        "local:alice",
        "søren's laptop",
        {Scope.READ},
        "cli",
        None,
    )
    assert token.expires - token.created == timedelta(days=90)


def test_the_words_name_the_token_and_never_the_secret(superpi):
    ran = superpi("token", "create", "--principal", "local:alice")
    assert ran.words[0] == "Made the principal local:alice."
    assert re.fullmatch(r"Token \w{11} for local:alice, mcp:write, expires \S+Z\. It is shown only now:", ran.words[1])
    assert ran.words[2:] == [FIRST]
    assert ran.out.strip() not in ran.err


def test_only_the_first_token_closes_the_door(superpi):
    told = [FIRST in superpi("token", "create", "--principal", "local:alice").words for _ in range(2)]
    assert told == [True, False]


@pytest.mark.parametrize(
    ("arguments", "kind", "scopes"),
    [
        pytest.param([], Kind.PAT, {Scope.WRITE}, id="nothing"),
        pytest.param(["--kind", "svc"], Kind.SVC, {Scope.WRITE}, id="a service"),
        pytest.param(["--kind", "adm"], Kind.ADM, {Scope.ADMIN}, id="administration"),
        pytest.param(["--scope", "mcp:full", "--scope", "admin"], Kind.PAT, {Scope.FULL, Scope.ADMIN}, id="two scopes"),
        pytest.param(["--kind", "adm", "--scope", "mcp:read"], Kind.ADM, {Scope.READ}, id="a kind and a scope"),
    ],
)
def test_the_kind_and_the_scopes_that_come_of(superpi, lookup, arguments, kind, scopes):
    secret = superpi("token", "create", "--principal", "local:alice", *arguments).out.strip()
    token, _ = lookup(secret)
    assert (token.kind, token.scopes, secret[:8]) == (kind, scopes, f"spi_{kind.value}_")


def test_the_kinds_offered_are_all_there_are():
    assert set(token_cli.KINDS) == set(Kind)


@pytest.mark.parametrize(
    ("arguments", "days"),
    [(["--expires-days", "1"], 1), (["--expires-days", "3650"], 3650), (["--never-expires"], None)],
)
def test_a_token_lives_as_long_as_asked(superpi, lookup, arguments, days):
    token, _ = lookup(superpi("token", "create", "--principal", "local:alice", *arguments).out.strip())
    assert token.expires == (None if days is None else token.created + timedelta(days=days))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--principal", "alice"], "'alice' is no local principal: write local: and", id="no local:"),
        pytest.param(["--principal", "local:a b"], "'local:a b' is no local principal", id="a blank in the name"),
        pytest.param(["--scope", "mcp:all"], "There is no scope 'mcp:all'; there are mcp:read", id="an unknown scope"),
        pytest.param(["--scope", ""], "At least one scope is needed", id="an empty scope"),
        pytest.param(["--expires-days", "0"], "must be a whole number from 1 to 3650", id="no day"),
        pytest.param(["--expires-days", "9" * 9], "must be a whole number from 1 to 3650", id="too many days"),
        pytest.param(["--expires-days", "1.5"], "must be a whole number from 1 to 3650", id="half a day"),
        pytest.param(["--expires-days", "9", "--never-expires"], "not allowed with argument", id="both ends"),
        pytest.param(["--kind", "x"], "invalid choice: 'x'", id="an unknown kind"),
        pytest.param(["--name", "a\nb"], "a name is one line of up to 100 printable characters", id="two lines"),
    ],
)
def test_a_mistake_in_the_arguments_is_named_and_makes_nothing(superpi, arguments, words):
    ran = superpi("token", "create", "--principal", "local:alice", *arguments)
    assert (ran.status, ran.out, words in ran.err) == (2, "", True)
    assert listed(superpi) == []


def test_a_disabled_principal_gets_no_token(superpi):
    superpi("principal", "create", "local:alice")
    superpi("principal", "disable", "local:alice")
    ran = superpi("token", "create", "--principal", "local:alice")
    assert (ran.status, ran.out, ran.words) == (1, "", ["The principal is disabled. (local:alice)"])


def test_the_list_is_newest_first_without_secrets(superpi):
    secrets = [superpi("token", "create", "--principal", f"local:{name}").out.strip() for name in ("alice", "bob")]
    ran = superpi("token", "list")
    header, newest, oldest = ran.out.splitlines()
    assert header.split() == ["ID", "PRINCIPAL", "NAME", "TOKEN", "SCOPES", "STATE", "EXPIRES", "LAST", "USED"]
    assert (newest.split()[1:6], oldest.split()[1]) == (
        ["local:bob", "-", f"{secrets[1][:12]}...{secrets[1][-4:]}", "mcp:write", "valid"],
        "local:alice",
    )
    assert not any(secret in ran.out for secret in secrets)


def test_the_list_as_json_has_everything_but_the_secret(superpi):
    secret = superpi("token", "create", "--principal", "local:alice", "--never-expires").out.strip()
    superpi("token", "create", "--principal", "local:bob")
    (token,) = listed(superpi, "--principal", "local:alice")
    created = datetime.fromisoformat(token.pop("created"))
    assert timedelta(0) <= datetime.now(UTC) - created < timedelta(minutes=5)
    assert re.fullmatch(r"\w{11}", token.pop("id"))
    assert token == {
        "kind": "pat",
        "principal": "local:alice",
        "name": "",
        "token": f"{secret[:12]}...{secret[-4:]}",
        "scopes": ["mcp:write"],
        "state": "valid",
        "created_by": "cli",
        "expires": None,
        "last_used": None,
        "revoked": None,
        "revoked_by": None,
    }


def test_an_empty_list_says_so_and_is_an_empty_array(superpi):
    assert [superpi("token", "list"), superpi("principal", "list")] == [
        Ran(0, "", "superpi: There are no tokens.\n"),
        Ran(0, "", "superpi: There are no principals.\n"),
    ]
    assert superpi("token", "list", "--json").out == "[]\n"


def test_a_list_goes_on_beyond_one_page(superpi, monkeypatch):
    monkeypatch.setattr(token_cli, "_PAGE", 2)
    for _ in range(5):
        superpi("token", "create", "--principal", "local:alice")
    assert len(listed(superpi)) == 5


def test_a_revoked_token_says_by_whom_and_a_second_time_since_when(superpi):
    superpi("token", "create", "--principal", "local:alice")
    (token,) = listed(superpi)
    first, second = (superpi("token", "revoke", token["id"]) for _ in range(2))
    assert first == Ran(0, "", f"superpi: Token {token['id']} of local:alice is revoked.\n")
    (revoked,) = listed(superpi)
    assert second.words == [f"Token {token['id']} of local:alice was revoked before, {revoked['revoked']}."]
    assert (revoked["state"], revoked["revoked_by"]) == ("revoked", "cli")


def test_a_rotation_prints_the_new_secret_and_ends_the_old_token(superpi, lookup):
    old = superpi("token", "create", "--principal", "local:alice", "--name", "laptop").out.strip()
    id = lookup(old)[0].id
    ran = superpi("token", "rotate", id)
    new, before = lookup(ran.out.strip())[0], lookup(old)[0]
    assert (ran.status, ran.words[-1], new.name, before.revoked) == (
        0,
        f"Token {id} is revoked.",
        "laptop",
        new.created,
    )


def test_a_rotation_with_an_overlap_leaves_the_old_token_that_long(superpi, lookup):
    old = superpi("token", "create", "--principal", "local:alice").out.strip()
    new = superpi("token", "rotate", lookup(old)[0].id, "--overlap-seconds", "3600").out.strip()
    assert lookup(old)[0].revoked == lookup(new)[0].created + timedelta(hours=1)
    assert [token["state"] for token in listed(superpi)] == ["valid", "valid"]


def test_a_revoked_token_is_not_rotated(superpi):
    superpi("token", "create", "--principal", "local:alice")
    (token,) = listed(superpi)
    superpi("token", "revoke", token["id"])
    ran = superpi("token", "rotate", token["id"])
    assert ran == Ran(1, "", f"superpi: The token is revoked, replaced or expired: create a new one. ({token['id']})\n")


@pytest.mark.parametrize("action", ["revoke", "rotate"])
@pytest.mark.parametrize("id", ["unknown", "", "a\x1b[31mb"])
def test_an_unknown_token_is_named_on_one_line(superpi, action, id):
    ran = superpi("token", action, id)
    assert (ran.status, ran.out, len(ran.words), "\x1b" in ran.err) == (1, "", 1, False)
    assert ran.words[0].startswith("There is no token '")


def test_a_principal_from_its_making_to_its_return(superpi):
    words = [
        superpi("principal", *arguments).words[0]
        for arguments in (
            ("create", "local:alice"),
            ("create", "local:alice"),
            ("disable", "local:alice"),
            ("enable", "local:alice"),
            ("enable", "local:bob"),
        )
    ]
    assert words == [
        "Made the principal local:alice.",
        "There is a principal local:alice already.",
        "Principal local:alice is disabled.",
        "Principal local:alice is enabled.",
        "There is no principal 'local:bob'; `superpi principal list` shows those there are.",
    ]


def test_a_token_of_a_disabled_principal_is_listed_as_disabled(superpi):
    superpi("token", "create", "--principal", "local:alice")
    superpi("principal", "disable", "local:alice")
    states = [listed(superpi)[0]["state"], json.loads(superpi("principal", "list", "--json").out)[0]["state"]]
    assert states == ["disabled", "disabled"]


def test_each_change_has_its_row_in_the_audit_log_and_what_changes_nothing_has_none(superpi, data):
    superpi("token", "create", "--principal", "local:alice")
    (token,) = listed(superpi)
    superpi("token", "rotate", token["id"])
    for _ in range(2):
        superpi("token", "revoke", listed(superpi)[0]["id"])
        superpi("principal", "create", "local:bob")
        superpi("principal", "disable", "local:bob")
    superpi("principal", "enable", "local:bob")
    successor = listed(superpi)[0]["id"]

    async def rows():
        database = open_database(f"sqlite:///{data / 'superpi.db'}")
        try:
            return await SqlAudit(database).page()
        finally:
            await database.close()

    kept = [row.record for row in asyncio.run(rows())]
    assert [(row.principal, row.action, row.object, row.decision) for row in kept] == [
        ("cli", "token.create", token["id"], "allowed"),
        ("cli", "token.rotate", token["id"], "allowed"),
        ("cli", "token.revoke", successor, "allowed"),
        ("cli", "principal.create", "local:bob", "allowed"),
        ("cli", "principal.disable", "local:bob", "allowed"),
        ("cli", "principal.enable", "local:bob", "allowed"),
    ]


def test_a_setting_that_is_none_is_named(superpi, monkeypatch):
    monkeypatch.setenv("SUPERPI_DATA_DRI", "x")
    words = "SUPERPI_DATA_DRI is not a setting and has no effect; did you mean SUPERPI_DATA_DIR?"
    assert words in superpi("token", "list").words


def test_a_database_that_cannot_be_used_is_for_the_command_to_say(superpi, data):
    (data / "superpi.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnavailable, match="is not a SQLite database"):
        superpi("token", "list")


def test_a_missing_database_is_made(superpi, data):
    (data / "superpi.db").unlink()
    assert superpi("token", "create", "--principal", "local:alice").status == 0
