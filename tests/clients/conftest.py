"""Servers for the clients to visit: one a database, shared by the tests of a run, started when the first needs it."""

from contextlib import ExitStack

import pytest

from tests.support.doors import Doors


@pytest.fixture(scope="session")
def doors():
    with ExitStack() as stack:
        yield Doors(stack)
