"""Migrating: where a database stands, many processes at once, and what is refused untouched. On both products."""

import argparse
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, make_url, text

import migrations
from gateway.migrate_cli import add_commands
from gateway.store import migrate as module
from gateway.store.faults import StoreUnavailable
from gateway.store.migrate import Behind, Newer, UpToDate, check, current_revision, explain, make_ready, migrate

ROOT = Path(__file__).parents[3]
HEAD = migrations.revisions()[-1]
NEXT = f"{int(HEAD) + 1:04}"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "superpi.db"


@pytest.fixture
def sqlite_url(file):
    """A file that does not exist, in a folder that does not either."""
    return f"sqlite:///{file}"


@pytest.fixture
def postgresql_url(postgres):
    """A database without a table."""
    with postgres.database() as url:
        yield url


@contextmanager
def connected(url):
    """A transaction of somebody else's."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    else:
        Path(parsed.database).parent.mkdir(exist_ok=True)
    engine = create_engine(parsed)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def script(url, *statements):
    with connected(url) as connection:
        for statement in statements:
            connection.execute(text(statement))


def rows(url, statement):
    with connected(url) as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def tables(url):
    with connected(url) as connection:
        return set(inspect(connection).get_table_names())


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Adds a revision after the newest, with that body, to a copy of the history."""
    folder = shutil.copytree(migrations.FOLDER, tmp_path / "100% copy", ignore=shutil.ignore_patterns("__pycache__"))

    def add(body):
        (folder / "versions" / f"{NEXT}_next.py").write_text(
            f"from alembic import op\n\nrevision = '{NEXT}'\ndown_revision = '{HEAD}'\n\n\n"
            f"def upgrade():\n    {body}\n\n\ndef downgrade():\n    pass\n"
        )
        for owner in (migrations, module):
            monkeypatch.setattr(owner, "FOLDER", folder)

    return add


def test_looking_at_a_missing_file_does_not_make_it(sqlite_url, file):
    assert (check(sqlite_url), current_revision(sqlite_url)) == (Behind(None, HEAD), None)
    assert not file.parent.exists()


def test_looking_at_an_empty_database_makes_no_table(postgresql_url):
    assert (check(postgresql_url), current_revision(postgresql_url)) == (Behind(None, HEAD), None)
    assert tables(postgresql_url) == set()


def test_migrating_an_empty_or_missing_database_makes_it_current(url):
    assert migrate(url) == UpToDate(HEAD)
    assert (check(url), current_revision(url)) == (UpToDate(HEAD), HEAD)


def test_migrating_a_missing_file_makes_it_closed_to_others(sqlite_url, file):
    migrate(sqlite_url)
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_migrating_a_current_file_writes_nothing(sqlite_url, file):
    migrate(sqlite_url)
    before = file.read_bytes()
    assert migrate(sqlite_url) == UpToDate(HEAD)
    assert file.read_bytes() == before


def test_migrating_a_current_database_waits_for_no_lock(postgresql_url):
    migrate(postgresql_url)
    with connected(postgresql_url) as other:
        other.execute(text("LOCK TABLE alembic_version IN SHARE UPDATE EXCLUSIVE MODE"))
        assert migrate(postgresql_url) == UpToDate(HEAD)


def test_an_older_database_is_brought_up_and_keeps_its_rows(url, history):
    migrate(url)
    script(url, "INSERT INTO principal VALUES ('a', '2026-01-01', 'b', NULL, NULL)")
    history("op.execute('CREATE TABLE extra (n INTEGER)')")
    assert check(url) == Behind(HEAD, NEXT)
    assert migrate(url) == UpToDate(NEXT)
    assert rows(url, "SELECT id FROM principal") == [("a",)]
    assert "extra" in tables(url)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(url, history):
    migrate(url)
    before = tables(url)
    history("op.execute('CREATE TABLE extra (n INTEGER)'); raise ZeroDivisionError")
    with pytest.raises(ZeroDivisionError):
        migrate(url)
    assert (tables(url), current_revision(url)) == (before, HEAD)


def test_a_table_that_is_rebuilt_does_not_empty_its_children(url, history):
    migrate(url)
    script(
        url,
        "INSERT INTO conversation VALUES ('c', 'p', 'h', 't', NULL, '2026-01-01', '2026-01-01', 1)",
        "INSERT INTO entry VALUES ('c', 1, '2026-01-01', 'user', '{}')",
    )
    history("with op.batch_alter_table('conversation', recreate='auto') as batch: batch.drop_column('title')")
    assert migrate(url) == UpToDate(NEXT)
    assert rows(url, "SELECT conversation, seq FROM entry") == [("c", 1)]
    with connected(url) as connection:
        assert "title" not in {column["name"] for column in inspect(connection).get_columns("conversation")}


@pytest.mark.parametrize("act", [check, migrate])
def test_an_older_binary_refuses_a_newer_schema_and_touches_nothing(url, act):
    migrate(url)
    script(url, "UPDATE alembic_version SET version_num = '9999'", "CREATE TABLE from_the_future (n INTEGER)")
    before = tables(url)
    assert act(url) == Newer("9999", HEAD)
    assert (tables(url), rows(url, "SELECT version_num FROM alembic_version")) == (before, [("9999",)])


def test_tables_without_a_revision_are_somebody_elses(url):
    script(url, "CREATE TABLE session (key TEXT)", "INSERT INTO session VALUES ('theirs')")
    for act in (check, migrate):
        with pytest.raises(StoreUnavailable, match="has tables but no revision: use an empty one"):
            act(url)
    assert tables(url) == {"session"}


def test_a_file_that_is_no_database_is_unavailable(sqlite_url, file):
    file.parent.mkdir()
    file.write_text("not a database " * 100)
    for act in (check, migrate):
        with pytest.raises(StoreUnavailable, match="is not a SQLite database"):
            act(sqlite_url)


def test_a_migration_waits_for_a_lock_only_so_long(postgresql_url, history, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    migrate(postgresql_url)
    history("op.add_column('session', __import__('sqlalchemy').Column('extra', __import__('sqlalchemy').Text))")
    with connected(postgresql_url) as other:
        other.execute(text("SELECT * FROM session"))  # an open transaction that only read is enough
        with pytest.raises(StoreUnavailable, match="is locked by another process"):
            migrate(postgresql_url)
    assert migrate(postgresql_url) == UpToDate(NEXT)


@pytest.mark.parametrize(
    ("how", "state", "refused"),
    [
        pytest.param("auto", "missing", None, id="auto makes it"),
        pytest.param("auto", "newer", "newer than this superpi knows", id="auto leaves a newer one"),
        pytest.param("check", "missing", "run `superpi migrate`", id="check refuses an empty one"),
        pytest.param("check", "current", None, id="check takes a current one"),
        pytest.param("check", "newer", "newer than this superpi knows", id="check refuses a newer one"),
        pytest.param("off", "missing", None, id="off does not look at an empty one"),
        pytest.param("off", "newer", None, id="off does not look at a newer one"),
    ],
)
def test_what_a_server_does_at_its_start(url, how, state, refused):
    if state != "missing":
        migrate(url)
    if state == "newer":
        script(url, "UPDATE alembic_version SET version_num = '9999'")
    before = check(url)
    if refused is None:
        make_ready(url, how)
    else:
        with pytest.raises(StoreUnavailable, match=refused):
            make_ready(url, how)
    assert check(url) == (UpToDate(HEAD) if (how, state) == ("auto", "missing") else before)


def command(monkeypatch, url, *words):
    """Run `superpi migrate` on that database; its exit status."""
    monkeypatch.setenv("SUPERPI_DATABASE_URL", url)
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())
    options = parser.parse_args(["migrate", *words])
    return options.run(options)


def test_the_command_migrates_and_tells_where_the_database_stands(url, monkeypatch, capsys):
    current = f"The database schema is at revision {HEAD}, which is current.\n"
    assert command(monkeypatch, url, "--check") == 1
    assert capsys.readouterr().out == explain(Behind(None, HEAD)) + "\n"
    assert [command(monkeypatch, url), command(monkeypatch, url), command(monkeypatch, url, "--check")] == [0, 0, 0]
    assert capsys.readouterr().out == 3 * current


def test_the_command_refuses_a_newer_schema(url, monkeypatch, capsys):
    migrate(url)
    script(url, "UPDATE alembic_version SET version_num = '9999'")
    assert command(monkeypatch, url) == 1
    assert capsys.readouterr().out == explain(Newer("9999", HEAD)) + "\n"


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


@pytest.fixture
def four():
    """Four processes that migrate what they are told to."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE_EACH_LINE],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    yield started
    for process in started:
        process.communicate(timeout=60)


def all_migrate(processes, url):
    """What each says of the same database."""
    for process in processes:
        process.stdin.write(f"{url}\n")
        process.stdin.flush()
    return [process.stdout.readline() for process in processes]


def test_four_processes_that_migrate_a_missing_file_at_once_all_find_it_current(four, tmp_path):
    said = [all_migrate(four, f"sqlite:///{tmp_path}/round {n}/superpi.db") for n in range(5)]
    assert said == [[f"{UpToDate(HEAD)}\n"] * 4] * 5


def test_four_processes_that_migrate_an_empty_database_at_once_all_find_it_current(four, postgres):
    said = []
    for _ in range(5):
        with postgres.database() as url:
            said.append(all_migrate(four, url))
    assert said == [[f"{UpToDate(HEAD)}\n"] * 4] * 5


def test_a_database_that_is_current_is_found_so_without_alembic(url):
    migrate(url)
    code = f"import sys\nfrom gateway.store.migrate import migrate\nprint(migrate({url!r}), 'alembic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == f"{UpToDate(HEAD)} False\n"
