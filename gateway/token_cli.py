"""`superpi token` and `superpi principal`: who may call, from the machine that has the database.

A new secret is the only thing on stdout, so that it can be piped; words go to stderr. Heavy imports wait until a
command needs them.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway import token_output as output
from gateway.reach import add_run
from gateway.token_output import say

if TYPE_CHECKING:
    from auth.ports import Also, Obstacle, Page
    from auth.tokens import Issued, PrincipalRecord
    from gateway.settings import Settings
    from gateway.store.engine import Database
    from gateway.store.principals import SqlPrincipals
    from gateway.store.tokens import SqlTokens
    from mcp.recording import Circumstances

T = TypeVar("T")

DONE: Final = 0
FAILED: Final = 1
_USAGE_ERROR: Final = 2

#: Who made a change on the command line, where a principal stands otherwise.
BY: Final = "cli"
#: The same as `auth.tokens.Kind`, without loading it.
KINDS: Final = ("pat", "svc", "adm")
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class _Stores:
    tokens: SqlTokens
    principals: SqlPrincipals


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `token` and `principal` to the commands of `superpi`."""
    token = commands.add_parser("token", help="create, list, revoke and rotate tokens")
    _token_commands(token.add_subparsers(required=True, metavar="ACTION"))
    principal = commands.add_parser("principal", help="create, list, disable and enable principals")
    _principal_commands(principal.add_subparsers(required=True, metavar="ACTION"))


def _token_commands(actions: argparse._SubParsersAction[Any]) -> None:
    create = actions.add_parser("create", help="make a token and print its secret, once")
    create.add_argument(
        "--principal", required=True, type=_local, help="whose it is, like local:alice; made if missing"
    )
    create.add_argument(
        "--scope", action="append", help="mcp:read, mcp:write, mcp:full or admin; may be repeated (default mcp:write)"
    )
    create.add_argument("--name", default="", type=_name, help="a note of your own, like laptop")
    create.add_argument("--kind", choices=KINDS, default="pat", help="for a person, a service or administration")
    lifetime = create.add_mutually_exclusive_group()
    lifetime.add_argument("--expires-days", type=_days, default=90, help="days that it is valid for (default 90)")
    lifetime.add_argument("--never-expires", action="store_true", help="valid until it is revoked")
    add_run(create, _create, "token create")

    listed = actions.add_parser("list", help="show the tokens, newest first, without their secrets")
    listed.add_argument("--principal", help="only those of this principal")
    listed.add_argument("--json", action="store_true", help="as JSON")
    add_run(listed, _list, "token list")

    revoke = actions.add_parser("revoke", help="end a token at once")
    revoke.add_argument("id", metavar="ID", help="as `superpi token list` shows it")
    add_run(revoke, _revoke, "token revoke")

    rotate = actions.add_parser("rotate", help="replace a token by one with a new secret, and print that")
    rotate.add_argument("id", metavar="ID", help="as `superpi token list` shows it")
    rotate.add_argument(
        "--overlap-seconds", type=_overlap, default=0, help="how long the old secret still works (default 0)"
    )
    add_run(rotate, _rotate, "token rotate")


def _principal_commands(actions: argparse._SubParsersAction[Any]) -> None:
    create = actions.add_parser("create", help="make a principal")
    create.add_argument("id", metavar="ID", type=_local, help="like local:alice")
    add_run(create, _create_principal, "principal create")
    listed = actions.add_parser("list", help="show the principals")
    listed.add_argument("--json", action="store_true", help="as JSON")
    add_run(listed, _list_principals, "principal list")
    disable = actions.add_parser("disable", help="refuse every token of a principal from now on")
    disable.add_argument("id", metavar="ID")
    add_run(disable, _disable, "principal disable")
    enable = actions.add_parser("enable", help="take a disabling back")
    enable.add_argument("id", metavar="ID")
    add_run(enable, _enable, "principal enable")


def _local(text: str) -> str:
    from gateway.issuing import principal_fault

    if (why := principal_fault(text)) is None:
        return text
    raise argparse.ArgumentTypeError(f"{text!r} {why}")


def _name(text: str) -> str:
    from gateway.issuing import name_fault

    if (why := name_fault(text)) is None:
        return text
    raise argparse.ArgumentTypeError(why)


def _days(text: str) -> int:
    from gateway.issuing import MOST_DAYS

    return _number(text, 1, MOST_DAYS)


def _overlap(text: str) -> int:
    from gateway.issuing import MOST_OVERLAP

    return _number(text, 0, MOST_OVERLAP)


def _number(text: str, least: int, most: int) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 12 and least <= int(text) <= most:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")


def _create(options: argparse.Namespace) -> int:
    from auth.scopes import NotScopes
    from auth.tokens import Kind
    from gateway.issuing import Wanted, issued, scopes_for, utc_now

    kind = Kind(options.kind)
    scopes = scopes_for(kind, options.scope)
    if isinstance(scopes, NotScopes):
        say(scopes.why)
        return _USAGE_ERROR
    lifetime = None if options.never_expires else timedelta(days=options.expires_days)
    wanted = Wanted(kind, options.principal, scopes, options.name, lifetime)
    new = issued(wanted, by=BY, now=utc_now())
    return _with_stores(lambda stores: _keep(stores, new))


async def _keep(stores: _Stores, new: Issued) -> int:
    from gateway import issuing

    record = new.record
    is_first = not await stores.tokens.ever_any()
    is_known = await stores.principals.get(record.principal) is not None
    obstacle = await issuing.keep(stores.tokens, new, by())
    if obstacle is not None:
        return _refused(obstacle, record.principal)
    if not is_known:
        say(f"Made the principal {record.principal}.")
    output.show_secret(new)
    if is_first:
        say("This is the first token: anonymous access is closed from now on, and every caller over HTTP needs one.")
    return DONE


def _list(options: argparse.Namespace) -> int:
    return _with_stores(lambda stores: _list_tokens(stores, options.principal, as_json=options.json))


async def _list_tokens(stores: _Stores, principal: str | None, *, as_json: bool) -> int:
    from auth.tokens import judge
    from gateway.issuing import owners, token_fields, utc_now

    found = await every_page(lambda after: stores.tokens.list(principal=principal, after=after, limit=_PAGE))
    owned_by = await owners(stores.principals, found)
    now = utc_now()
    rows = [token_fields(token, judge(token, owned_by[token.principal], now)) for token in found]
    output.show(rows, output.TOKEN_COLUMNS, as_json=as_json, nothing="There are no tokens.")
    return DONE


def _revoke(options: argparse.Namespace) -> int:
    from gateway import issuing

    async def revoke(stores: _Stores) -> int:
        now = issuing.utc_now()
        token = await issuing.revoke(stores.tokens, options.id, by(), now)
        if token is None:
            return _refused_unknown_token(options.id)
        when = "is revoked" if token.revoked == now else f"was revoked before, {output.moment(token.revoked)}"
        say(f"Token {token.id} of {token.principal} {when}.")
        return DONE

    return _with_stores(revoke)


def _rotate(options: argparse.Namespace) -> int:
    return _with_stores(lambda stores: _replace(stores, options.id, timedelta(seconds=options.overlap_seconds)))


async def _replace(stores: _Stores, id: str, overlap: timedelta) -> int:
    from auth.ports import Obstacle
    from gateway import issuing

    old = await stores.tokens.get(id)
    if old is None:
        return _refused_unknown_token(id)
    now = issuing.utc_now()
    new = await issuing.rotate(stores.tokens, old, overlap, by(), now)
    if isinstance(new, Obstacle):
        return _refused(new, id)
    output.show_secret(new)
    say(f"Token {id} ends {output.moment(now + overlap)}." if overlap else f"Token {id} is revoked.")
    return DONE


def _create_principal(options: argparse.Namespace) -> int:
    async def create(stores: _Stores) -> int:
        from auth.tokens import PrincipalRecord
        from gateway.issuing import utc_now

        if await stores.principals.create(
            PrincipalRecord(options.id, utc_now(), BY), also=_audited("principal.create", options.id)
        ):
            say(f"Made the principal {options.id}.")
            return DONE
        say(f"There is a principal {options.id} already.")
        return FAILED

    return _with_stores(create)


def _list_principals(options: argparse.Namespace) -> int:
    async def show(stores: _Stores) -> int:
        found = await every_page(lambda after: stores.principals.list(after=after, limit=_PAGE))
        rows = [output.principal_fields(principal) for principal in found]
        output.show(rows, output.PRINCIPAL_COLUMNS, as_json=options.json, nothing="There are no principals.")
        return DONE

    return _with_stores(show)


def _disable(options: argparse.Namespace) -> int:
    async def disable(stores: _Stores) -> int:
        from gateway.issuing import utc_now

        return _changed(
            options.id,
            await stores.principals.disable(
                options.id, at=utc_now(), by=BY, also=_audited("principal.disable", options.id)
            ),
        )

    return _with_stores(disable)


def _enable(options: argparse.Namespace) -> int:
    async def enable(stores: _Stores) -> int:
        return _changed(
            options.id, await stores.principals.enable(options.id, also=_audited("principal.enable", options.id))
        )

    return _with_stores(enable)


def _changed(id: str, principal: PrincipalRecord | None) -> int:
    if principal is None:
        say(f"There is no principal {id!r}; `superpi principal list` shows those there are.")
        return FAILED
    say(f"Principal {id} is {'enabled' if principal.disabled is None else 'disabled'}.")
    return DONE


def _refused(obstacle: Obstacle, what: str) -> int:
    say(f"{obstacle.value} ({what})")
    return FAILED


def _refused_unknown_token(id: str) -> int:
    say(f"There is no token {id!r}; `superpi token list` shows those there are.")
    return FAILED


def _audited(action: str, what: str) -> Also:
    from gateway.issuing import audited

    return audited(action, what, by())


def by() -> Circumstances:
    """Who makes the changes of this command, and what ties their rows together."""
    from mcp.recording import Circumstances

    return Circumstances(BY, token=None, request_id=secrets.token_hex(8), address=None, trace_id=None)


async def every_page(page: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """The items of every page."""
    found: list[T] = []
    after: str | None = None
    while True:
        part = await page(after)
        found += part.items
        if (after := part.after) is None:
            return found


def _with_stores(work: Callable[[_Stores], Awaitable[int]]) -> int:
    """Do the work on the stores of the settings' database. Raises SettingsError and StoreUnavailable."""

    async def with_stores(database: Database) -> int:
        from gateway.store.changes import record
        from gateway.store.principals import SqlPrincipals
        from gateway.store.tokens import SqlTokens

        return await work(_Stores(SqlTokens(database, record), SqlPrincipals(database, record)))

    return with_database(with_stores)


def with_database(work: Callable[[Database], Awaitable[int]]) -> int:
    """Open the database of the settings, made ready as a server would make it, and do the work.

    Raises SettingsError and StoreUnavailable.
    """
    from gateway.settings import load, unknown

    settings = load()
    for line in unknown():
        say(line)
    return asyncio.run(_opened(settings, work))


async def _opened(settings: Settings, work: Callable[[Database], Awaitable[int]]) -> int:
    from gateway.store.engine import open_database
    from gateway.store.migrate import make_usable

    make_usable(settings.store_url, settings.migrate)
    database = open_database(settings.store_url, readers=1, writers=1, seconds=settings.database_seconds)
    try:
        return await work(database)
    finally:
        await database.close()
