"""Whatever is sent to the endpoint of a real server, it answers soon, with no failure of its own, and serves on.

tests/fuzz/mutate.py does the same for as long as one likes.
"""

import json

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp.protocol.codec import MAX_DEPTH
from tests.fuzz.mutate import SETTINGS, asker
from tests.support.fuzz_requests import mutated, posted
from tests.support.fuzz_target import Target
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

#: Each is a connection of its own and two pings: some 10 ms.
LIMITS = settings(max_examples=200)
NAMES = st.sampled_from(["jsonrpc", "id", "method", "params", "_meta", "name", "arguments", "result", "error"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("2.0"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def target():
    with (
        folder() as workspace,
        folder() as home,
        serving(unprivileged(), workspace, home, **SETTINGS) as server,
        httpx.Client(timeout=30, trust_env=False) as http,
    ):
        yield Target(server.url, asker(http, server.url))
        assert "Traceback" not in server.said


@LIMITS
@given(random=st.randoms(use_true_random=False))
def test_a_request_that_was_valid_once_is_answered(target, random):
    """Of either era, with its message, bytes, headers or request line changed."""
    target.fire(mutated(random, target.session()))


@LIMITS
@given(body=st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_a_body_of_any_kind_is_answered(target, body):
    """Bytes, and JSON that resembles messages more or less."""
    target.fire(posted(body, None, target.session()))


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 1000, 40_000])
@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"params":', b"}")], ids=["arrays", "objects"])
def test_json_of_any_depth_is_answered(target, depth, pair):
    """Also when it never closes."""
    opening, closing = (sign * depth for sign in pair)
    for body in (opening, opening + b"1" + closing):
        answer = target.fire(posted(body[:99_000], None, target.session()))
        assert depth <= MAX_DEPTH or answer.status == 400
