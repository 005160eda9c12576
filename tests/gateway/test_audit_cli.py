"""`superpi audit`, from the arguments to the rows and the words."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway import audit_cli, trails
from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from gateway.store.migrate import migrate
from telemetry.audit import COLUMNS, AuditRecord

ROOT = Path(__file__).parents[2]
BARE = AuditRecord("r", "local:alice", "tools/call", "read", "allowed")
ODD = "a\x1b[2J\u202e\nb\x00"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder whose audit log holds four rows; the first is three days old."""
    folder = tmp_path_factory.mktemp("data")
    url = f"sqlite:///{folder / 'superpi.db'}"
    migrate(url)
    rows = [
        replace(BARE, request_id="r1", age=3 * 24 * 3600),
        replace(BARE, request_id="r2", principal="local:bob", object="bash", decision="refused", reason="a rule"),
        replace(BARE, request_id="r3", action="token.revoke", duration_ms=3),
        replace(BARE, request_id="r4", object=ODD.replace("\0", "")),
    ]

    async def fill():
        database = open_database(url)
        await SqlAudit(database).write(rows)
        await database.close()

    asyncio.run(fill())
    return folder


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def requests(self):
        """The request ids of what was shown, as one word."""
        if self.out.startswith("{"):
            return " ".join(json.loads(line)["request_id"] for line in self.out.splitlines())
        return " ".join(line.split()[-1] for line in self.out.splitlines()[1:])


@pytest.fixture
def superpi(data, capsys, monkeypatch):
    monkeypatch.setenv("SUPERPI_DATA_DIR", str(data))

    def superpi(*arguments):
        parser = argparse.ArgumentParser("superpi")
        audit_cli.add_commands(parser.add_subparsers(required=True))
        try:
            options = parser.parse_args(["audit", *arguments])
            status = options.run(options)
        except SystemExit as exit:
            status = exit.code
        return Ran(status, *capsys.readouterr())

    return superpi


FILTERS = [
    pytest.param([], "r1 r2 r3 r4", id="everything"),
    pytest.param(["--principal", "local:bob"], "r2", id="of a principal"),
    pytest.param(["--action", "token.revoke"], "r3", id="of an action"),
    pytest.param(["--since", "1d"], "r2 r3 r4", id="since a day ago"),
    pytest.param(["--since", "100d"], "r1 r2 r3 r4", id="since before all of it"),
    pytest.param(["--since", "2999-01-01"], "", id="since a day to come"),
    pytest.param(["--since", "1d", "--principal", "local:alice", "--action", "tools/call"], "r4", id="all at once"),
]


@pytest.mark.parametrize(("arguments", "requests"), FILTERS)
def test_export_writes_the_rows_that_match_the_oldest_first(superpi, arguments, requests):
    ran = superpi("export", *arguments)
    assert (ran.status, ran.requests, ran.err) == (0, requests, "")


@pytest.mark.parametrize(("arguments", "requests"), FILTERS)
def test_list_shows_the_rows_that_match_the_newest_first(superpi, arguments, requests):
    ran = superpi("list", *arguments)
    assert (ran.status, ran.requests) == (0, " ".join(reversed(requests.split())))
    assert ran.err == ("" if requests else "superpi: There are no such rows in the audit log.\n")


def test_list_shows_at_most_what_it_is_asked_for(superpi):
    assert superpi("list", "--limit", "2").requests == "r4 r3"


def test_an_exported_row_is_one_line_of_ascii_with_every_column(superpi):
    ran = superpi("export")
    assert ran.out.replace("\n", "").isascii()
    assert ran.out.replace("\n", "").isprintable()
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [list(row) for row in rows] == [["seq", "at", *COLUMNS]] * 4
    assert (rows[3]["object"], rows[2]["duration_ms"], rows[1]["reason"]) == (ODD.replace("\0", ""), 3, "a rule")
    assert datetime.now(UTC) - datetime.fromisoformat(rows[3]["at"]) < timedelta(hours=1)


def test_a_listed_row_is_one_printable_line(superpi):
    lines = superpi("list").out.splitlines()
    assert lines[0].split() == ["AT", "PRINCIPAL", "ACTION", "OBJECT", "DECISION", "REASON", "ADDRESS", "REQUEST", "ID"]
    assert (len(lines), all(line.isprintable() for line in lines)) == (5, True)


def test_export_reads_page_after_page(superpi, monkeypatch):
    monkeypatch.setattr(trails, "_PAGE", 1)
    assert superpi("export").requests == "r1 r2 r3 r4"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["list", "--since", "yesterday"], "'yesterday' is no time: write 2026-01-31", id="a word"),
        pytest.param(["export", "--since", "999999d"], "is no time", id="before there was time"),
        pytest.param(["list", "--limit", "0"], "must be a whole number from 1 to 10000", id="none"),
        pytest.param(["list", "--limit", "10001"], "must be a whole number", id="too many"),
        pytest.param(["list", "--limit", "\u0663"], "must be a whole number", id="another script's digit"),
    ],
)
def test_a_mistake_in_the_arguments_is_told(superpi, arguments, words):
    ran = superpi(*arguments)
    assert (ran.status, ran.out, words in ran.err) == (2, "", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC), id="a day begins in UTC"),
        pytest.param("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC), id="a time is in UTC"),
        pytest.param("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC), id="as logs write it"),
        pytest.param("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC), id="in another zone"),
    ],
)
def test_a_time_is_understood(text, expected):
    assert audit_cli._since(text) == expected


@pytest.mark.parametrize("action", ["list", "export"])
def test_a_database_without_the_schema_is_told_and_not_made(superpi, action, tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERPI_DATA_DIR", str(tmp_path / "nowhere"))
    ran = superpi(action)
    assert (ran.status, ran.out, "run `superpi migrate`" in ran.err) == (1, "", True)
    assert not (tmp_path / "nowhere").exists()


SCRIPT = """
import argparse, sys
from gateway import audit_cli, trails
parser = argparse.ArgumentParser()
audit_cli.add_commands(parser.add_subparsers())
options = parser.parse_args(["audit", "export"])
sys.exit(options.run(options))
"""


def test_a_reader_that_has_enough_ends_the_export_without_a_word(data):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {"PYTHONPATH": str(ROOT), "SUPERPI_DATA_DIR": str(data)}
    command = [sys.executable, "-P", "-c", SCRIPT]
    ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_reading_the_arguments_loads_neither_the_database_nor_the_settings():
    script = (
        "import sys, gateway.audit_cli;"
        "print([name for name in ('sqlalchemy', 'pydantic', 'alembic', 'prometheus_client') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
