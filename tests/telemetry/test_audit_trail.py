"""The audit trail over the in-memory twin: order, batches, a full buffer, an outage, and what a row may hold."""

import asyncio
import hashlib
import json
from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.faults import StoreUnavailable
from gateway.store.memory_audit import MemoryAudit
from gateway.store.values import storable
from telemetry.audit import COLUMNS, LENGTHS, AuditRecord, AuditRow, AuditTrail, digest, tidy

BARE = AuditRecord("r", "local:alice", "tools/call", "read", "allowed")


class Switched(MemoryAudit):
    """The twin with switches: away, or slow until told to go on. Notes each try, and the size of each write."""

    def __init__(self):
        super().__init__()
        self.away = False
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.sizes = []
        self.tries = asyncio.Semaphore(0)

    async def write(self, records):
        self.begun.set()
        self.tries.release()
        await self.go.wait()
        if self.away:
            raise StoreUnavailable("The database is away.")
        await super().write(records)
        self.sizes.append(len(records))


@pytest.fixture
def sink():
    return Switched()


def trail_on(sink, **options):
    return AuditTrail(sink, **{"away": StoreUnavailable, "capacity": 10, "batch": 4, "interval": 0.01} | options)


@pytest.fixture
def trail(sink):
    return trail_on(sink)


def fill(trail, numbers):
    return [trail.record(replace(BARE, request_id=f"r{n}")) for n in numbers]


async def written(sink):
    """The request ids in the store, as one word."""
    return " ".join([row.record.request_id for row in await sink.page(limit=10_000)])


def names(numbers):
    return " ".join(f"r{n}" for n in numbers)


async def running(trail):
    """The trail's writer as a task that is cancelled and awaited by `ended`."""
    return asyncio.get_running_loop().create_task(trail.run())


async def ended(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_rows_are_written_in_their_order_and_in_batches(sink, trail):
    fill(trail, range(10))
    assert await trail.flush() == 0
    assert (await written(sink), sink.sizes) == (names(range(10)), [4, 4, 2])
    assert (len(trail), trail.written, trail.dropped, trail.failures) == (0, 10, 0, 0)


async def test_flushing_nothing_writes_nothing(sink, trail):
    assert await trail.flush() == 0
    assert not sink.begun.is_set()


async def test_rows_are_written_behind_without_being_asked_for(sink, trail):
    task = await running(trail)
    fill(trail, [1])
    async with asyncio.timeout(30):
        await sink.begun.wait()
        assert await trail.flush() == 0
    await ended(task)
    assert await written(sink) == "r1"


async def test_a_full_batch_is_written_before_the_interval_is_over(sink):
    trail = trail_on(sink, interval=3600)
    task = await running(trail)
    fill(trail, range(4))
    async with asyncio.timeout(30):
        await sink.begun.wait()
        await trail.flush()
    await ended(task)
    assert sink.sizes == [4]


async def test_a_full_buffer_drops_rows_of_reads_and_counts_them(sink, trail):
    assert fill(trail, range(12)) == [True] * 10 + [False] * 2
    assert (len(trail), trail.dropped) == (10, 2)
    await trail.flush()
    assert await written(sink) == names(range(10))


async def test_a_row_of_a_call_that_had_room_is_never_dropped(sink, trail):
    fill(trail, range(10))
    assert trail.record(replace(BARE, request_id="r10"), changes=True)
    await trail.flush()
    assert (await written(sink), trail.dropped) == (names(range(11)), 0)


async def test_a_call_that_changes_things_has_room_until_the_buffer_is_full_and_is_then_refused(sink, trail):
    sink.away = True
    assert await trail.room(0)
    fill(trail, range(9))
    assert await trail.room(0)
    fill(trail, [9])
    assert not await trail.room(0)
    assert not await trail.room(0.01)


async def test_a_call_that_waits_for_room_goes_on_when_the_store_takes_rows_again(sink, trail):
    sink.away = True
    fill(trail, range(10))
    assert await trail.flush() == 10
    waiting = asyncio.gather(*(trail.room(30) for _ in range(3)))
    await asyncio.sleep(0)
    sink.away = False
    assert await trail.flush() == 0
    assert await waiting == [True, True, True]


async def test_an_outage_loses_nothing_and_says_so_once(sink, trail, caplog):
    sink.away = True
    fill(trail, range(5))
    assert [await trail.flush() for _ in range(3)] == [5, 5, 5]
    assert (trail.is_away, trail.failures, trail.written) == (True, 3, 0)
    fill(trail, range(5, 7))
    sink.away = False
    with caplog.at_level("INFO"):
        assert await trail.flush() == 0
    assert (await written(sink), trail.is_away, trail.dropped) == (names(range(7)), False, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "audit rows wait, the store is away: The database is away.",
        "the store takes audit rows again",
    ]


async def test_the_writer_recovers_by_itself(sink, trail):
    sink.away = True
    task = await running(trail)
    fill(trail, range(10))
    async with asyncio.timeout(30):
        while trail.failures < 3:
            await asyncio.sleep(0.005)
        sink.away = False
        assert await trail.room(30)
        await trail.flush()
    await ended(task)
    assert await written(sink) == names(range(10))


async def test_rows_that_come_while_a_write_runs_are_in_the_next_flush(sink, trail):
    sink.go.clear()
    fill(trail, [1])
    first = asyncio.gather(trail.flush())
    await sink.begun.wait()
    fill(trail, [2])
    second = asyncio.gather(trail.flush())
    await asyncio.sleep(0)
    sink.go.set()
    await asyncio.gather(first, second)
    assert (await written(sink), sink.sizes) == ("r1 r2", [1, 1])


async def test_a_writer_that_is_cancelled_in_a_write_writes_no_row_twice(sink, trail):
    sink.go.clear()
    task = await running(trail)
    fill(trail, range(3))
    await sink.begun.wait()
    await ended(task)
    sink.go.set()
    assert await trail.close() == 0
    assert await written(sink) == names(range(3))


async def test_closing_writes_what_is_left(sink, trail):
    fill(trail, range(9))
    assert await trail.close() == 0
    assert await written(sink) == names(range(9))


@pytest.mark.parametrize("stuck", [False, True], ids=["away", "never answering"])
async def test_closing_without_a_store_ends_in_time_and_tells_what_is_lost(sink, trail, caplog, stuck):
    sink.away = True
    if stuck:
        sink.go.clear()
    fill(trail, range(9))
    async with asyncio.timeout(30):
        assert await trail.close(0.05) == 9
    sink.go.set()
    assert trail.dropped == 9
    assert "9 audit rows were lost" in caplog.text


async def test_a_row_that_the_store_does_not_take_is_dropped_alone(caplog):
    class Picky(Switched):
        async def write(self, records):
            if any(record.object == "bad" for record in records):
                raise ValueError("no such thing")
            await super().write(records)

    sink = Picky()
    trail = trail_on(sink)
    for n in range(6):
        trail.record(replace(BARE, request_id=f"r{n}", object="bad" if n == 2 else "read"))
    assert await trail.flush() == 0
    assert (await written(sink), trail.dropped, trail.written) == ("r0 r1 r3 r4 r5", 1, 5)
    assert "an audit row was dropped" in caplog.text


async def test_a_row_keeps_the_time_of_its_event_through_an_outage(sink):
    now = [100.0]
    ages = []

    class Aging(MemoryAudit):
        async def write(self, records):
            ages.extend(record.age for record in records)

    trail = trail_on(Aging(), clock=lambda: now[0])
    fill(trail, [1])
    now[0] = 120.5
    await trail.flush()
    assert ages == [20.5]


async def test_an_enormous_text_is_cut_before_it_waits_in_the_buffer(sink, trail):
    trail.record(replace(BARE, object="x" * 4_000_000))
    [(_, waiting)] = trail._rows
    assert len(waiting.object) == LENGTHS["object"]


def test_a_tidy_record_is_left_as_it_is():
    assert tidy(BARE) is BARE


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        pytest.param("object", "a\nb\x1b\0", "a\\nb\\x1b\\x00", id="control characters are escaped"),
        pytest.param("reason", "Bearer abc", "Bearer ***", id="secrets are masked"),
        pytest.param("object", "spi_pat_abc", "spi_pat_***", id="a token as a tool's name"),
        pytest.param("principal", "p" * 9999, "p" * 512, id="texts are cut"),
        pytest.param("principal", "https://issuer#søren", "https://issuer#søren", id="principals stay"),
        pytest.param("duration_ms", 2**40, 2**31 - 1, id="numbers fit the column"),
        pytest.param("result_bytes", -1, 0, id="numbers are not below zero"),
    ],
)
def test_a_record_is_tidied(field, given, kept):
    assert getattr(tidy(replace(BARE, **{field: given})), field) == kept


TEXTS = st.text(max_size=40) | st.just("\0\ud800" * 600)


@given(st.tuples(*[TEXTS] * len(LENGTHS)))
def test_any_tidy_record_is_storable_bounded_and_on_one_line(texts):
    record = tidy(replace(BARE, **dict(zip(LENGTHS, texts, strict=True))))
    for name, most in LENGTHS.items():
        text = getattr(record, name)
        assert (storable(text), len(text) <= most, text.isprintable()) == (True, True, True)


def test_every_text_of_a_row_has_a_length_and_every_number_is_named():
    texts = {field.name for field in fields(AuditRecord) if "str" in str(field.type)}
    assert texts == set(LENGTHS)


@pytest.mark.parametrize(
    ("arguments", "canonical"),
    [
        pytest.param({}, "{}", id="none"),
        pytest.param({"b": [1, 2.5, None], "a": "é\n"}, '{"a":"é\\n","b":[1,2.5,null]}', id="sorted and compact"),
        pytest.param(MappingProxyType({"a": (1,)}), '{"a":[1]}', id="frozen values"),
        pytest.param({"a": "\ud800"}, '{"a":"\\ud800"}', id="a lone surrogate"),
        pytest.param({"a": 1e16}, '{"a":1e16}', id="an exponent"),
    ],
)
def test_a_digest_is_of_the_canonical_json(arguments, canonical):
    text = canonical.encode()
    assert digest(arguments) == (hashlib.sha256(text).hexdigest(), len(text))


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    PLAIN | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_digest_does_not_depend_on_the_order_of_keys(arguments):
    shuffled = dict(reversed(arguments.items()))
    assert digest(shuffled) == digest(arguments) == digest(json.loads(json.dumps(arguments)))


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), PLAIN | st.lists(PLAIN), max_size=4))
def test_a_digest_can_be_made_again_as_the_documentation_says(arguments):
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert digest(arguments) == (hashlib.sha256(text).hexdigest(), len(text))


async def test_a_row_as_json_has_every_column_in_order(sink):
    await sink.write([BARE])
    [row] = await sink.page()
    plain = row.plain()
    assert list(plain) == ["seq", "at", *COLUMNS]
    assert plain == {"seq": 1, "at": plain["at"]} | {name: getattr(BARE, name) for name in COLUMNS}
    assert isinstance(row, AuditRow)
    assert plain["at"].endswith("Z")
