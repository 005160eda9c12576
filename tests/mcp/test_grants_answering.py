"""What a grant answers: one tool and one subject, where just the rules ask that asked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import Ask, Layer, Mode
from gateway.store.values import storable
from mcp.grants import MOST_SUBJECT, allowing, asked_by, can_be_kept
from tests.support.grants import grant
from tests.support.policies import ask


def test_only_the_same_tool_the_same_subject_and_the_same_rules_are_allowed():
    found = (grant("a", tool="edit", subject="a.py"), grant("b"), grant("c"))
    assert allowing(found, "bash", "make test", "r") == grant("b")
    for tool, subject in (("bash", "make"), ("bash", "make test "), ("edit", "make test"), ("Bash", "make test")):
        assert allowing(found, tool, subject, "r") is None
    assert allowing(found, "bash", "make test", "") is None


ONE, OTHER = ask("bash", "make *"), ask("bash", "make test")


@pytest.mark.parametrize(
    ("rules", "same"),
    [
        pytest.param((ONE,), True, id="the same rule"),
        pytest.param((OTHER,), False, id="another match"),
        pytest.param((replace(ONE, tool="*"),), False, id="another tool"),
        pytest.param((replace(ONE, layer=Layer.BUILT_IN),), False, id="another layer"),
        pytest.param((ONE, OTHER), False, id="one rule more"),
        pytest.param((), False, id="none"),
    ],
)
def test_what_stands_for_the_rules_that_ask_changes_with_any_of_them(rules, same):
    """Whatever is said of the question otherwise."""
    first = asked_by(Ask("why", Layer.RULE, Mode.FULL, "make test", (ONE,)))
    assert (asked_by(Ask("other words", Layer.RULE, Mode.READ_ONLY, "make", rules)) == first) is same


def test_the_order_of_the_rules_that_ask_is_no_matter():
    both = (Ask("why", Layer.RULE, Mode.FULL, "x", rules) for rules in ((ONE, OTHER), (OTHER, ONE)))
    assert len({asked_by(one) for one in both}) == 1


@given(st.text(st.characters(), max_size=8).map(lambda part: part * 700))
def test_what_can_be_kept_is_what_is_short_and_storable(subject):
    assert can_be_kept(subject) == (len(subject) <= MOST_SUBJECT and storable(subject))
