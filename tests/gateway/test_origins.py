"""The rules on Host and Origin (case C01), on both lists."""

import pytest

from gateway.origins import Rules

NONE = Rules.of((), ())
LISTED = Rules.of(("https://app.example.com",), ("mcp.example.com",))
ALL = Rules.of(("*",), ("*",))


@pytest.mark.requirement("HL-2", "HM-2", "AU-25")
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost", True),
        ("http://localhost:8000", True),
        ("https://127.0.0.1:5173", True),
        ("http://127.8.9.10", True),
        ("http://[::1]:8000", True),
        ("HTTP://LOCALHOST", True),
        ("http://evil.example", False),
        ("https://app.example.com", False),
        ("null", False),
        ("", False),
        ("localhost", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://localhost:80@evil.example", False),
        ("http://evil.example@localhost", False),
        ("http://localhost/path", False),
        ("http://localhost:notaport", False),
        ("http://[::1", False),
        ("file://localhost", False),
        ("http://", False),
        ("http://0x7f000001", False),
    ],
)
def test_without_a_list_only_loopback_origins_may_call(origin, allowed):
    """A page from elsewhere must not reach a local server."""
    assert NONE.allow_origin(origin) is allowed


@pytest.mark.requirement("HL-2", "AU-25")
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example.com", True),
        ("https://APP.example.com", True),
        ("http://app.example.com", False),
        ("https://app.example.com:8443", False),
        ("https://app.example.com.evil.example", False),
        ("http://localhost:1", True),
    ],
)
def test_a_listed_origin_may_call_exactly_as_listed(origin, allowed):
    """Scheme and port are part of an origin."""
    assert LISTED.allow_origin(origin) is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("mcp.example.com", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("localhost@evil.example", False),
        ("", False),
        ("localhost/x", False),
    ],
)
def test_without_a_list_only_loopback_hosts_are_ours(host, allowed):
    """DNS rebinding shows in the Host header."""
    assert NONE.allow_host(host) is allowed


def test_a_listed_host_is_ours_on_any_port():
    """The name counts, in any case."""
    assert [LISTED.allow_host(host) for host in ("mcp.example.com", "MCP.example.com:443", "x.mcp.example.com")] == [
        True,
        True,
        False,
    ]


def test_a_star_allows_all():
    """As the operator said."""
    assert ALL.allow_origin("null")
    assert ALL.allow_origin("http://evil.example")
    assert ALL.allow_host("evil.example")
