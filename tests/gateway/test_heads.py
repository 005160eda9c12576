"""The head of a request: how large it may be, how long it may take, and what is answered where there is none."""

import json
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.raw_http import INITIALIZE, bash
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

BYTES, FIELDS, SECONDS, IDLE = 4096, 20, 1.0, 2
PROBE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
LAST = PROBE + b"Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server():
    bounds = {"HEADER_BYTES": BYTES, "HEADER_FIELDS": FIELDS, "HEADER_SECONDS": SECONDS, "IDLE_SECONDS": IDLE}
    settings = {f"SUPERPI_HTTP__{name}": str(value) for name, value in bounds.items()}
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


@pytest.fixture
def connect(server):
    address = urlsplit(server.url)

    def connect():
        sock = socket.create_connection((address.hostname, address.port), timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    return connect


def rest(sock):
    """Everything until the server closes, and how long that took."""
    began, answer = time.monotonic(), b""
    while chunk := sock.recv(65536):
        answer += chunk
    return answer, time.monotonic() - began


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def problem(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    return json.loads(body)


def fields(count, size=10):
    return b"".join(b"x-%04d: %s\r\n" % (number, b"v" * size) for number in range(count))


def test_a_head_within_the_bounds_is_answered(connect):
    with connect() as sock:
        sock.sendall(PROBE + fields(FIELDS - 2) + b"Connection: close\r\n\r\n")
        assert statuses(rest(sock)[0]) == [200]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(PROBE + fields(FIELDS) + b"\r\n", id="too many fields"),
        pytest.param(PROBE + fields(5, BYTES // 5) + b"\r\n", id="too many bytes"),
        pytest.param(PROBE + b"x: " + b"v" * BYTES, id="a field that never ends"),
        pytest.param(b"GET /" + b"x" * BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", id="too long a path"),
        pytest.param(b"GET /" + b"x" * BYTES, id="a path that never ends"),
    ],
)
@pytest.mark.parametrize("size", [1 << 20, 1000], ids=["in one piece", "in pieces"])
def test_a_head_beyond_them_is_refused(connect, server, head, size):
    """Also as the second on its connection; the answer is the last thing on it."""
    for before in (b"", PROBE + b"\r\n"):
        with connect() as sock:
            if before:
                sock.sendall(before)
                assert sock.recv(65536).startswith(b"HTTP/1.1 200")
            for start in range(0, len(head), size):
                sock.sendall(head[start : start + size])
                time.sleep(0.01)
            answer, _ = rest(sock)
        assert (statuses(answer), problem(answer)["code"]) == ([431], "headers_too_large")
    with httpx.Client(trust_env=False) as http:
        assert http.get(server.url.replace("/mcp", "/livez")).status_code == 200


def test_pipelined_heads_are_each_measured(connect):
    """A large body before it is no part of the next head."""
    body = json.dumps(INITIALIZE | {"padding": "x" * 4 * BYTES}).encode()
    post = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with connect() as sock:
        sock.sendall(post % len(body) + body + PROBE[:20])
        time.sleep(0.1)
        sock.sendall(PROBE[20:] + b"Connection: close\r\n\r\n")
        assert statuses(rest(sock)[0])[-1] == 200


@pytest.mark.parametrize("sent", [b"", b"G", PROBE, PROBE + b"x: "], ids=["nothing", "a letter", "a part", "a name"])
def test_a_head_that_does_not_come_is_not_waited_for(connect, sent):
    """Nothing is said to who said nothing."""
    with connect() as sock:
        sock.sendall(sent)
        answer, seconds = rest(sock)
    assert SECONDS / 2 < seconds < SECONDS + 2
    if sent:
        assert (statuses(answer), problem(answer)["code"]) == ([408], "headers_timeout")
    else:
        assert answer == b""


def test_a_head_that_drips_is_not_waited_for_either(connect):
    """The time is of the whole head, not of each byte."""
    with connect() as sock:
        sock.sendall(b"GET /")
        stop = threading.Event()

        def drip():
            with suppress(OSError):
                while not stop.wait(0.1):
                    sock.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            answer, seconds = rest(sock)
        finally:
            stop.set()
            dripping.join()
    assert seconds < SECONDS + 2
    assert problem(answer)["code"] == "headers_timeout"


def test_an_idle_connection_is_closed(connect):
    """Also one that says nothing but empty lines."""
    for idle in (b"", b"\r\n"):
        with connect() as sock:
            sock.sendall(PROBE + b"\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
            sock.sendall(idle)
            _, seconds = rest(sock)
        assert SECONDS / 2 < seconds < IDLE + 2


def test_a_next_head_may_wait_for_an_answer_that_takes_long(connect, server):
    """A client sends half of its next request while a command runs for longer than a head may take."""
    with httpx.Client(trust_env=False) as http:
        session = http.post(server.url, json=INITIALIZE).headers["mcp-session-id"]
    body = json.dumps(bash(f"sleep {2 * SECONDS}")).encode()
    lines = [b"POST /mcp HTTP/1.1", b"Host: localhost", b"Content-Type: application/json"]
    lines += [b"Content-Length: %d" % len(body), b"Mcp-Session-Id: " + session.encode(), b"", body]
    with connect() as sock:
        sock.sendall(b"\r\n".join(lines) + PROBE)
        answer = b""
        while b'"jsonrpc"' not in answer:
            answer += sock.recv(65536)
        sock.sendall(b"Connection: close\r\n\r\n")
        answer += rest(sock)[0]
    assert statuses(answer) == [200, 200]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 20, id="TLS"),
        pytest.param(b"GET / HTTP/9.9.9\r\n\r\n", id="no version"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost localhost\r\n\r\n", id="no colon"),
        pytest.param(
            b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            id="two lengths",
        ),
    ],
)
def test_what_is_no_request_is_told_so(connect, server, sent):
    """As a problem, like all that is refused beside the endpoint; without a warning that fills the log."""
    with connect() as sock:
        sock.sendall(sent)
        answer, _ = rest(sock)
    assert (statuses(answer), problem(answer)["code"]) == ([400], "not_http")
    assert "Invalid HTTP" not in server.said


def test_slow_clients_hold_up_nobody(connect, server):
    """Security promises: the probe answers within a second with sixty of them."""
    slow = [connect() for _ in range(60)]
    stop = threading.Event()

    def drip():
        while not stop.wait(0.2):
            for sock in slow:
                with suppress(OSError):
                    sock.send(b"G")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with httpx.Client(trust_env=False) as http:
            for _ in range(10):
                began = time.monotonic()
                assert http.get(server.url.replace("/mcp", "/livez")).status_code == 200
                assert time.monotonic() - began < 1
                time.sleep(0.05)
    finally:
        stop.set()
        dripping.join()
        for sock in slow:
            sock.close()


def test_what_was_asked_before_is_answered_first(connect):
    """Two requests and then rubbish in one piece; the refusal is the last thing on the connection."""
    with connect() as sock:
        sock.sendall((PROBE + b"\r\n") * 2 + b"{}\r\n\r\n")
        answer, _ = rest(sock)
    assert (statuses(answer), b"not_http" in answer) == ([200, 200, 400], True)
