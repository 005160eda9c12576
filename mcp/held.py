"""What is kept of the one connection over stdio: in memory, and gone with the process."""

from __future__ import annotations


class HeldSubscriptions:
    """`mcp.subscriptions.SubscriptionStore` of one connection."""

    def __init__(self) -> None:
        self._uris: set[str] = set()

    async def add(self, session: str, uri: str, *, most: int) -> bool:
        """Keep one."""
        del session
        if uri not in self._uris and len(self._uris) >= most:
            return False
        self._uris.add(uri)
        return True

    async def remove(self, session: str, uri: str) -> bool:
        """End one."""
        del session
        there = uri in self._uris
        self._uris.discard(uri)
        return there

    async def of(self, session: str) -> frozenset[str]:
        """All of them."""
        del session
        return frozenset(self._uris)
