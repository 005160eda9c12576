"""Three servers on one PostgreSQL and one workspace, behind haproxy and nginx, and clients that call through both."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from tests.support import postgres as support
from tests.support.asking import harness_settings
from tests.support.balancers import BALANCERS, balancing
from tests.support.relay import linked
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

SETTINGS = {
    # All clients are of one principal, and none of them rests.
    "SUPERPI_RATES__CALLS": "0",
    "SUPERPI_DRAIN_DELAY_SECONDS": "2",
    "SUPERPI_DRAIN_SECONDS": "10",
    "SUPERPI_HTTP__STREAM_AFTER": "0.3",
    "SUPERPI_TRUSTED_PROXIES": "127.0.0.1",
}


@dataclass
class Cluster:
    servers: list
    balancers: dict
    workspace: object
    postgres: object
    link: object
    url: str
    lock: threading.Lock = field(default_factory=threading.Lock)


@pytest.fixture(scope="session")
def cluster():
    """The database is reached over a relay, which can stop to carry."""
    with support.running() as postgres, ExitStack() as stack:
        link = stack.enter_context(linked(postgres.port))
        direct = stack.enter_context(postgres.database())
        url = direct.replace(f":{postgres.port}/", f":{link.relay.port}/")
        workspace = stack.enter_context(folder())
        homes = [stack.enter_context(folder()) for _ in range(3)]
        harnesses = stack.enter_context(folder())
        harness_settings(harnesses)
        own(harnesses)
        launcher = unprivileged()
        settings = {**SETTINGS, "SUPERPI_DATABASE_URL": url, "SUPERPI_HARNESS_DIR": str(harnesses)}

        def start(home):
            return stack.enter_context(serving(launcher, workspace, home, **settings))

        with ThreadPoolExecutor(3) as threads:
            servers = list(threads.map(start, homes))
        ports = [urlsplit(server.url).port for server in servers]
        balancers = {name: stack.enter_context(balancing(name, ports)) for name in BALANCERS}
        yield Cluster(servers, balancers, workspace, postgres, link, direct)


@pytest.fixture(params=BALANCERS)
def balancer(request, cluster):
    return cluster.balancers[request.param]
