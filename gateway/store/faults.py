"""The one way in which persistence fails for reasons that are not bugs. Knows no database."""

from __future__ import annotations

from auth.ports import StoreAway


class StoreUnavailable(StoreAway):
    """The database cannot be used now: missing, locked, damaged, read-only, full, closed.

    The message is one sentence for an operator. It names the database as configured, without credentials.
    """
