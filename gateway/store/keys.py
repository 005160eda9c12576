"""Keys that sign what clients hand back (cursors, request state): made once, the same in every process.

Knows neither what is signed nor how.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from gateway.store.engine import Database, executing
from gateway.store.tables import signing_key as table

_BYTES: Final = 32
_INSERT: Final = insert(table)
_NEWEST: Final = (
    select(table.c.secret)
    .where(table.c.purpose == bindparam("purpose"))
    .order_by(table.c.created_at.desc(), table.c.id.desc())
    .limit(1)
)


class SqlKeys:
    """Signing keys on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def signing_key(self, purpose: str) -> bytes:
        """The newest key of that purpose, 256 random bits, made on first use.

        The first key's id follows from its purpose, so of several processes that make one at once only one does.
        """
        secret = await self._newest(purpose)
        if secret is None:
            await self._make(purpose)
            secret = await self._newest(purpose)
        if secret is None:
            raise LookupError(f"the signing key for {purpose} was removed while it was made")
        return secret

    async def _make(self, purpose: str) -> None:
        row = {"id": f"{purpose}:1", "purpose": purpose, "secret": secrets.token_bytes(_BYTES)}
        # Another process may be first; then its key is the one.
        with suppress(IntegrityError):
            await self._database.write(executing(_INSERT, {**row, "created_at": datetime.now(UTC)}))

    async def _newest(self, purpose: str) -> bytes | None:
        return await self._database.read(
            lambda connection: connection.execute(_NEWEST, {"purpose": purpose}).scalar_one_or_none()
        )
