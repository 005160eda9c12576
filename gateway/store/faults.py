"""The ways in which persistence fails for reasons that are not bugs. Knows no database."""

from __future__ import annotations

from typing import Final

from auth.ports import StoreAway

_SOMEHOW: Final = "The database cannot be used now."


class StoreUnavailable(StoreAway):
    """The database cannot be used now: missing, locked, damaged, read-only, full, closed.

    The message is one sentence for an operator. It names the database as configured, without credentials. `public`
    says the same to anybody who asks: it names neither a host, a user nor a file.
    """

    def __init__(self, message: str, *, public: str = _SOMEHOW) -> None:
        super().__init__(message)
        self.public = public


class SchemaBehind(StoreUnavailable):
    """The database can be asked, and its schema is older than this version needs: a migration mends that."""


class SchemaForeign(StoreUnavailable):
    """The database can be asked, and its schema is not this version's to work on. Waiting does not mend that."""
