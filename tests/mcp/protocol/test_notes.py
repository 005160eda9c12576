"""Which change a filter lets through."""

import pytest

from mcp.protocol.notes import (
    Changed,
    Filter,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
    wants,
)

EVERY: list[Changed] = [ToolsChanged(), PromptsChanged(), ResourcesChanged(), ResourceUpdated("x:1")]


@pytest.mark.requirement("SUB-3")
@pytest.mark.parametrize(
    ("filter", "heard"),
    [
        pytest.param(Filter(), [], id="an absent member is false"),
        pytest.param(Filter(tools=True), [ToolsChanged()], id="tools alone"),
        pytest.param(Filter(prompts=True), [PromptsChanged()], id="prompts alone"),
        pytest.param(Filter(resources=True), [ResourcesChanged()], id="the list of resources is not its members"),
        pytest.param(Filter(uris=frozenset({"x:1", "x:3"})), [ResourceUpdated("x:1")], id="a URI exactly"),
        pytest.param(Filter(uris=frozenset({"x:", "x:10"})), [], id="neither a prefix nor a longer URI"),
        pytest.param(Filter(True, True, True, frozenset({"x:1"})), EVERY, id="all at once"),
    ],
)
def test_a_filter_hears_what_it_asked_for_and_nothing_else(filter: Filter, heard: list[Changed]) -> None:
    assert [changed for changed in EVERY if wants(filter, changed)] == heard
