"""What is offered now and what performs it: one value that calls begin with, replaced whole when it changes.

A call keeps what it began with to its end. Knows neither who changes it nor who listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mcp.calls import Performer
from mcp.protocol.engine import Engine
from mcp.protocol.notes import Changed, PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from mcp.protocol.offer import Offer
from mcp.resources import LOADOUT_URI


@dataclass(frozen=True, slots=True)
class Offered:
    """The engine over an offer, and the performer of what it wants: made of the same harnesses."""

    engine: Engine
    performer: Performer


class Offering:
    """Holds what is offered. For use on one event loop; `tell` hears of each list that becomes another one."""

    def __init__(self, first: Offered, tell: Callable[[Changed], None]) -> None:
        self._current = first
        self._tell = tell

    @property
    def current(self) -> Offered:
        """What a call that begins now begins with."""
        return self._current

    def take_keys(self, *keys: bytes) -> None:
        """Sign with the first of these keys from now on, and accept all."""
        self._current = replace(self._current, engine=replace(self._current.engine, keys=keys))

    def change(self, offer: Offer, performer: Performer) -> None:
        """Other harnesses came, and with them another offer and performer; the keys stay."""
        before = self._current.engine.offer
        self._current = Offered(replace(self._current.engine, offer=offer), performer)
        lists: tuple[tuple[Changed, bool], ...] = (
            (ToolsChanged(), offer.tools != before.tools),
            (PromptsChanged(), offer.prompts != before.prompts),
            (ResourcesChanged(), (offer.resources, offer.templates) != (before.resources, before.templates)),
        )
        for changed, differs in lists:
            if differs:
                self._tell(changed)
        # What a connection may do follows from its harness.
        self._tell(ResourceUpdated(LOADOUT_URI))
