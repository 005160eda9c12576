"""The JSON parser takes what RFC 8259 and our limits allow, and says why it refuses the rest."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.protocol.codec import MAX_DEPTH, NotJson, decode, encode

REFUSED = [
    pytest.param(b"", id="nothing at all"),
    pytest.param(b"{", id="a cut object"),
    pytest.param(b"1 2", id="two values"),
    pytest.param(b"NaN", id="not a number"),
    pytest.param(b"[Infinity]", id="infinity"),
    pytest.param(b"1e999", id="a number that becomes infinity"),
    pytest.param(b'"\xff"', id="bytes that are no UTF-8"),
    pytest.param(b'"\xed\xa0\x80"', id="a surrogate in UTF-8"),
    pytest.param(b'"\\ud800"', id="a lone high surrogate"),
    pytest.param(b'"\\udc00"', id="a lone low surrogate"),
    pytest.param(b"\xef\xbb\xbf1", id="a byte order mark"),
    pytest.param(b'{"a":"\\u0000"}', id="U+0000 in a value"),
    pytest.param(b'{"\\u0000":1}', id="U+0000 in a key"),
    pytest.param(b'"\x00"', id="a raw NUL"),
    pytest.param(b"9223372036854775808", id="an integer of 65 bits"),
    pytest.param(b'{"a":[-9223372036854775809]}', id="a negative integer of 65 bits"),
    pytest.param(b"1" * 5000, id="an integer of 5000 digits"),
    pytest.param(b"[" * 65 + b"]" * 65, id="65 arrays in one another"),
    pytest.param(b'{"a":' * 65 + b"1" + b"}" * 65, id="65 objects in one another"),
    pytest.param(b"[" * 100_000, id="a hundred thousand open arrays"),
    pytest.param(b'{"a":1,"a":2}', id="the same key twice"),
    pytest.param(b'{"a":1,"\\u0061":2}', id="the same key twice, once escaped"),
    pytest.param(b'[{"x":{"a":":","a":1}}]', id="the same key twice, deep inside"),
]

TAKEN = [
    pytest.param(b'"\\\\u0000"', "\\u0000", id="a backslash before u0000"),
    pytest.param(b"-9223372036854775808", -(2**63), id="the least integer"),
    pytest.param(b"12345678901234567890.5", 12345678901234567890.5, id="a long float"),
    pytest.param(b'{"a:b":"c:d"}', {"a:b": "c:d"}, id="colons in strings"),
    pytest.param(b'"' + b"[" * 100 + b'"', "[" * 100, id="brackets in a string"),
    pytest.param(b'"\\"' + b"[" * 100 + b'"', '"' + "[" * 100, id="brackets after an escaped quote"),
    pytest.param(b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64), id="64 arrays in one another"),
    pytest.param('"\U0001f600"'.encode(), "\U0001f600", id="a character of four bytes"),
    pytest.param(b'"\\ud83d\\ude00"', "\U0001f600", id="a surrogate pair"),
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii", min_codepoint=1)), inner),
)


@pytest.mark.requirement("RPC-14", "ERR-1")
@pytest.mark.parametrize("raw", REFUSED)
def test_refuses(raw):
    """Each refusal is a value with a reason, and no exception."""
    refused = decode(raw)
    assert isinstance(refused, NotJson)
    assert refused.why


@pytest.mark.parametrize(("raw", "value"), TAKEN)
def test_takes(raw, value):
    """What looks like a fault and is none goes through."""
    assert decode(raw) == value


@given(JSON)
def test_what_is_encoded_decodes_to_itself(value):
    """Round trip of every JSON value within the limits."""
    assert decode(encode(value)) == value


@given(st.binary())
def test_never_raises(raw):
    """Any bytes give a value or a reason."""
    decode(raw)


@given(st.integers(1, 200))
def test_depth_is_counted_outside_strings(depth):
    """The limit is on nesting, wherever brackets stand beside it."""
    raw = b'["[[[[",' * depth + b"1" + b"]" * depth
    assert isinstance(decode(raw), NotJson) == (depth > MAX_DEPTH)
