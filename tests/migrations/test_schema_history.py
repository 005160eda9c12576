"""The history of the schema leads to the declared schema, in a line, and back."""

import importlib.util
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

import migrations
from gateway.store.migrate import configuration, migrate
from gateway.store.tables import metadata
from tests.support.postgres import running


@pytest.fixture(scope="module")
def postgres():
    """A PostgreSQL server of these tests' own."""
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path):
    """Opens empty databases of one product, by name; answers their URLs."""
    with ExitStack() as stack:

        def make(name):
            if request.param == "sqlite":
                return f"sqlite:///{tmp_path}/{name}.db"
            return stack.enter_context(request.getfixturevalue("postgres").database())

        yield make


@contextmanager
def engine_on(url):
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture
def migrated(empty):
    """An engine on a database that the migrations made."""
    url = empty("migrated")
    migrate(url)
    with engine_on(url) as engine:
        yield engine


@pytest.fixture
def declared(empty):
    """An engine on a database that the declared tables made."""
    with engine_on(empty("declared")) as engine:
        metadata.create_all(engine)
        yield engine


def reflected(engine):
    """Everything that the database tells about its tables, but Alembic's own."""
    inspector = inspect(engine)
    ask = ("get_pk_constraint", "get_foreign_keys", "get_unique_constraints", "get_check_constraints", "get_indexes")
    return {
        name: {
            "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(name)],
            **{question: getattr(inspector, question)(name) for question in ask},
        }
        for name in inspector.get_table_names()
        if name != "alembic_version"
    }


def test_autogenerate_finds_no_difference_to_the_declared_tables(migrated):
    with migrated.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def test_the_migrated_schema_reflects_as_the_declared_one(migrated, declared):
    found = reflected(migrated)
    assert found == reflected(declared)
    assert set(found) == set(metadata.tables)


def test_every_constraint_and_index_has_a_name_of_the_convention(migrated):
    names = {
        item["name"]
        for table in reflected(migrated).values()
        for item in (
            table["get_pk_constraint"],
            *table["get_foreign_keys"],
            *table["get_unique_constraints"],
            *table["get_indexes"],
        )
    }
    assert {name.partition("_")[0] for name in names} == {"pk", "fk", "uq", "ix"}


def test_downgrading_to_nothing_and_upgrading_again_gives_the_same_schema(migrated):
    before = reflected(migrated)
    config = configuration()
    with migrated.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert reflected(migrated) == {}
    with migrated.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    assert reflected(migrated) == before


def test_revisions_are_a_line_and_files_are_named_after_them():
    script = ScriptDirectory.from_config(configuration())
    line = [revision.revision for revision in script.walk_revisions()]
    assert tuple(reversed(line)) == migrations.revisions()
    assert script.get_heads() == [migrations.revisions()[-1]]


def test_a_migration_does_not_import_the_declared_tables():
    """It must do the same for ever, whatever the tables become."""
    for file in (migrations.FOLDER / "versions").glob("*.py"):
        assert "gateway" not in file.read_text()


def test_the_package_holds_what_alembic_reads():
    """So the wheel does, which packs the package whole."""
    assert importlib.util.find_spec("migrations").origin == str(migrations.FOLDER / "__init__.py")
    assert {Path(migrations.FOLDER, name).is_file() for name in ("env.py", "script.py.mako")} == {True}


def test_grants_from_before_rules_were_kept_end_with_the_migration(empty):
    """Nobody knows what they answered; a version that runs on beside it may still add some."""
    url = empty("older")
    with engine_on(url) as engine:
        config = configuration()
        columns = "id, principal, harness, tool, subject, digest, created_at, expires_at"
        day = "'2026-01-01'"
        insert = text(
            f"INSERT INTO \"grant\" ({columns}) VALUES ('g', 'local:a', 'h', 'bash', 'x', :digest, {day}, {day})"
        )
        for revision, left in (("0004", 1), ("0005", 0), (None, 1)):
            with engine.begin() as connection:
                if revision is not None:
                    config.attributes["connection"] = connection
                    command.upgrade(config, revision)
                if revision != "0005":
                    connection.execute(insert, {"digest": b"1"})
                assert connection.execute(text('SELECT count(*) FROM "grant"')).scalar_one() == left
