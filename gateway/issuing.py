"""What the command line and the administrative interface share: the rules for a new token, and changes with their row.

Whoever asks is a `Circumstances`: the row of a change names them, and commits with it or not at all. Knows neither
arguments nor HTTP.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from auth.ports import Also, Obstacle, PrincipalStore, TokenStore
from auth.scopes import NotScopes, Scopes, parse
from auth.tokens import (
    DEFAULT_LIFETIME,
    DEFAULT_SCOPES,
    ISSUE_BYTES,
    LONGEST_LIFETIME,
    MOST_NAME,
    Issued,
    Kind,
    PrincipalRecord,
    Refused,
    TokenRecord,
    Valid,
    is_local_principal,
    is_name,
    issue,
    succeed,
)
from gateway.store import audit
from mcp.recording import Circumstances
from telemetry.audit import AuditRecord, Decision

DEFAULT_DAYS: Final = DEFAULT_LIFETIME.days
MOST_DAYS: Final = LONGEST_LIFETIME.days
#: Seconds that a replaced token may still count.
MOST_OVERLAP: Final = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """A token that somebody asks for. A `lifetime` of None never ends."""

    kind: Kind
    principal: str
    scopes: Scopes
    name: str
    lifetime: timedelta | None


def principal_fault(id: str) -> str | None:
    """Why no token can be made for that principal, in words that follow it, if so."""
    if is_local_principal(id):
        return None
    return "is no local principal: write local: and a name of up to 64 letters, digits and . _ -"


def name_fault(name: str) -> str | None:
    """Why a token cannot be called that, if so."""
    return None if is_name(name) else f"a name is one line of up to {MOST_NAME} printable characters"


def scopes_for(kind: Kind, names: Sequence[str] | None) -> Scopes | NotScopes:
    """The scopes of these names; without any, those of the kind."""
    return DEFAULT_SCOPES[kind] if names is None else parse(names)


def issued(wanted: Wanted, *, by: str, now: datetime) -> Issued:
    """The token that is wanted, with a secret made by chance. It is worth nothing until it is kept."""
    return issue(
        wanted.kind,
        wanted.principal,
        wanted.scopes,
        name=wanted.name,
        lifetime=wanted.lifetime,
        by=by,
        now=now,
        entropy=secrets.token_bytes(ISSUE_BYTES),
    )


async def keep(tokens: TokenStore, new: Issued, by: Circumstances) -> Obstacle | None:
    """Keep a new token, with its principal if that is missing; None when it is done."""
    also = audited("token.create", new.record.id, by)
    return await tokens.create(new.record, new.minted.sha256, make_principal=True, also=also)


async def revoke(tokens: TokenStore, id: str, by: Circumstances, now: datetime) -> TokenRecord | None:
    """Revoke the token and answer it as it is then; an earlier revocation stands. None: no such token."""
    return await tokens.revoke(id, at=now, by=by.principal, also=audited("token.revoke", id, by))


async def rotate(
    tokens: TokenStore, old: TokenRecord, overlap: timedelta, by: Circumstances, now: datetime
) -> Issued | Obstacle:
    """Replace a token by one with a new secret; the old one still counts for the overlap. Or what is in the way."""
    new = succeed(old, by=by.principal, now=now, entropy=secrets.token_bytes(ISSUE_BYTES))
    also = audited("token.rotate", old.id, by)
    return await tokens.rotate(old.id, new.record, new.minted.sha256, ends=now + overlap, also=also) or new


def audited(action: str, what: str, by: Circumstances, *, reason: str | None = None) -> Also:
    """Appends the row that tells of a change to the audit log, in the transaction of the change."""
    row = AuditRecord(
        by.request_id,
        by.principal,
        action,
        what,
        Decision.ALLOWED.value,
        reason=reason,
        trace_id=by.trace_id,
        token=by.token,
        address=by.address,
    )
    return lambda connection: audit.insert(connection, row)


async def owners(principals: PrincipalStore, tokens: Iterable[TokenRecord]) -> Mapping[str, PrincipalRecord | None]:
    """The principals of these tokens, by id."""
    return {id: await principals.get(id) for id in {token.principal for token in tokens}}


def token_fields(token: TokenRecord, verdict: Valid | Refused) -> dict[str, Any]:
    """Everything about a token, as data. `token` is its beginning and end, never the secret."""
    return {
        "id": token.id,
        "kind": token.kind.value,
        "principal": token.principal,
        "name": token.name,
        "token": f"{token.prefix}...{token.last4}",
        "scopes": sorted(token.scopes),
        "state": "valid" if isinstance(verdict, Valid) else verdict.reason.name.lower(),
        "created": token.created,
        "created_by": token.created_by,
        "expires": token.expires,
        "last_used": token.last_used,
        "revoked": token.revoked,
        "revoked_by": token.revoked_by,
    }


def utc_now() -> datetime:
    """The time that changes are made at."""
    return datetime.now(UTC)
