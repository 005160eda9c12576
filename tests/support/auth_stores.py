"""The stores of principals and tokens beside whatever stores a test was given, and the records that tests put in."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from auth.changes import Change
from auth.scopes import Scope
from auth.tokens import Kind, PrincipalRecord, TokenRecord
from gateway.store.memory_auth import MemoryPrincipals, MemoryTokens
from gateway.store.principals import SqlPrincipals
from gateway.store.tokens import SqlTokens

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class AuthStores:
    principals: MemoryPrincipals | SqlPrincipals
    tokens: MemoryTokens | SqlTokens
    changes: list[Change] = field(default_factory=list)


def beside(stores) -> AuthStores:
    """On the same database as the stores of sessions, or in memory where those are."""
    changes: list[Change] = []
    database = getattr(stores.sessions, "_database", None)
    if database is None:
        principals = MemoryPrincipals(changes.append)
        return AuthStores(principals, MemoryTokens(principals, changes.append), changes)

    def record(_connection, change):
        changes.append(change)

    return AuthStores(SqlPrincipals(database, record), SqlTokens(database, record), changes)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def a_principal(id="local:alice", **fields) -> PrincipalRecord:
    return PrincipalRecord(**{"id": id, "created": NOON, "created_by": "cli", **fields})


def a_token(id="t", principal="local:alice", minute=0, **fields) -> TokenRecord:
    created = NOON + timedelta(minutes=minute)
    return TokenRecord(
        **{
            "id": id,
            "kind": Kind.PAT,
            "prefix": "spi_pat_abcd",
            "last4": "wxyz",
            "principal": principal,
            "name": "laptop",
            "scopes": frozenset({Scope.WRITE}),
            "created": created,
            "created_by": "cli",
            "expires": created + 90 * DAY,
            **fields,
        }
    )
