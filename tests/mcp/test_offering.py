"""What is offered is replaced whole, and whoever listens hears of the lists that became other ones."""

from dataclasses import replace

import pytest

from mcp.offering import Offered, Offering
from mcp.protocol.engine import Engine
from mcp.protocol.notes import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from mcp.resources import LOADOUT_URI
from tests.support.offers import OFFER, tool

#: The holder never looks into a performer.
BEFORE, AFTER = object(), object()
LOADOUT = ResourceUpdated(LOADOUT_URI)


@pytest.fixture
def offering():
    told = []
    return Offering(Offered(Engine(OFFER, (b"first",), 7), BEFORE), told.append), told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({}, [], id="the same lists"),
        pytest.param({"tools": (tool("echo"),)}, [ToolsChanged()], id="a tool less"),
        pytest.param({"prompts": ()}, [PromptsChanged()], id="no prompts"),
        pytest.param({"resources": ()}, [ResourcesChanged()], id="no resources"),
        pytest.param({"templates": ()}, [ResourcesChanged()], id="no templates"),
        pytest.param({"prompts": (), "tools": ()}, [ToolsChanged(), PromptsChanged()], id="two lists"),
        pytest.param({"instructions": "Be bold."}, [], id="words that no list has"),
    ],
)
def test_another_offer_takes_the_place_of_the_one_before_and_is_told(offering, change, told):
    """The loadout always: what a harness allows is in no list."""
    holder, heard = offering
    offer = replace(OFFER, **change)
    holder.change(offer, AFTER)
    assert holder.current == Offered(Engine(offer, (b"first",), 7), AFTER)
    assert heard == [*told, LOADOUT]


def test_what_a_call_began_with_stays_as_it_was(offering):
    holder, _ = offering
    begun = holder.current
    holder.change(replace(OFFER, prompts=()), AFTER)
    assert begun == Offered(Engine(OFFER, (b"first",), 7), BEFORE)


def test_other_keys_keep_the_offer_and_another_offer_keeps_the_keys(offering):
    holder, heard = offering
    holder.take_keys(b"second", b"first")
    assert (holder.current, heard) == (Offered(Engine(OFFER, (b"second", b"first"), 7), BEFORE), [])
    holder.change(OFFER, AFTER)
    assert holder.current == Offered(Engine(OFFER, (b"second", b"first"), 7), AFTER)


def test_it_is_replaced_before_anybody_is_told():
    """Whoever hears of a change reads the changed list."""
    seen = []
    holder = Offering(Offered(Engine(OFFER, ()), BEFORE), lambda _: seen.append(holder.current.performer))
    holder.change(replace(OFFER, prompts=()), AFTER)
    assert seen == [AFTER, AFTER]
