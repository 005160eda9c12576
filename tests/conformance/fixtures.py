"""The catalogue that the official conformance suite expects of a server under test; the product ships none of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mcp.catalogue import Catalogue, offer_of
from mcp.offering import Offering
from mcp.protocol.content import Text
from mcp.protocol.offer import Announced
from mcp.protocol.revisions import EVERY
from tests.conformance.asking_tools import asking_tools
from tests.conformance.fixture_prompts import further_prompt, prompts
from tests.conformance.fixture_resources import resources, templates
from tests.conformance.making import answering
from tests.conformance.plain_tools import plain_tools
from tests.conformance.telling_tools import telling_tools


@dataclass(slots=True)
class Fixtures:
    """The catalogue, and what its own tools change of it while a server offers it."""

    _offering: Offering | None = None
    further_tool: bool = False
    further_prompt: bool = False

    def catalogue(self) -> Catalogue:
        """What there is now."""
        tools = (*plain_tools(), *telling_tools(self._changing("further_tool"), self._changing("further_prompt")))
        more = (answering("test_further_tool", "There now and then.", Text("ok")),) if self.further_tool else ()
        return Catalogue(
            (*tools, *asking_tools(), *more),
            (*prompts(), *((further_prompt(),) if self.further_prompt else ())),
            resources(),
            templates(),
            Announced(tools=True, prompts=True, resources=True, updates=True),
            EVERY,
        )

    def _changing(self, what: str) -> Callable[[], None]:
        def change() -> None:
            setattr(self, what, not getattr(self, what))
            self._offer()

        return change

    def take(self, offering: Offering) -> None:
        """Offer the catalogue there from now on, in a harness that may use all of it."""
        self._offering = offering
        self._offer()

    def _offer(self) -> None:
        """Offer what there is now, as the product does when a team's harnesses change."""
        assert self._offering is not None
        current, catalogue = self._offering.current, self.catalogue()
        tools = {tool.spec.name: tool for tool in catalogue.tools}
        harness = replace(current.performer.default_harness, tools=frozenset(tools))
        performer = replace(current.performer, catalogue=catalogue, tools=tools, default_harness=harness)
        self._offering.change(offer_of(catalogue, current.engine.offer.server), performer)
