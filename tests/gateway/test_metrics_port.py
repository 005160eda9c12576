"""The metrics on a port of their own: there, and nowhere else."""

import socket

import httpx
import pytest

from tests.support.raw_http import INITIALIZE
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged


@pytest.fixture
def port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_they_are_on_that_port_alone(port):
    """And that port has nothing else; the server ends as ever."""
    settings = {"SUPERPI_METRICS_PORT": str(port)}
    with (
        folder() as workspace,
        folder() as home,
        serving(unprivileged(), workspace, home, **settings) as server,
        httpx.Client(trust_env=False) as http,
    ):
        http.post(server.url, json=INITIALIZE)
        apart = f"http://127.0.0.1:{port}"
        assert (
            'superpi_requests_total{method="POST",route="/mcp",status="2xx"} 1.0' in http.get(f"{apart}/metrics").text
        )
        assert http.get(server.url.replace("/mcp", "/metrics")).status_code == 404
        assert [http.get(server.url.replace("/mcp", path)).status_code for path in ("/livez", "/readyz")] == [200] * 2
        for path in ("/livez", "/admin/v1/tokens", "/openapi.json"):
            assert http.get(apart + path).status_code == 404
        server.stop()
        with pytest.raises(httpx.ConnectError):
            http.get(f"{apart}/metrics")


def test_a_port_that_is_taken_is_named(port):
    with socket.socket() as sock, folder() as workspace, folder() as home:
        sock.bind(("127.0.0.1", port))
        sock.listen()
        with (
            pytest.raises(AssertionError, match=f"SUPERPI_METRICS_PORT: cannot listen on 127.0.0.1:{port}"),
            serving(unprivileged(), workspace, home, SUPERPI_METRICS_PORT=str(port)),
        ):
            pass
