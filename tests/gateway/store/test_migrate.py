"""Migrating: where a database stands, many processes at once, and what is refused untouched."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import migrations
from gateway.store import migrate as module
from gateway.store.faults import StoreUnavailable
from gateway.store.migrate import Behind, Newer, UpToDate, check, current_revision, explain, migrate

ROOT = Path(__file__).parents[3]
HEAD = migrations.revisions()[-1]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "superpi.db"


@pytest.fixture
def url(file):
    return f"sqlite:///{file}"


def script(file, sql):
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(sql)


def tables(file):
    with closing(sqlite3.connect(file)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Adds a second revision, with that body, to a copy of the history."""
    folder = shutil.copytree(migrations.FOLDER, tmp_path / "100% copy", ignore=shutil.ignore_patterns("__pycache__"))

    def add(body):
        (folder / "versions" / "0002_next.py").write_text(
            "from alembic import op\n\nrevision = '0002'\ndown_revision = '0001'\n\n\n"
            f"def upgrade():\n    {body}\n\n\ndef downgrade():\n    pass\n"
        )
        for owner in (migrations, module):
            monkeypatch.setattr(owner, "FOLDER", folder)

    return add


def test_looking_at_a_missing_database_does_not_make_it(url, file):
    assert (check(url), current_revision(url)) == (Behind(None, HEAD), None)
    assert not file.parent.exists()


def test_migrating_a_missing_database_makes_it_current(url, file):
    assert migrate(url) == UpToDate(HEAD)
    assert (check(url), current_revision(url)) == (UpToDate(HEAD), HEAD)
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_migrating_a_current_database_writes_nothing(url, file):
    migrate(url)
    before = file.read_bytes()
    assert migrate(url) == UpToDate(HEAD)
    assert file.read_bytes() == before


def test_an_older_database_is_brought_up_and_keeps_its_rows(url, file, history):
    migrate(url)
    script(file, "INSERT INTO signing_key VALUES ('a', 'p', x'00', '2026-01-01')")
    history("op.execute('CREATE TABLE extra (n INTEGER)')")
    assert check(url) == Behind("0001", "0002")
    assert migrate(url) == UpToDate("0002")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT id FROM signing_key").fetchall() == [("a",)]
    assert "extra" in tables(file)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(url, file, history):
    migrate(url)
    before = tables(file)
    history("op.execute('CREATE TABLE extra (n INTEGER)'); raise ZeroDivisionError")
    with pytest.raises(ZeroDivisionError):
        migrate(url)
    assert (tables(file), current_revision(url)) == (before, "0001")


def test_a_table_that_is_rebuilt_does_not_empty_its_children(url, file, history):
    migrate(url)
    script(
        file,
        "INSERT INTO conversation VALUES ('c', 'p', 'h', 't', NULL, '2026-01-01', '2026-01-01', 1);"
        "INSERT INTO entry VALUES ('c', 1, '2026-01-01', 'user', '{}');",
    )
    history("with op.batch_alter_table('conversation', recreate='always') as batch: batch.drop_column('title')")
    assert migrate(url) == UpToDate("0002")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT conversation, seq FROM entry").fetchall() == [("c", 1)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("act", [check, migrate])
def test_an_older_binary_refuses_a_newer_schema_and_touches_nothing(url, file, act):
    migrate(url)
    script(file, "UPDATE alembic_version SET version_num = '9999'; CREATE TABLE from_the_future (n INTEGER)")
    before = file.read_bytes()
    assert act(url) == Newer("9999", HEAD)
    assert file.read_bytes() == before


def test_tables_without_a_revision_are_somebody_elses(url, file):
    file.parent.mkdir()
    script(file, "CREATE TABLE session (key TEXT); INSERT INTO session VALUES ('theirs')")
    for act in (check, migrate):
        with pytest.raises(StoreUnavailable, match="has tables but no revision: use an empty one"):
            act(url)
    assert tables(file) == {"session"}


def test_a_file_that_is_no_database_is_unavailable(url, file):
    file.parent.mkdir()
    file.write_text("not a database " * 100)
    for act in (check, migrate):
        with pytest.raises(StoreUnavailable, match="is not a SQLite database"):
            act(url)


@pytest.mark.parametrize(
    ("standing", "sentence"),
    [
        pytest.param(UpToDate("0002"), "The database schema is at revision 0002, which is current.", id="current"),
        pytest.param(
            Behind("0001", "0002"),
            "The database schema is at revision 0001, not 0002: run `superpi migrate`.",
            id="behind",
        ),
        pytest.param(
            Behind(None, "0002"),
            "The database schema is at revision none, not 0002: run `superpi migrate`.",
            id="empty",
        ),
        pytest.param(
            Newer("0003", "0002"),
            "The database schema is at revision 0003, newer than this superpi knows (0002): "
            "install the newer superpi again. Nothing was changed.",
            id="newer",
        ),
    ],
)
def test_a_standing_in_words(standing, sentence):
    assert explain(standing) == sentence


MIGRATE_EACH_LINE = """
import sys
from gateway.store.migrate import migrate
for line in sys.stdin:
    print(migrate(line.strip()), flush=True)
"""


def test_four_processes_that_migrate_at_once_all_find_it_current(tmp_path):
    """Five rounds, each on a database that does not exist yet."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE_EACH_LINE],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]

    def all_migrate(url):
        for process in processes:
            process.stdin.write(f"{url}\n")
            process.stdin.flush()
        return [process.stdout.readline() for process in processes]

    try:
        said = [all_migrate(f"sqlite:///{tmp_path}/round {n}/superpi.db") for n in range(5)]
    finally:
        for process in processes:
            process.communicate(timeout=60)
    assert said == [[f"{UpToDate(HEAD)}\n"] * 4] * 5


def test_a_database_that_is_current_is_found_so_without_alembic(url):
    migrate(url)
    code = f"import sys\nfrom gateway.store.migrate import migrate\nprint(migrate({url!r}), 'alembic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == f"{UpToDate(HEAD)} False\n"
