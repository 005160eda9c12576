"""`superpi grant`: what people allowed from now on, from the machine that has the database.

Grants go to stdout, words to stderr. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway import token_output as output
from gateway.reach import add_run
from gateway.token_cli import DONE, FAILED, by, every_page, with_database
from gateway.token_output import Fields, say

if TYPE_CHECKING:
    from gateway.store.engine import Database

_COLUMNS: Final = ("id", "principal", "tool", "subject", "reach", "expires", "token", "created")
_PAGE: Final = 500
#: Characters of a subject in the table; all of it is in the JSON.
_MOST_SUBJECT: Final = 60


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `grant` to the commands of `superpi`."""
    grant = commands.add_parser("grant", help="list and revoke what people allowed from now on")
    actions = grant.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="show the grants that count now, newest first")
    listed.add_argument("--principal", help="only those of this principal")
    listed.add_argument("--json", action="store_true", help="as JSON, with the whole of each subject")
    add_run(listed, _list, "grant list")
    revoke = actions.add_parser("revoke", help="end a grant at once, so that the person is asked again")
    revoke.add_argument("id", metavar="ID", help="as `superpi grant list` shows it")
    add_run(revoke, _revoke, "grant revoke")


def show_grants(rows: Sequence[Fields], *, as_json: bool) -> None:
    """The grants on stdout; a table has the beginning of each subject."""
    if not as_json:
        rows = [{**row, "subject": _cut(row["subject"])} for row in rows]
    output.show(rows, _COLUMNS, as_json=as_json, nothing="There are no grants.")


def _list(options: argparse.Namespace) -> int:
    async def show(database: Database) -> int:
        from gateway.granting import grant_fields
        from gateway.issuing import utc_now
        from gateway.store.grants import SqlGrants

        grants, now = SqlGrants(database), utc_now()
        found = await every_page(lambda after: grants.list(options.principal, now=now, after=after, limit=_PAGE))
        show_grants([grant_fields(grant) for grant in found], as_json=options.json)
        return DONE

    return with_database(show)


def _revoke(options: argparse.Namespace) -> int:
    async def revoke(database: Database) -> int:
        from gateway.granting import withdraw
        from gateway.store.grants import SqlGrants

        grant = await withdraw(SqlGrants(database), options.id, by())
        if grant is None:
            say(f"There is no grant {options.id!r}; `superpi grant list` shows those there are.")
            return FAILED
        say(f"Grant {grant.id} of {grant.principal} is revoked: the person is asked again.")
        return DONE

    return with_database(revoke)


def _cut(subject: str) -> str:
    return subject if len(subject) <= _MOST_SUBJECT else f"{subject[:_MOST_SUBJECT]}..."
