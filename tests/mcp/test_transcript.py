"""Transcripts: JSON Lines that come back as they went in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from mcp.conversations import Entry
from mcp.transcript import transcript, transcript_line

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(
    st.builds(
        Entry,
        seq=st.integers(1, 2**31),
        ts=st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        kind=st.sampled_from(["meta", "user", "assistant", "tool", "denied", "end"]),
        body=st.dictionaries(
            st.text(min_size=1).filter(lambda name: name not in {"seq", "ts", "kind"}), JSON, max_size=4
        ),
    ),
    max_size=4,
)


def parse(text: str) -> list[dict]:
    """As any reader of JSON Lines does: split on LF, one object a line."""
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


@given(ENTRIES)
def test_every_entry_comes_back_as_one_line_in_order(entries):
    read = parse(transcript(entries).encode().decode())
    assert [(line.pop("seq"), line.pop("kind"), datetime.fromisoformat(line.pop("ts")), line) for line in read] == [
        (entry.seq, entry.kind, entry.ts - timedelta(microseconds=entry.ts.microsecond % 1000), dict(entry.body))
        for entry in entries
    ]


def test_a_line_is_compact_and_begins_with_seq_ts_and_kind():
    ts = datetime(2026, 11, 30, 23, 38, 0, 123999, tzinfo=timezone(timedelta(hours=2)))
    assert transcript_line(Entry(7, ts, "user", {"text": "größer: a\u2028b\nc", "seq": 1})) == (
        '{"seq":7,"ts":"2026-11-30T21:38:00.123Z","kind":"user","text":"größer: a\u2028b\\nc"}\n'
    )


def test_a_whole_second_has_milliseconds_too():
    assert '"ts":"2026-11-30T00:00:00.000Z"' in transcript_line(Entry(1, datetime(2026, 11, 30, tzinfo=UTC), "end", {}))


def test_half_a_character_is_written_as_an_escape():
    line = transcript_line(Entry(1, datetime(2026, 11, 30, tzinfo=UTC), "user", {"text": "a\ud83d"}))
    assert line.encode().endswith(b'"text":"a\\ud83d"}\n')
    assert json.loads(line)["text"] == "a\ud83d"


def test_no_entries_are_no_text():
    assert transcript([]) == ""
