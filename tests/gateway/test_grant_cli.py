"""`superpi grant`, from the arguments to the rows and the words."""

import argparse
import asyncio
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway import grant_cli, token_cli
from gateway.store.audit import SqlAudit
from gateway.store.changes import record
from gateway.store.engine import open_database
from gateway.store.grants import SqlGrants
from gateway.store.migrate import migrate
from gateway.store.sessions import SqlSessions
from gateway.store.tokens import SqlTokens
from mcp.grants import Grant, OfHarness, OfSession
from mcp.protocol.state import State
from mcp.sessions import Session
from tests.support.auth_stores import a_token, digest

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
ALICE, BOB = "local:alice", "local:bob"
OLD = Grant("old", ALICE, OfHarness("super-pi-code", NOW + HOUR), "bash", "git push", "r", NOW - HOUR, "t")
NEW = Grant("new", BOB, OfSession("secret-session"), "write", "docs/ü", "r", NOW)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    file = tmp_path_factory.mktemp("template") / "superpi.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def on_database(tmp_path, template, monkeypatch):
    """Does something with the database of the settings; the function gets it open."""
    shutil.copy(template, tmp_path)
    monkeypatch.setenv("SUPERPI_DATA_DIR", str(tmp_path))

    def on_database(work):
        async def opened():
            database = open_database(f"sqlite:///{tmp_path / 'superpi.db'}")
            try:
                return await work(database)
            finally:
                await database.close()

        return asyncio.run(opened())

    return on_database


@pytest.fixture
def given(on_database):
    """Keeps grants, with the token and the session that they hang on."""

    def given(*grants):
        async def work(database):
            token = a_token("t", ALICE, created=NOW - 2 * HOUR, expires=None)
            await SqlTokens(database, record).create(token, digest("t"), make_principal=True)
            await SqlSessions(database).open(Session("secret-session", State(principal=BOB), NOW, NOW), most=9)
            for grant in grants:
                assert await SqlGrants(database).add(grant) == grant

        on_database(work)

    return given


@pytest.fixture
def superpi(on_database, capsys):
    """Runs a command; its status, its output and its words."""

    def superpi(*arguments):
        parser = argparse.ArgumentParser("superpi")
        commands = parser.add_subparsers(required=True)
        for module in (grant_cli, token_cli):
            module.add_commands(commands)
        options = parser.parse_args(arguments)
        status = options.run(options)
        out, err = capsys.readouterr()
        return status, out, err.replace("superpi: ", "").splitlines()

    return superpi


def listed(superpi, *arguments):
    return json.loads(superpi("grant", "list", "--json", *arguments)[1])


def shown(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_the_list_as_json_has_everything_but_the_id_of_a_session(superpi, given):
    given(OLD, NEW)
    of_bob, of_alice = listed(superpi)
    assert of_alice == {
        "id": "old",
        "principal": ALICE,
        "tool": "bash",
        "subject": "git push",
        "reach": "harness",
        "harness": "super-pi-code",
        "expires": shown(NOW + HOUR),
        "token": "t",
        "created": shown(NOW - HOUR),
    }
    assert of_bob == of_alice | {
        "id": "new",
        "principal": BOB,
        "tool": "write",
        "subject": "docs/ü",
        "reach": "session",
        "harness": None,
        "expires": None,
        "token": None,
        "created": shown(NOW),
    }


def test_the_table_is_newest_first_and_shows_what_counts_of_one_principal_where_one_is_named(superpi, given):
    given(OLD, NEW)
    status, out, words = superpi("grant", "list")
    header, newest, oldest = out.splitlines()
    assert (status, words) == (0, [])
    assert header.split() == ["ID", "PRINCIPAL", "TOOL", "SUBJECT", "REACH", "EXPIRES", "TOKEN", "CREATED"]
    assert newest.split() == ["new", BOB, "write", "docs/ü", "session", "-", "-", shown(NOW)]
    assert oldest.split()[:4] == ["old", ALICE, "bash", "git"]
    assert [row["id"] for row in listed(superpi, "--principal", BOB)] == ["new"]


def test_a_subject_that_is_long_or_could_hide_something_stays_on_its_line(superpi, given):
    """All of it is in the JSON."""
    subject = "echo \x1b[31m\n\u202e" + "x" * 1000
    given(replace(OLD, subject=subject))
    _, out, _ = superpi("grant", "list")
    assert (out.count("\n"), "\x1b" in out, "\u202e" in out, "x" * 60 in out) == (2, False, False, False)
    assert "echo \\x1b[31m\\n\\u202e" in out
    assert listed(superpi)[0]["subject"] == subject


def test_what_counts_no_more_is_not_listed(superpi, given):
    given(
        OLD,
        replace(OLD, id="expired", subject="x", reach=OfHarness("super-pi-code", NOW - timedelta(minutes=1))),
        replace(OLD, id="untied", subject="y", token=None),
    )
    assert [row["id"] for row in listed(superpi)] == ["untied", "old"]
    superpi("token", "revoke", "t")
    assert [row["id"] for row in listed(superpi)] == ["untied"]
    superpi("principal", "disable", ALICE)
    assert superpi("grant", "list") == (0, "", ["There are no grants."])
    assert listed(superpi) == []


def test_a_list_goes_on_beyond_one_page(superpi, given, monkeypatch):
    monkeypatch.setattr(grant_cli, "_PAGE", 2)
    given(*(replace(OLD, id=str(n), subject=str(n)) for n in range(5)))
    assert [row["id"] for row in listed(superpi)] == ["4", "3", "2", "1", "0"]


def test_a_revoked_grant_is_gone_and_on_record(superpi, given, on_database):
    given(OLD, NEW)
    assert superpi("grant", "revoke", "new") == (
        0,
        "",
        [f"Grant new of {BOB} is revoked: the person is asked again."],
    )
    assert superpi("grant", "revoke", "new") == (
        1,
        "",
        ["There is no grant 'new'; `superpi grant list` shows those there are."],
    )
    assert [row["id"] for row in listed(superpi)] == ["old"]
    rows = [row.record for row in on_database(lambda database: SqlAudit(database).page())]
    assert [(row.principal, row.action, row.object, row.decision, row.reason) for row in rows] == [
        ("cli", "grant.revoke", "new", "allowed", f"write, of {BOB}")
    ]


@pytest.mark.parametrize("id", ["", "a\x1b[31mb", "\udcff"])
def test_an_unknown_grant_is_named_on_one_line(superpi, id):
    status, out, words = superpi("grant", "revoke", id)
    assert (status, out, len(words), "\x1b" in words[0]) == (1, "", 1, False)
