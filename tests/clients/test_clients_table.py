"""The README says which clients passed, and says it as the tests saw it."""

from tests.support.clients import CLIENTS, INSPECTOR
from tests.support.clients_table import COMMAND, README, read, rendered, section
from tests.support.doors import DATABASES


def test_the_table_has_a_row_for_each_client_and_no_other():
    """A client that is gone must not be promised any longer; each test compares its own cell."""
    cells = {client.name: {"version", "stdio", *DATABASES} for client in CLIENTS}
    cells[INSPECTOR.name] = {"version", *DATABASES}
    assert {name: set(row) for name, row in read().items()} == cells, f"write it anew: {COMMAND}"


def test_the_readme_holds_the_table_as_it_is_written_down():
    assert section(README.read_text("utf-8")) == rendered(read()), f"write it anew: {COMMAND}"
