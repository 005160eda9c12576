"""The gateway with the suite's catalogue, run as `python -m tests.conformance.server`; all else is the product's."""

from __future__ import annotations

import asyncio

from gateway import bootstrap, listener
from gateway.bootstrap import Services
from gateway.settings import Settings, load
from telemetry.logs import configure
from tests.conformance.fixtures import Fixtures


async def build(settings: Settings) -> Services:
    """The product's services over the suite's catalogue."""
    fixtures = Fixtures()
    services = await bootstrap.build(settings, catalogue=fixtures.catalogue())
    fixtures.take(services.offering)
    return services


if __name__ == "__main__":
    settings = load()
    configure(settings.log_level, settings.log_format, settings.secrets)
    asyncio.run(listener.serve(settings, build))
