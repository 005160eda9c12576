"""Questions between replicas: an answer may land on another server than the one that asked."""

from contextlib import ExitStack

import httpx
import pytest

from mcp.consent import ALWAYS, ONCE
from tests.support import postgres as support
from tests.support.asking import Asked, does, harness_settings, says, tool
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged


@pytest.fixture(scope="module")
def replicas():
    """Two servers on one PostgreSQL and one workspace, and the workspace."""
    with support.running() as postgres, postgres.database() as url, ExitStack() as stack:
        workspace, harnesses = stack.enter_context(folder()), stack.enter_context(folder())
        settings = harness_settings(harnesses) | {"SUPERPI_DATABASE_URL": url}
        own(harnesses)
        servers = []
        for _ in range(2):
            home = stack.enter_context(folder())
            servers.append(stack.enter_context(serving(unprivileged(), workspace, home, **settings)))
        yield *servers, workspace


@pytest.fixture
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


@pytest.mark.requirement("RQ-1")
def test_an_answer_that_lands_on_another_replica_reaches_the_call(replicas, http):
    """On a handshake session: the call waits on one server, the answer is posted to the other."""
    here, there, workspace = replicas
    client = Asked(http, here.url, says(ONCE), answer_url=there.url).begin()
    result = client.call(tool("bash", command="touch crossed"))["result"]
    assert (result.get("isError", False), len(client.questions)) == (False, 1), result
    assert (workspace / "crossed").exists()


@pytest.mark.requirement("MRTR-9", "MOD-5", "MOD-6")
def test_a_retry_that_lands_on_another_replica_verifies(replicas, http):
    """On the stateless revision: the state that one server signed is good on the other."""
    here, there, workspace = replicas
    client = Asked(http, here.url, says(ONCE), answer_url=there.url)
    result = client.stateless(tool("bash", command="touch verified"))["result"]
    assert (result.get("isError", False), len(client.questions)) == (False, 1), result
    assert (workspace / "verified").exists()


def test_what_was_allowed_from_now_on_is_allowed_everywhere(replicas, http):
    """A grant is a row."""
    here, there, workspace = replicas
    client = Asked(http, here.url, says(ALWAYS)).begin()
    assert not client.call(tool("bash", command="touch granted"))["result"].get("isError")
    (workspace / "granted").unlink()
    client.url, client.person = there.url, does("decline")
    assert not client.call(tool("bash", command="touch granted"))["result"].get("isError")
    assert (len(client.questions), (workspace / "granted").exists()) == (1, True)
