"""Servers for the judges: with the suite's fixtures, without and with a token."""

import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from tests.support.doors import Door
from tests.support.server import serving
from tests.support.unprivileged import as_caller

#: The product's own start, with the suite's catalogue.
FIXTURES = replace(as_caller(), module="tests.conformance.server")


def issued(server) -> str:
    """A token, made by the command beside the running server; from then on nobody is let in without one."""
    made = subprocess.run(
        as_caller().superpi("token", "create", "--principal", "local:judge"),
        capture_output=True,
        text=True,
        env={**server.launcher.env, "SUPERPI_DATA_DIR": str(server.home / "data"), "HOME": str(server.home)},
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def opened(home, *, token):
    (home / "workspace").mkdir()
    with serving(FIXTURES, home / "workspace", home) as server:
        yield Door(server.url, issued(server) if token else "")


@pytest.fixture(scope="session")
def with_fixtures(tmp_path_factory):
    """A way into a server with the suite's fixtures, by whether it asks for a token; started when first wanted."""
    doors = {}
    with ExitStack() as stack:

        def door(*, token):
            if token not in doors:
                doors[token] = stack.enter_context(opened(tmp_path_factory.mktemp("conformance"), token=token))
            return doors[token]

        yield door
