"""How far a reader has come, when numbers are committed in any order: none is missed, and none is told twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.positions import Position


class Clock:
    """A time that stands until it is moved."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def read(position, committed):
    """One reading of a table that holds these numbers; answers what is new."""
    asked = position.query()
    found = [number for number in sorted(committed) if number > asked["last"] or number in asked["missing"]]
    return [number for number in found if position.take(number)]


@given(st.permutations(range(1, 12)), st.lists(st.booleans(), min_size=11, max_size=11))
def test_every_number_is_told_once_in_whatever_order_they_are_committed(order, pauses):
    position, committed, told = Position([]), set(), []
    for number, reads in zip(order, pauses, strict=True):
        committed.add(number)
        if reads:
            told += read(position, committed)
    told += read(position, committed)
    assert sorted(told) == list(range(1, 12))


@given(st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30)))
def test_from_the_begin_on_only_what_was_not_there_is_told(present, later):
    position = Position(present)
    assert read(position, present | later) == sorted(later - present)


def test_a_number_that_cannot_come_any_more_is_not_asked_for():
    clock = Clock()
    position = Position([1, 4], clock)
    assert position.query() == {"last": 4, "missing": [2, 3]}
    clock.now = 59.0
    assert (position.take(6), position.query()) == (True, {"last": 6, "missing": [2, 3, 5]})
    clock.now = 61.0
    assert position.query() == {"last": 6, "missing": [5]}


@pytest.mark.parametrize("first", [[], [1], [5000]], ids=["empty", "one", "many were removed"])
def test_however_far_a_number_jumps_only_so_many_are_asked_for(first):
    position = Position(first)
    for number in (10_000, 10_002, 10**6, 10**12):
        position.take(number)
        assert len(position.query()["missing"]) == Position.WINDOW


def test_a_number_is_told_once():
    position = Position([3])
    assert [position.take(number) for number in (3, 1, 1, 5, 5, 4, 4)] == [False, True, False, True, False, True, False]
