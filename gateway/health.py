"""Probes: `/livez` (does the process answer), `/readyz` (should it be sent requests), `/metrics` (what it did)."""

from __future__ import annotations

import logging
from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from gateway.bootstrap import Services
from gateway.store.faults import StoreUnavailable

_log: Final = logging.getLogger("superpi.health")


class Health(BaseModel):
    """What a probe answers."""

    status: str = Field(description="ok, or why the server should be sent nothing now")


class Readiness(Health):
    """What `/readyz` answers."""

    store: str = Field(description="ok, or unavailable; the log says why")
    sandbox: str = Field(description="the sandbox that commands run in")
    sandbox_detail: str = Field(description="what that sandbox gives and lacks, in a sentence")


def health_routes(services: Services) -> APIRouter:
    """The probes over one process."""
    routes = APIRouter(tags=["health"])
    shell = services.performer.shell

    @routes.get("/livez")
    async def livez() -> Health:
        """Whether the process answers. Asks nothing else, so that no outage elsewhere restarts it."""
        return Health(status="ok")

    @routes.get("/readyz", responses={503: {"model": Readiness}})
    async def readyz(response: Response) -> Readiness:
        """Whether the process should be sent requests: 503 while it drains or its database is away."""
        store = "ok"
        try:
            await services.session_store.count()
        except StoreUnavailable as error:
            # Anybody may ask, so the words that name the database go to the log alone.
            _log.warning("not ready: %s", error)
            store = "unavailable"
        status = "draining" if services.lifecycle.draining else "ok" if store == "ok" else "the database is away"
        if status != "ok":
            response.status_code = 503
        return Readiness(status=status, store=store, sandbox=shell.step.value, sandbox_detail=shell.why)

    @routes.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """The metrics in Prometheus's text format."""
        content_type, body = services.metrics.exposition()
        return Response(body, media_type=content_type)

    return routes
