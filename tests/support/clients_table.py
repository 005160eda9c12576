"""The README's table of clients: what the tests saw pass, kept in a file beside them and compared with every run.

`make clients-table` runs the tests with `CLIENTS_TABLE=write`; then each writes down what it saw instead of comparing
it, one after the other, and renders the README anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.support.clients import CLIENTS, INSPECTOR
from tests.support.environments import ROOT

TABLE: Final = ROOT / "tests" / "clients" / "table.json"
README: Final = ROOT / "README.md"
COMMAND: Final = "make clients-table"
#: Columns: the name in the file, and the heading.
DOORS: Final = {
    "stdio": "stdio",
    "sqlite": "HTTP, token, SQLite",
    "postgresql": "HTTP, token, PostgreSQL",
}
_START: Final = "<!-- clients -->"
_END: Final = "<!-- /clients -->"

#: A client's version, and by door the revisions that it agreed on, the oldest first.
Row = dict[str, Any]


def passed(client: str, version: str, doors: Mapping[str, Iterable[str]]) -> None:
    """Note that a client's visits passed, with those revisions by door.

    Compares it with the table, or writes it down when that is asked for.
    """
    saw = {door: sorted(revisions) for door, revisions in doors.items()}
    rows = read()
    if os.environ.get("CLIENTS_TABLE") == "write":
        rows.setdefault(client, {}).update({"version": version, **saw})
        _write(rows)
        _render()
    else:
        row = rows.get(client, {})
        assert {key: row.get(key) for key in ("version", *saw)} == {"version": version, **saw}, (
            f"{client} {version} passed with {saw}, and the table of clients says something else. "
            f"Write it anew: {COMMAND}"
        )


def read() -> dict[str, Row]:
    """The rows by the client's name."""
    rows = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}
    assert isinstance(rows, dict)
    return rows


def rendered(rows: Mapping[str, Row]) -> str:
    """The table in Markdown, a line a client."""
    heading = ["Client", "Version", *DOORS.values()]
    lines = [heading, ["---"] * len(heading), *_cells(rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def section(page: str) -> str:
    """What stands between the markers of a page."""
    return page.partition(f"{_START}\n")[2].partition(_END)[0]


def _cells(rows: Mapping[str, Row]) -> list[list[str]]:
    return [
        [client.title, f"`{client.package}` {row['version']}", *(", ".join(row.get(door, [])) for door in DOORS)]
        for client in (*CLIENTS, INSPECTOR)
        if (row := rows.get(client.name))
    ]


def _write(rows: Mapping[str, Any]) -> None:
    TABLE.write_text(json.dumps(rows, indent=2, sort_keys=True) + "\n", "utf-8")


def _render() -> None:
    page = README.read_text("utf-8")
    before, start, rest = page.partition(f"{_START}\n")
    _, end, after = rest.partition(_END)
    assert start, f"The README has no {_START}"
    assert end, f"The README has no {_END}"
    README.write_text(f"{before}{start}{rendered(read())}{end}{after}", "utf-8")
