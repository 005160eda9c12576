"""Unmodified clients of other makers, each in an environment of its own, over HTTP and over stdio."""

import httpx
import pytest

from tests.support.clients import CLIENTS, expected, parted
from tests.support.clients_table import passed
from tests.support.doors import DATABASES

EACH_CLIENT = pytest.mark.parametrize("client", [pytest.param(client, id=client.name) for client in CLIENTS])


def status_of_a_session(door, session: str) -> int:
    """What the server answers to a request in a session."""
    headers = {**door.headers, "Mcp-Session-Id": session, "Accept": "application/json, text/event-stream"}
    return httpx.post(door.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers).status_code


@EACH_CLIENT
@pytest.mark.parametrize("database", DATABASES)
def test_a_client_uses_everything_over_http_and_ends_its_session(client, database, doors):
    door = doors.http(database)
    visit, rest = parted(client.visit(door.target, client.name))
    assert rest == expected(client.name)
    if visit.session is not None:  # some clients keep it to themselves
        assert status_of_a_session(door, visit.session) == 404
    passed(client.name, database, visit.version, visit.protocol)


@EACH_CLIENT
def test_a_client_uses_everything_over_stdio(client, doors):
    visit, rest = parted(client.visit(doors.stdio(), client.name))
    assert rest == expected(client.name)
    assert visit.session is None
    passed(client.name, "stdio", visit.version, visit.protocol)
