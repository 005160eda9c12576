"""A call that a rule asks about, while the database accepts everything and says nothing: the person decides it."""

from contextlib import ExitStack

import httpx
import pytest

from mcp.consent import ALWAYS, NO, ONCE
from tests.support import postgres as support
from tests.support.asking import Asked, harness_settings, says, tool
from tests.support.relay import linked
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

FROZEN = {"SUPERPI_DATABASE_SECONDS": "1", "SUPERPI_DATABASE_WAIT_SECONDS": "1", "SUPERPI_ANONYMOUS": "always"}


@pytest.fixture(scope="module", params=["a session", "no session"])
def outage(request):
    """The server and a client that was allowed something from now on before the database fell silent."""
    with support.running() as postgres, postgres.database() as url, linked(postgres.port) as link, ExitStack() as stack:
        workspace, home, harnesses = (stack.enter_context(folder()) for _ in range(3))
        settings = harness_settings(harnesses) | FROZEN
        settings["SUPERPI_DATABASE_URL"] = url.replace(str(postgres.port), str(link.relay.port))
        own(harnesses)
        server = stack.enter_context(serving(unprivileged(), workspace, home, **settings))
        http = stack.enter_context(httpx.Client(timeout=60, trust_env=False))
        client = Asked(http, server.url)
        if request.param == "a session":
            client.begin()
        assert not called(client, "touch before", ALWAYS).get("isError")
        stack.callback(link.thaw)
        link.freeze()
        yield server, client


def called(client, command, answer):
    client.person = says(answer)
    call = client.call if client.session else client.stateless
    return call(tool("bash", command=command))["result"]


@pytest.mark.parametrize("answer", [ONCE, ALWAYS])
def test_a_yes_lets_the_call_go_on(outage, answer):
    """From now on is one for this call; the server's log says so."""
    server, client = outage
    name = f"outage-{answer.replace(' ', '-')}"
    before = len(client.questions)
    for asked in (1, 2):
        result = called(client, f"touch {name}", answer)
        assert (result.get("isError", False), len(client.questions)) == (False, before + asked), result
    assert (server.workspace / name).exists()
    assert ("a yes from now on cannot be kept" in server.said) or answer == ONCE


def test_a_no_is_a_refusal_that_says_that_nothing_was_changed(outage):
    server, client = outage
    result = called(client, "touch outage-no", NO)
    assert result["isError"]
    assert "the person said no" in result["content"][0]["text"]
    assert "Nothing was changed." in result["content"][0]["text"]
    assert not (server.workspace / "outage-no").exists()


def test_what_was_allowed_before_is_not_assumed_to_be_so_still(outage):
    """It may have been withdrawn since."""
    server, client = outage
    before = len(client.questions)
    assert called(client, "touch before", NO)["isError"]
    assert len(client.questions) == before + 1
    assert "what was allowed from now on cannot be read, so the person is asked" in server.said
