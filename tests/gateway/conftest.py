"""A real server for the tests of the HTTP endpoint, and a way to post to it with exact headers."""

import json

import httpx
import pytest

from tests.support.raw_http import BOTH, INITIALIZE, INITIALIZED, STREAM_AFTER
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged


@pytest.fixture(scope="module")
def server():
    settings = {
        "SUPERPI_HTTP__STREAM_AFTER": str(STREAM_AFTER),
        "SUPERPI_HTTP__KEEP_ALIVE": "0.1",
        "SUPERPI_HTTP__BODY_BYTES": "100000",
        "SUPERPI_HTTP__BODY_SECONDS": "1",
        "SUPERPI_ALLOWED_ORIGINS": "https://app.example.com",
        "SUPERPI_LOG_LEVEL": "debug",
    }
    with folder() as workspace, folder() as home, serving(unprivileged(), workspace, home, **settings) as running:
        yield running


@pytest.fixture
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
def post(server, http):
    def post(body, accept=BOTH, session=None, query="", **headers):
        given = {"accept": accept, "content-type": "application/json"} | (
            {"mcp-session-id": session} if session is not None else {}
        )
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return http.post(server.url + query, content=content, headers=given)

    return post


@pytest.fixture
def session(post):
    """The id of a fresh session of 2025-06-18."""
    id = post(INITIALIZE).headers["mcp-session-id"]
    assert post(INITIALIZED, session=id).status_code == 202
    return id
