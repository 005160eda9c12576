"""`superpi migrate`: bring the database to this version's schema, or tell where it stands."""

from __future__ import annotations

import argparse
from typing import Any

_DONE = 0
_FAILED = 1


def add_commands(commands: Any) -> None:
    """Add the command to the subparsers of `superpi`."""
    migrate = commands.add_parser(
        "migrate",
        help="bring the database to this version's schema",
        description="Bring the database (SUPERPI_DATABASE_URL) to this version's schema. Safe to run at any time, "
        "any number of times, by several processes at once.",
    )
    migrate.add_argument("--check", action="store_true", help="only tell; the exit status is 1 unless it is current")
    migrate.set_defaults(run=_migrate)


def _migrate(options: argparse.Namespace) -> int:
    """The exit status: 0 when the schema is current. Raises SettingsError and StoreUnavailable."""
    from gateway.settings import load  # deferred: parsing a command line needs no settings
    from gateway.store import migrate

    url = load().store_url
    standing = migrate.check(url) if options.check else migrate.migrate(url)
    print(migrate.explain(standing))  # noqa: T201 - what a command says is its output
    return _DONE if isinstance(standing, migrate.UpToDate) else _FAILED
