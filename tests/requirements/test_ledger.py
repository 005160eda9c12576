"""The ledger of requirements holds both ways: each row is shown by a test or explained, and each mark names a row."""

import textwrap
from collections import Counter
from itertools import pairwise

import pytest

from mcp.protocol import encode
from mcp.protocol.errors import Reason
from mcp.protocol.methods import METHODS
from mcp.protocol.revisions import EVERY, HANDSHAKE, STATELESS
from tests.requirements.reading import SHOWN_KINDS, Row, marks, marks_of, order, read, revisions, rows


@pytest.fixture(scope="module")
def ledger():
    return rows()


@pytest.fixture(scope="module")
def shown():
    """The places of the tests that show each row."""
    found = {}
    for mark in marks():
        found.setdefault(mark.id, []).append(mark.place)
    return found


def unshown(rows, shown):
    """Rows that no test shows and no gap explains."""
    return [row.id for row in rows if row.id not in shown and (not row.gap or row.kind == "in part")]


def test_each_row_is_shown_by_a_test_or_its_gap_explained(ledger, shown):
    assert unshown(ledger, shown) == []


def test_each_mark_names_a_row(ledger, shown):
    ids = {row.id for row in ledger}
    assert {id: places for id, places in shown.items() if id not in ids} == {}


def test_a_gap_that_was_closed_is_no_gap_any_more(ledger, shown):
    closed = {row.id: shown[row.id] for row in ledger if row.gap and row.kind not in SHOWN_KINDS and row.id in shown}
    assert closed == {}


def test_no_test_names_a_row_twice():
    twice = [mark for mark, times in Counter(marks()).items() if times > 1]
    assert twice == []


def test_ids_are_given_once_and_stand_in_order(ledger):
    assert [id for id, times in Counter(row.id for row in ledger).items() if times > 1] == []
    for one, other in pairwise(ledger):
        if one.file == other.file and order(one)[0] == order(other)[0]:
            assert order(one) < order(other)
    homes = {order(row)[0]: row.file for row in ledger}
    assert [row.id for row in ledger if homes[order(row)[0]] != row.file] == []


# --- the product's own tables


def test_the_error_codes_are_those_of_the_table(ledger):
    """Refusals that HTTP gives itself carry its status and are no codes of the protocol."""
    sent = {reason.face(revision).code for reason in Reason for revision in (HANDSHAKE[-1], STATELESS[-1])}
    listed = {row.code for row in ledger if row.code is not None and row.kind != "fixtures only"}
    assert listed == {code for code in sent if code < 0}


def test_a_code_of_one_era_is_not_the_face_of_a_reason_in_the_other(ledger):
    """`HEADER_MISMATCH` and `VERSION_UNSUPPORTED` arise only from a request that is taken as stateless."""
    by_code = {row.code: row.revisions for row in ledger if row.code is not None}
    for reason in set(Reason) - {Reason.HEADER_MISMATCH, Reason.VERSION_UNSUPPORTED}:
        for revision in EVERY:
            code = reason.face(revision).code
            assert code > 0 or revision in by_code[code], (reason, revision)


@pytest.mark.parametrize("revision", EVERY)
def test_the_methods_of_a_revision_are_those_of_the_table(ledger, revision):
    listed = set().union(*(row.methods for row in ledger if revision in row.revisions))
    assert listed == {name for name, method in METHODS.items() if revision in method.revisions}


@pytest.mark.parametrize("revision", EVERY)
def test_the_fields_of_a_revision_are_those_of_the_table(ledger, revision):
    listed = set().union(*(row.fields for row in ledger if revision in row.revisions))
    assert listed == {f"{kind}.{name}" for kind, name in encode.FIELD_SINCE if encode.knows(kind, name, revision)}


# --- the reading itself


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("all", EVERY),
        ("handshake", HANDSHAKE),
        ("stateless", STATELESS),
        ("2025-03-26", EVERY[1:2]),
        ("2024-11-05 to 2025-06-18", EVERY[:3]),
        ("from 2025-11-25", EVERY[3:]),
        ("2024-11-05, from 2025-11-25", (EVERY[0], *EVERY[3:])),
    ],
)
def test_revisions_are_read(text, known):
    assert revisions(text) == known


@pytest.mark.parametrize("text", ["", "2025", "2025-06-18 to 2025-03-26", "from", "2026-07-29", "all, handshake"])
def test_what_names_no_revision_is_refused(text):
    with pytest.raises(ValueError, match="names no revisions"):
        revisions(text)


ROW = 'source = "x"\n[AB-1]\nrevisions = "all"\nsays = "It is."\n'


def test_a_row_is_read():
    assert read("a.toml", ROW) == [Row("AB-1", "a.toml", EVERY, "It is.")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(ROW.replace('source = "x"\n', ""), "no source", id="without a source"),
        pytest.param(ROW.replace("AB-1", "ab-1"), "no row", id="an id that is none"),
        pytest.param(ROW + "test = 1\n", "no row", id="a field that is none"),
        pytest.param(ROW.replace("It is.", "it"), "no sentence", id="no sentence"),
        pytest.param(ROW + 'gap = "Later."\n', "has a kind", id="a gap of no kind"),
        pytest.param(ROW + 'kind = "not yet"\n', "has a kind", id="a kind of no gap"),
        pytest.param(ROW + 'kind = "never"\ngap = "No."\n', "is one of", id="another kind"),
    ],
)
def test_what_is_no_row_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read("a.toml", text)


def test_marks_are_read_from_tests_and_methods_alone():
    text = textwrap.dedent(
        """
        import pytest

        @pytest.mark.requirement("AB-1", "AB-2")
        @pytest.mark.parametrize("a", [1])
        def test_one(a): ...

        class TestMore:
            @pytest.mark.requirement("AB-1")
            async def test_two(self): ...
        """
    )
    assert [(mark.id, mark.place) for mark in marks_of(text, "x.py")] == [
        ("AB-1", "x.py::test_one"),
        ("AB-2", "x.py::test_one"),
        ("AB-1", "x.py::test_two"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '@pytest.mark.requirement("AB-1")\ndef helper(): ...',
        "@pytest.mark.requirement()\ndef test_x(): ...",
        "@pytest.mark.requirement(ID)\ndef test_x(): ...",
        "@pytest.mark.requirement(1)\ndef test_x(): ...",
        'pytestmark = pytest.mark.requirement("AB-1")',
    ],
)
def test_a_mark_that_could_be_overlooked_is_refused(text):
    with pytest.raises(ValueError, match="a mark"):
        marks_of(text, "x.py")


def test_the_check_sees_a_row_that_nothing_shows():
    whole = read("a.toml", ROW)
    partly = read("a.toml", ROW + 'kind = "in part"\ngap = "The rest."\n')
    explained = read("a.toml", ROW + 'kind = "not yet"\ngap = "Later."\n')
    assert [unshown(found, {}) for found in (whole, partly, explained)] == [["AB-1"], ["AB-1"], []]
    assert unshown(whole, {"AB-1": ["x"]}) == []
