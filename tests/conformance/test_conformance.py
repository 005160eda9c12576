"""The official conformance suite judges the server, in both eras."""

import pytest

from tests.support.conformance import judge, required
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

#: How many scenarios a revision requires: a suite that runs none passes too.
REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
#: What the fixtures answer to scenarios that a refusal would pass as well.
ANSWERS = {
    ("tools-call-simple-text", "tools-call-simple-text"): "This is a simple text response for testing.",
    ("tools-call-error", "tools-call-error"): "This tool intentionally returns an error for testing",
}
#: What needs no fixture, and so has to hold for the product's own catalogue.
BARE = {
    "2025-11-25": [
        "server-initialize",
        "server-session-lifecycle",
        "logging-set-level",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ],
    "2026-07-28": [
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "prompts-list",
        "dns-rebinding-protection",
        "caching",
        "input-required-result-unsupported-methods",
        "http-header-validation",
    ],
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("token", [pytest.param(False, id="without a token"), pytest.param(True, id="with a token")])
@pytest.mark.parametrize("revision", REQUIRED)
def test_the_suite_passes_without_a_warning(revision, token, with_fixtures):
    """With its fixtures there, so that no scenario passes for want of what it looks for."""
    scenarios = required(revision)
    assert len(scenarios) == REQUIRED[revision]
    door = with_fixtures(token=token)
    report = judge(door.url, "--requirements", revision, token=door.token or None)
    assert report.complaints(scenarios) == []
    assert report.status == 0, report.said
    for (scenario, check), text in ANSWERS.items():
        assert report.detail(scenario, check)["result"]["content"][0]["text"] == text


@pytest.fixture(scope="module")
def product():
    """The URL of the product as it ships."""
    with folder() as home:
        (home / "workspace").mkdir()
        own(home)
        with serving(unprivileged(), home / "workspace", home) as server:
            yield server.url


@pytest.mark.timeout(400)
@pytest.mark.parametrize("revision", BARE)
def test_what_needs_no_fixture_holds_for_the_product(revision, product):
    """The others fail there, and the suite with them."""
    report = judge(product, "--requirements", revision)
    assert report.complaints(BARE[revision]) == []
