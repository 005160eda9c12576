"""What holds for every test: the same environment on each machine, and properties without a stopwatch."""

import os

import hypothesis

from tests.support.official import watch_http
from tests.support.unprivileged import remove_copies

# Whatever a server answers in any test is held to the official wire types.
watch_http()

# A setting of whoever runs the tests must not become one of a server under test.
for name in [name for name in os.environ if name.startswith("SUPERPI_")]:
    del os.environ[name]

# A busy machine is no failure: pytest-timeout bounds each test, not each example.
hypothesis.settings.register_profile("superpi", deadline=None)
hypothesis.settings.load_profile("superpi")


def pytest_sessionfinish():
    """Leave nothing behind in the folder of temporary files."""
    remove_copies()
