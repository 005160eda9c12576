"""Listeners that went away without a word."""

import httpx

from tests.support.eras import meta
from tests.support.raw_http import BOTH


def test_a_listener_that_is_left_is_forgotten(server, http):
    """Fifty that come and go leave no call in flight."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    message["params"] = {"_meta": meta(), "notifications": {"promptsListChanged": True}}
    headers = {"accept": BOTH, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    for _ in range(50):
        with httpx.stream("POST", server.url, json=message, headers=headers, trust_env=False) as answer:
            next(answer.iter_lines())
    base = server.url.removesuffix("/mcp")
    for _ in range(100):
        flying = [
            line for line in http.get(f"{base}/metrics").text.splitlines() if line.startswith("superpi_calls_in_flight")
        ]
        if float(flying[0].split()[-1]) == 0:
            return
    raise AssertionError(flying)
