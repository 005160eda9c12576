"""Whose word on the client's address counts: that of proxies that a setting names, and nobody else's."""

import subprocess

import pytest

from tests.support.administration import administered, felt
from tests.support.raw_http import BOTH, INITIALIZE
from tests.support.unprivileged import folder, unprivileged

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ls", "arguments": {}}}
PROXY = "10.20.30.40"


@pytest.fixture(scope="module", params=["127.0.0.1", "127.0.0.0/8,10.20.0.0/16", "192.0.2.1", ""])
def behind(request):
    """An office behind these proxies, and which they are."""
    with administered(SUPERPI_TRUSTED_PROXIES=request.param, SUPERPI_RATES__CREDENTIALS="3") as office:
        yield office, request.param


def address(office, name, **headers):
    """What the audit log has as the address of a call."""
    token = office.token(name)

    def post(message, **more):
        return office.ask("POST", "/mcp", token=token, json=message, headers={"accept": BOTH} | headers | more)

    post(CALL, **{"mcp-session-id": post(INITIALIZE).headers["mcp-session-id"]})
    felt(lambda: bool(office.audit(f"local:{name}")))
    return office.audit(f"local:{name}")[-1]["address"]


def test_the_address_is_what_a_trusted_proxy_says(behind):
    """Of several it is the last that is none of theirs: what stands before it a client may have written itself."""
    office, proxies = behind
    told = {"x-forwarded-for": f"203.0.113.9, 198.51.100.7, {PROXY}"}
    expected = {"127.0.0.1": PROXY, "127.0.0.0/8,10.20.0.0/16": "198.51.100.7"}.get(proxies, "127.0.0.1")
    assert address(office, "alice", **told) == expected
    assert address(office, "bob") == "127.0.0.1"


def test_wrong_credentials_are_counted_by_that_address(behind):
    """Behind a proxy that is named one who guesses does not shut out the others; before any, a header moves nobody."""
    office, proxies = behind

    def guess(number, of):
        headers = {"x-forwarded-for": f"198.51.100.{of}", "accept": BOTH}
        return office.ask("POST", "/mcp", token=f"wrong-{number}", json=INITIALIZE, headers=headers).status_code

    assert 429 in [guess(number, 1) for number in range(10)]
    others = {guess(number, 2 + number) for number in range(10)}
    assert (429 in others) == (not proxies.startswith("127"))


@pytest.mark.parametrize("wrong", ["*", "proxy.example", "10.0.0.0/8, nonsense", "10.0.0.1/8"])
def test_what_is_no_address_ends_the_start(wrong):
    """Not a name, which anybody might answer to, and not everybody."""
    launcher = unprivileged()
    with folder() as place:
        ran = subprocess.run(
            launcher.superpi("serve", "--port", "0"),
            env={**launcher.env, "HOME": str(place), "SUPERPI_TRUSTED_PROXIES": wrong},
            cwd=place,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ran.returncode == 2
    assert ran.stderr.startswith("superpi: SUPERPI_TRUSTED_PROXIES: must be addresses or networks like 10.0.0.7")
