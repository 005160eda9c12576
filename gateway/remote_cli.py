"""The commands of `superpi` against the administrative interface: the same words and rows as against the database."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, Final

from gateway import token_output as output
from gateway.naming import key_of
from gateway.remote import Remote, RemoteError, connected, moments, step
from gateway.routes import AUDIT, EXPORT_AUDIT, GRANTS, PRINCIPALS, SESSIONS, TOKENS
from gateway.token_output import say

_DONE: Final = 0
_FAILED: Final = 1

Command = Callable[[Remote, argparse.Namespace], int]


def run(name: str, options: argparse.Namespace) -> int:
    """Run a command at the server that the options name."""
    try:
        with connected(options.url, options.token_file) as remote:
            return COMMANDS[name](remote, options)
    except RemoteError as error:
        say(str(error))
        return _FAILED


def _create_token(remote: Remote, options: argparse.Namespace) -> int:
    is_known = remote.get(_principal(options.principal)) is not None
    wanted: dict[str, Any] = {"principal": options.principal, "kind": options.kind, "name": options.name}
    wanted["expires_days"] = None if options.never_expires else options.expires_days
    if options.scope is not None:
        wanted["scopes"] = [name for scope in options.scope for name in scope.split()]
    made = moments(remote.ask("POST", TOKENS, json=wanted))
    if not is_known:
        say(f"Made the principal {options.principal}.")
    output.show_new(made, made["secret"])
    return _DONE


def _list_tokens(remote: Remote, options: argparse.Namespace) -> int:
    rows = remote.items(TOKENS, principal=options.principal)
    output.show(rows, output.TOKEN_COLUMNS, as_json=options.json, nothing="There are no tokens.")
    return _DONE


def _revoke_token(remote: Remote, options: argparse.Namespace) -> int:
    path = f"{TOKENS}/{step(options.id)}"
    before = remote.get(path)
    if before is None:
        return _unknown("token", options.id)
    token = moments(remote.ask("POST", f"{path}/revoke"))
    is_new = before["revoked"] != token["revoked"]
    when = "is revoked" if is_new else f"was revoked before, {output.moment(token['revoked'])}"
    say(f"Token {token['id']} of {token['principal']} {when}.")
    return _DONE


def _rotate_token(remote: Remote, options: argparse.Namespace) -> int:
    path = f"{TOKENS}/{step(options.id)}"
    if remote.get(path) is None:
        return _unknown("token", options.id)
    new = moments(remote.ask("POST", f"{path}/rotate", json={"overlap_seconds": options.overlap_seconds}))
    output.show_new(new, new["secret"])
    old = remote.get(path)
    ends = None if old is None else old["revoked"]
    say(
        f"Token {options.id} ends {output.moment(ends)}."
        if options.overlap_seconds
        else f"Token {options.id} is revoked."
    )
    return _DONE


def _create_principal(remote: Remote, options: argparse.Namespace) -> int:
    if remote.get(_principal(options.id)) is not None:
        say(f"There is a principal {options.id} already.")
        return _FAILED
    remote.ask("POST", PRINCIPALS, json={"id": options.id})
    say(f"Made the principal {options.id}.")
    return _DONE


def _list_principals(remote: Remote, options: argparse.Namespace) -> int:
    rows = [{name: value for name, value in row.items() if name != "key"} for row in remote.items(PRINCIPALS)]
    output.show(rows, output.PRINCIPAL_COLUMNS, as_json=options.json, nothing="There are no principals.")
    return _DONE


def _change_principal(act: str) -> Command:
    def change(remote: Remote, options: argparse.Namespace) -> int:
        if remote.get(_principal(options.id)) is None:
            return _unknown("principal", options.id)
        principal = remote.ask("POST", f"{_principal(options.id)}/{act}")
        say(f"Principal {options.id} is {principal['state']}.")
        return _DONE

    return change


def _list_grants(remote: Remote, options: argparse.Namespace) -> int:
    from gateway.grant_cli import show_grants

    show_grants(remote.items(GRANTS, principal=options.principal), as_json=options.json)
    return _DONE


def _revoke_grant(remote: Remote, options: argparse.Namespace) -> int:
    found = next((grant for grant in remote.items(GRANTS) if grant["id"] == options.id), None)
    if found is None:
        return _unknown("grant", options.id)
    remote.ask("DELETE", f"{GRANTS}/{step(options.id)}")
    say(f"Grant {options.id} of {found['principal']} is revoked: the person is asked again.")
    return _DONE


def _list_sessions(remote: Remote, options: argparse.Namespace) -> int:
    from gateway.session_cli import show_sessions

    show_sessions(remote.items(SESSIONS, principal=options.principal), as_json=options.json)
    return _DONE


def _end_session(remote: Remote, options: argparse.Namespace) -> int:
    path = f"{SESSIONS}/{step(options.label)}"
    session = remote.get(path)
    if session is None:
        return _unknown("session", options.label)
    remote.ask("DELETE", path)
    say(f"Session {options.label} of {session['principal']} has ended.")
    return _DONE


def _list_audit(remote: Remote, options: argparse.Namespace) -> int:
    from gateway.audit_cli import show_rows

    show_rows(remote.items(AUDIT, most=options.limit, **_filters(options)))
    return _DONE


def _export_audit(remote: Remote, options: argparse.Namespace) -> int:
    from gateway.audit_cli import piped

    def write() -> int:
        sys.stdout.writelines(remote.lines(EXPORT_AUDIT, **_filters(options)))
        sys.stdout.flush()
        return _DONE

    return piped(write)


def _filters(options: argparse.Namespace) -> dict[str, Any]:
    since = None if options.since is None else options.since.isoformat()
    return {"principal": options.principal, "action": options.action, "since": since}


def _principal(id: str) -> str:
    return f"{PRINCIPALS}/{step(key_of(id))}"


def _unknown(what: str, name: str) -> int:
    say(f"There is no {what} {name!r}; `superpi {what} list` shows those there are.")
    return _FAILED


#: By the name that `gateway.reach.add_run` was given.
COMMANDS: Final[dict[str, Command]] = {
    "token create": _create_token,
    "token list": _list_tokens,
    "token revoke": _revoke_token,
    "token rotate": _rotate_token,
    "principal create": _create_principal,
    "principal list": _list_principals,
    "principal disable": _change_principal("disable"),
    "principal enable": _change_principal("enable"),
    "grant list": _list_grants,
    "grant revoke": _revoke_grant,
    "session list": _list_sessions,
    "session end": _end_session,
    "audit list": _list_audit,
    "audit export": _export_audit,
}
