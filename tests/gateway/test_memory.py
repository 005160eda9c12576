"""What a server's memory grows by: idle sessions are rows, and what is refused leaves nothing (security promises)."""

import gc
import http.client
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.administration import administered
from tests.support.raw_http import BOTH, INITIALIZE, PING

MANY = 10_000
#: MiB that refusals may leave, by the promise; and bytes that an idle session may.
REFUSED_MIB, SESSION_BYTES = 64, 1024


@pytest.fixture(scope="module")
def office():
    bounds = {"RATES__CALLS": "0", "RATES__CREDENTIALS": "0", "SESSIONS_PER_PRINCIPAL": str(2 * MANY)}
    with administered(**{f"SUPERPI_{name}": value for name, value in bounds.items()}) as office:
        yield office


def resident(office):
    """Bytes of the process that are in memory and its own."""
    status = Path(f"/proc/{office.server.pid}/status").read_text("ascii")
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024


def gauge(office, name):
    text = office.ask("GET", "/metrics", token="").text
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])


class Client:
    """A connection that sends one request after the other, and reads no more of an answer than it must."""

    def __init__(self, office):
        address = urlsplit(office.server.url)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)

    def post(self, body, **headers):
        given = {"accept": BOTH, "content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.connection.request("POST", "/mcp", body if isinstance(body, bytes) else json.dumps(body), given)
        answer = self.connection.getresponse()
        answer.read()
        return answer


@pytest.fixture
def client(office):
    client = Client(office)
    yield client
    client.connection.close()


def test_ten_thousand_refused_requests_leave_nothing(office, client):
    """Case C03: of every kind, and no session is opened by one."""
    token = f"Bearer {office.token('mallory')}"
    kinds = [
        lambda n: client.post(INITIALIZE),
        lambda n: client.post(INITIALIZE, authorization=f"Bearer spi_pat_{n}"),
        lambda n: client.post(INITIALIZE, authorization=token, origin=f"http://evil{n}.example"),
        lambda n: client.post(b"{" + str(n).encode(), authorization=token),
        lambda n: client.post(PING, authorization=token),
        lambda n: client.post(PING, authorization=token, mcp_session_id=f"none-{n}"),
        lambda n: client.post(PING, authorization=token, mcp_protocol_version=f"1999-{n}"),
    ]

    def refuse(first, count):
        for n in range(first, first + count):
            answer = kinds[n % len(kinds)](n)
            assert 400 <= answer.status < 500, (n, answer.status)
            assert answer.getheader("mcp-session-id") is None

    sessions = gauge(office, "superpi_sessions")
    refuse(0, 1000)
    before = resident(office)
    refuse(1000, MANY)
    grown = resident(office) - before
    assert grown < REFUSED_MIB * 2**20, f"{grown / 2**20:.1f} MiB"
    assert gauge(office, "superpi_sessions") == sessions


def test_ten_thousand_open_sessions_are_rows(office, client):
    """Beyond those that are in use only the database holds them."""
    token = f"Bearer {office.token('crowd')}"

    def begin(count):
        for _ in range(count):
            assert client.post(INITIALIZE, authorization=token).status == 200

    begin(2000)
    gc.collect()
    before = resident(office)
    begin(MANY)
    grown = resident(office) - before
    assert grown < SESSION_BYTES * MANY, f"{grown / MANY:.0f} bytes a session"
