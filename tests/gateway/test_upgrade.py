"""An offer to speak another protocol is ignored: the request is answered like any other, and nothing is logged."""

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.support.raw_http import INITIALIZE

BODY = json.dumps(INITIALIZE).encode()
OFFERS = {
    "a web socket": [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "Sec-WebSocket-Version: 13",
    ],
    "HTTP/2": ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"],
    "nothing": [],
}


def head(method, path, offer, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *OFFERS[offer], *lines, "", ""]).encode()


def post(offer, *lines):
    return head("POST", "/mcp", offer, "Content-Type: application/json", f"Content-Length: {len(BODY)}", *lines) + BODY


def chunked(offer):
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    return head("POST", "/mcp", offer, *lines) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


LAST = head("GET", "/livez", "nothing", "Connection: close")


@pytest.fixture
def exchange(server):
    """Sends these parts one by one on one connection, which the last request closes: status lines and bodies."""

    def exchange(*parts):
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                sock.sendall(part)
            answer = b""
            while chunk := sock.recv(65536):
                answer += chunk
        return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]], answer

    return exchange


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        pytest.param(lambda offer: head("GET", "/livez", offer), 200, id="a probe"),
        pytest.param(lambda offer: head("GET", "/mcp", offer), 405, id="GET of the endpoint"),
        pytest.param(lambda offer: head("GET", "/admin/v1/tokens", offer), 403, id="administration"),
        pytest.param(post, 200, id="a POST"),
        pytest.param(chunked, 200, id="a POST in chunks"),
    ],
)
def test_the_request_is_answered_and_the_connection_goes_on(exchange, server, offer, request_of, status):
    """Its body is the body of the request, and what follows is the next one, however the bytes arrive."""
    sent = request_of(offer)
    for parts in ([sent + LAST], [sent, LAST], [bytes([byte]) for byte in sent] + [LAST]):
        statuses, answer = exchange(*parts)
        assert statuses == [status, 200]
        assert (b'"serverInfo"' in answer) == (BODY in sent or b"chunked" in sent)
    assert "uvicorn" not in server.said


def test_two_offers_in_one_piece_are_two_requests(exchange):
    statuses, answer = exchange(post("HTTP/2") + post("a web socket") + LAST)
    assert statuses == [200, 200, 200]
    assert answer.count(b'"serverInfo"') == 2


def test_an_offer_gets_round_no_check(exchange):
    """What the head says besides is parsed as ever."""
    assert exchange(post("HTTP/2", "Host: evil.example", "Connection: close"))[0] == [400]
    assert exchange(head("GET", "/livez", "HTTP/2", "no header at all"))[0] == [400]


def test_a_tunnel_is_not_opened(exchange):
    """CONNECT is an offer too, by its method."""
    sent = b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    statuses, _ = exchange(sent + b"SSH-2.0-x\r\n")
    assert [status >= 400 for status in statuses] == [True]
