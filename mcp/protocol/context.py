"""What a method may look at while it answers one message."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.protocol import encode, rounds
from mcp.protocol.arrival import Mirror
from mcp.protocol.lists import Pager
from mcp.protocol.offer import Offer
from mcp.protocol.revisions import Revision
from mcp.protocol.rounds import Rounds
from mcp.protocol.state import State


@dataclass(frozen=True, slots=True)
class Context:
    """`state` is what the message is taken under: its connection's, or in the stateless era its own."""

    offer: Offer
    keys: tuple[bytes, ...]
    page_size: int
    state: State
    mirror: Mirror | None = None
    rounds: Rounds = rounds.NONE

    @property
    def revision(self) -> Revision:
        """The agreed revision; the newest of the handshake before there is one."""
        return encode.revision_of(self.state)

    @property
    def pager(self) -> Pager:
        """How lists are cut for this caller."""
        return Pager(self.keys, self.state.principal, self.page_size)
