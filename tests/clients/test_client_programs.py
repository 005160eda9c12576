"""Unmodified clients of other makers, each in an environment of its own, over HTTP and over stdio, in both eras."""

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
    arriving,
    expected,
    fastmcp_list,
    parted,
    plan,
)
from tests.support.clients_table import DOORS, passed

#: They share servers, which take longer to start than a visit.
pytestmark = pytest.mark.xdist_group("clients")


def each(clients):
    found = [(client, mode) for client in clients for mode in client.modes]
    return pytest.mark.parametrize(
        ("client", "mode"), [pytest.param(client, mode, id=f"{client.name}-{mode}") for client, mode in found]
    )


#: A token of the right form that was never issued.
UNKNOWN = mint(Kind.PAT, bytes(SECRET_BYTES)).secret


def status_of_a_session(door, session: str) -> int:
    """What the server answers to a request in a session."""
    headers = {"Authorization": f"Bearer {door.token}", "Mcp-Session-Id": session, "Accept": "application/json"}
    return httpx.post(door.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers).status_code


@pytest.mark.parametrize("client", [pytest.param(client, id=client.name) for client in CLIENTS])
def test_a_client_uses_everything_in_each_era_and_ends_its_session(client, doors):
    """Through every door: it lists, calls every tool, answers a question, and hears progress and a change."""
    names = {(door, mode): f"{client.name}-{door}-{mode}" for door in DOORS for mode in client.modes}
    plans = [plan(doors.careful(door), name, mode) for (door, mode), name in names.items()]
    saw = {name: parted(seen) for name, seen in client.visit(plans).items()}
    for name in names.values():
        assert saw[name][1] == expected(name), name
    visits = {place: saw[name][0] for place, name in names.items()}
    for (door, _), visit in visits.items():
        if visit.session is not None:  # some clients keep it to themselves
            assert status_of_a_session(doors.http(door), visit.session) == 404
    (version,) = {visit.version for visit in visits.values()}
    passed(client.name, version, {door: [visits[door, mode].protocol for mode in client.modes] for door in DOORS})


@each([client for client in CLIENTS if client is not FASTMCP])  # its command line stands for it, below
def test_a_client_with_an_unknown_token_ends_with_an_error(client, mode, doors):
    """It ends, instead of waiting for a login or trying for ever. The same program passes with a token, above."""
    ran = client.run([arriving([doors.http("sqlite").url, UNKNOWN], mode)])
    assert (ran.returncode, ran.stdout) == (1, "")


@each([TYPESCRIPT_2, TYPESCRIPT_1])  # their errors hold the body of the server's answer
def test_a_client_shows_its_user_what_to_do_about_a_missing_token(client, mode, doors):
    ran = client.run([arriving([doors.http("sqlite").url], mode)])
    assert "Send a valid token as 'Authorization: Bearer <token>'." in ran.stderr


def test_the_command_line_of_fastmcp_lists_the_tools_with_a_token_and_fails_with_an_unknown_one(doors):
    door = doors.http("sqlite")
    listed = fastmcp_list(door.url, door.token)
    assert (listed.returncode, [tool["name"] for tool in json.loads(listed.stdout)["tools"]]) == (0, TOOLS)
    refused = fastmcp_list(door.url, UNKNOWN)
    assert (refused.returncode, refused.stdout.partition(":")[0]) == (1, "Error")
