"""Unmodified clients of other makers, each in an environment of its own, over HTTP and over stdio."""

import json

import httpx
import pytest

from auth.tokens import SECRET_BYTES, Kind, mint
from tests.support.clients import (
    CLIENTS,
    FASTMCP,
    TOOLS,
    TYPESCRIPT_1,
    TYPESCRIPT_2,
    TYPESCRIPT_2_AUTO,
    expected,
    fastmcp_list,
    parted,
)
from tests.support.clients_table import passed
from tests.support.doors import DATABASES


def each(clients):
    return pytest.mark.parametrize("client", [pytest.param(client, id=client.name) for client in clients])


EACH_CLIENT = each(CLIENTS)
#: Their errors hold the body of the server's answer.
SHOWS_THE_ANSWER = each([TYPESCRIPT_2, TYPESCRIPT_2_AUTO, TYPESCRIPT_1])

#: A token of the right form that was never issued.
UNKNOWN = mint(Kind.PAT, bytes(SECRET_BYTES)).secret


def status_of_a_session(door, session: str) -> int:
    """What the server answers to a request in a session."""
    headers = {"Authorization": f"Bearer {door.token}", "Mcp-Session-Id": session, "Accept": "application/json"}
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


@each([client for client in CLIENTS if client is not FASTMCP])  # its command line stands for it, below
def test_a_client_with_an_unknown_token_ends_with_an_error(client, doors):
    """It ends, instead of waiting for a login or trying for ever. The same program passes with a token, above."""
    ran = client.run([doors.http("sqlite").url, UNKNOWN], client.name)
    assert (ran.returncode, ran.stdout) == (1, "")


@SHOWS_THE_ANSWER
def test_a_client_shows_its_user_what_to_do_about_a_missing_token(client, doors):
    ran = client.run([doors.http("sqlite").url], client.name)
    assert "Send a valid token as 'Authorization: Bearer <token>'." in ran.stderr


def test_the_command_line_of_fastmcp_lists_the_tools_with_a_token_and_fails_with_an_unknown_one(doors):
    door = doors.http("sqlite")
    listed = fastmcp_list(door.url, door.token)
    assert (listed.returncode, [tool["name"] for tool in json.loads(listed.stdout)["tools"]]) == (0, TOOLS)
    refused = fastmcp_list(door.url, UNKNOWN)
    assert (refused.returncode, refused.stdout.partition(":")[0]) == (1, "Error")
