"""Replicas behind real load balancers, under load: a rollout, a crash, a database that goes away or falls silent."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.cluster.load import ACCEPT, CUT, faults, load, progress, told
from tests.support.raw_http import INITIALIZE
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

pytestmark = pytest.mark.xdist_group("cluster")

#: Seconds in which calls succeed again after an outage (case C13b).
RECOVERED = 10.0
OUTAGE = 20.0


def test_a_rolling_restart_loses_nothing_for_a_client_that_tries_again(cluster):
    """Case C16: one replica after the other is told to end, and ends in time and without an error."""
    with load(cluster) as callers:
        progress(callers)
        for server in cluster.servers:
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < 30
            progress(callers)
            server.restart()
            progress(callers)
    assert faults(callers) == []
    # Through haproxy nobody even has to try again: what a draining replica refused goes to another one.
    through = {name: told(one for one in callers if one.number.startswith(name)) for name in cluster.balancers}
    assert set(through["haproxy"]) == {200}, through
    assert set(through["nginx"]) <= {200, 502, 503, CUT}, through


def test_a_crash_costs_what_was_in_flight_and_no_session(cluster):
    """Each of the clients has at most one call in flight, and goes on with the session that it has."""
    with load(cluster) as callers:
        progress(callers)
        cluster.servers[0].kill9()
        progress(callers)
        cluster.servers[0].restart()
        progress(callers)
    assert faults(callers) == []
    lost = {caller.number: sum(caller.statuses.values()) - caller.statuses[200] for caller in callers}
    # What was in flight, and what a balancer sent before it found out that nobody listens there.
    assert max(lost.values()) <= 3, [(caller.number, caller.statuses) for caller in callers]


@pytest.mark.parametrize("how", ["stopped", "silent"])
def test_an_outage_of_the_database_is_503_and_over_when_it_is(cluster, how):
    """Case C13b and c: PostgreSQL is stopped, or takes connections and never answers."""
    postgres = cluster.postgres
    with load(cluster) as callers:
        progress(callers)
        if how == "stopped":
            postgres.shut()
        else:
            cluster.link.freeze()
        ended = time.monotonic() + OUTAGE
        while time.monotonic() < ended:
            for server in cluster.servers:
                began = time.monotonic()
                assert httpx.get(server.url.replace("/mcp", "/livez"), trust_env=False).status_code == 200
                assert time.monotonic() - began < 1
            time.sleep(0.5)
        if how == "stopped":
            postgres.restart()
        else:
            cluster.link.thaw()
        progress(callers, seconds=RECOVERED)
        before = told(callers)
        progress(callers)
        after = told(callers)
    assert faults(callers) == []
    assert set(told(callers)) <= {200, 503, CUT}, [(caller.number, caller.statuses) for caller in callers]
    # haproxy says nothing where the connection it had kept to a replica is closed, for the client to try again at once.
    assert {caller.number: caller.cuts for caller in callers if len(caller.cuts) > ("haproxy" in caller.number)} == {}
    assert {status for status in after if after[status] > before[status]} == {200}, "not every call succeeds afterwards"


def test_three_start_at_once_on_an_empty_database_ten_times_over(cluster):
    """Case C15: all become ready, and there is one of each table and of each key."""
    for _ in range(10):
        with cluster.postgres.database() as url, folder() as workspace, ExitStack() as stack:
            homes = [stack.enter_context(folder()) for _ in range(3)]

            def start(home, url=url, workspace=workspace, stack=stack):
                return stack.enter_context(serving(unprivileged(), workspace, home, SUPERPI_DATABASE_URL=url))

            with ThreadPoolExecutor(3) as threads:
                servers = list(threads.map(start, homes))
            session = post(servers[0].url, INITIALIZE).headers["mcp-session-id"]
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert [post(server.url, ping, session).status_code for server in servers] == [200] * 3
            name = url.rpartition("/")[2]
            assert cluster.postgres.run("SELECT count(*) FROM alembic_version", name) == [(1,)]
            assert len(cluster.postgres.run("SELECT purpose FROM signing_key", name)) == len(
                set(cluster.postgres.run("SELECT purpose FROM signing_key", name))
            )


def post(url, message, session=None, **headers):
    headers = ACCEPT | headers | ({"mcp-session-id": session} if session else {})
    return httpx.post(url, json=message, headers=headers, timeout=30, trust_env=False)
