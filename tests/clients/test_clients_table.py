"""The README says which clients passed, and says it as the tests saw it."""

from tests.support.clients import CLIENTS, INSPECTOR
from tests.support.clients_table import COMMAND, DOORS, README, read, rendered, section
from tests.support.doors import DATABASES


def test_the_table_has_a_row_for_each_client_and_no_other():
    """A client that is gone must not be promised any longer; each test compares its own row.

    A client that speaks both eras agreed on another revision in each.
    """
    expected = {client.name: dict.fromkeys(DOORS, len(client.modes)) for client in CLIENTS}
    expected[INSPECTOR.name] = dict.fromkeys(DATABASES, len(INSPECTOR.modes))
    rows = {name: {key: found for key, found in row.items() if key != "version"} for name, row in read().items()}
    counts = {name: {door: len(set(found)) for door, found in row.items()} for name, row in rows.items()}
    assert counts == expected, f"write it anew: {COMMAND}"


def test_the_readme_holds_the_table_as_it_is_written_down():
    assert section(README.read_text("utf-8")) == rendered(read()), f"write it anew: {COMMAND}"
