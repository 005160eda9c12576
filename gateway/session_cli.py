"""`superpi session`: the connections that hosts opened, from the machine that has the database or by `--url`.

Sessions go to stdout, words to stderr. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway import token_output as output
from gateway.reach import add_run
from gateway.token_cli import DONE, FAILED, by, with_database
from gateway.token_output import Fields, say

if TYPE_CHECKING:
    from gateway.store.engine import Database
    from mcp.sessions import Session

_COLUMNS: Final = ("label", "principal", "client", "revision", "harness", "created", "last_seen")
_PAGE: Final = 500


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `session` to the commands of `superpi`."""
    session = commands.add_parser("session", help="list and end the sessions of hosts")
    actions = session.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="show the sessions, newest first")
    listed.add_argument("--principal", help="only those of this principal")
    listed.add_argument("--json", action="store_true", help="as JSON")
    add_run(listed, _list, "session list")
    end = actions.add_parser("end", help="end a session at once, with the calls that run in it")
    end.add_argument("label", metavar="LABEL", help="as `superpi session list` shows it")
    add_run(end, _end, "session end")


def show_sessions(rows: Sequence[Fields], *, as_json: bool) -> None:
    """The sessions on stdout; in the table a client is what it calls itself."""
    if not as_json:
        rows = [row | {"client": str(row["client"].get("name", ""))[:40]} for row in map(dict, rows)]
    output.show(rows, _COLUMNS, as_json=as_json, nothing="There are no sessions.")


def _list(options: argparse.Namespace) -> int:
    async def show(database: Database) -> int:
        from gateway.sessions import session_fields
        from gateway.store.sessions import SqlSessions

        sessions, after = SqlSessions(database), None
        found: list[Session] = []
        while True:
            items, after = await sessions.list(principal=options.principal, after=after, limit=_PAGE)
            found += items
            if after is None:
                break
        show_sessions([session_fields(session) for session in found], as_json=options.json)
        return DONE

    return with_database(show)


def _end(options: argparse.Namespace) -> int:
    async def end(database: Database) -> int:
        from gateway.issuing import audited
        from gateway.store.sessions import SqlSessions

        sessions = SqlSessions(database)
        session = await sessions.labelled(options.label)
        also = (
            None if session is None else audited("session.end", session.label, by(), reason=f"of {session.principal}")
        )
        if session is None or not await sessions.end(session.id, also=also):
            say(f"There is no session {options.label!r}; `superpi session list` shows those there are.")
            return FAILED
        say(f"Session {session.label} of {session.principal} has ended.")
        return DONE

    return with_database(end)
