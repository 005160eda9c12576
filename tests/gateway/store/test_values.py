"""Round trips of the values that every store keeps."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store import values

TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
MOMENTS = st.datetimes(timezones=st.just(UTC))
OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(JSON)
def test_json_comes_back_equal_and_is_text_that_every_database_takes(value):
    text = values.dump(value)
    assert values.storable(text)
    assert values.load(text) == value
    assert json.loads(text) == value


def test_json_is_compact_and_leaves_text_readable():
    assert values.dump({"b": "ü🦀", "a": [1, None]}) == '{"b":"ü🦀","a":[1,null]}'


def test_halves_of_a_surrogate_pair_become_escapes():
    assert values.dump(["\ud800", "\udfff\\"]) == '["\\ud800","\\udfff\\\\"]'


@pytest.mark.parametrize(
    "value", [{1, 2}, b"bytes", object(), datetime(2026, 1, 1, tzinfo=UTC)], ids=lambda v: type(v).__name__
)
def test_what_is_not_json_is_a_bug_of_the_caller(value):
    with pytest.raises(TypeError):
        values.dump({"value": value})


@given(st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=OFFSETS))  # noqa: DTZ001
def test_a_time_in_any_zone_becomes_the_same_moment_in_utc(moment):
    assert (values.utc(moment), values.utc(moment).tzinfo) == (moment, UTC)


def test_a_naive_time_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        values.utc(datetime(2026, 1, 1))  # noqa: DTZ001


@given(MOMENTS, TEXT.filter(bool).filter(values.storable))
def test_a_position_round_trips(created, id):
    assert values.parse_position(values.position(created, id)) == (created, id)


@given(st.text() | st.from_regex(r"-?[0-9]{1,30}\.\w*", fullmatch=True))
def test_what_parses_as_a_position_is_one(text):
    try:
        place = values.parse_position(text)
    except ValueError:
        return
    assert values.position(*place) == text


@pytest.mark.parametrize(
    ("texts", "storable"),
    [
        pytest.param(("plain", "ü", "🦀", "\x01", "￿", None, ""), True, id="any whole character"),
        pytest.param(("fine", "a\0b"), False, id="U+0000"),
        pytest.param(("\ud83e",), False, id="half of a pair"),
        pytest.param(("\ud83e\udd80",), False, id="both halves apart"),
    ],
)
def test_texts_that_every_database_takes(texts, storable):
    assert values.storable(*texts) is storable
