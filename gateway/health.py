"""Probes: `/livez` (does the process answer), `/readyz` (should it be sent requests), `/metrics` (what it did)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from gateway.bootstrap import Services
from gateway.lifecycle import Phase
from gateway.opening import Complaint
from gateway.store.faults import StoreUnavailable

#: What `store` says of a database that is not in use yet, and so is not asked for each probe.
_CLOSED: Final = {Phase.STARTING: "unavailable", Phase.WAITING: "unavailable", Phase.BEHIND: "behind"}


class Health(BaseModel):
    """What a probe answers."""

    status: str = Field(description="ok, or why the server should be sent nothing now")


class Readiness(Health):
    """What `/readyz` answers."""

    store: str = Field(description="ok, unavailable, or behind when its schema is")
    store_detail: str = Field(description="what is the matter with it, in a sentence; the log names the database")
    sandbox: str = Field(description="the sandbox that commands run in")
    sandbox_detail: str = Field(description="what that sandbox gives and lacks, in a sentence")


def health_routes(services: Services) -> APIRouter:
    """The probes over one process."""
    routes = APIRouter(tags=["health"])
    shell, lifecycle = services.offering.current.performer.shell, services.lifecycle
    complaint = Complaint("not ready")

    @routes.get("/livez")
    async def livez() -> Health:
        """Whether the process answers. Asks nothing else, so that no outage elsewhere restarts it."""
        return Health(status="ok")

    @routes.get("/readyz", responses={503: {"model": Readiness}})
    async def readyz(response: Response) -> Readiness:
        """Whether the process should be sent requests: 503 while it drains, or its database is away or behind."""
        phase = lifecycle.readiness.phase
        if phase in _CLOSED:
            store, detail = _CLOSED[phase], lifecycle.readiness.why
        else:
            store, detail = await _asked(services, complaint)
        status = Phase.WAITING if store == "unavailable" and phase is Phase.READY else phase
        if status is not Phase.READY:
            response.status_code = 503
        return Readiness(
            status=status.value,
            store=store,
            store_detail=detail,
            sandbox=shell.step.value,
            sandbox_detail=shell.why,
        )

    if services.settings.metrics_port is None:
        routes.include_router(metrics_routes(services))
    return routes


def metrics_routes(services: Services) -> APIRouter:
    """The metrics alone, for a port of their own."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """The metrics in Prometheus's text format."""
        content_type, body = services.metrics.exposition()
        return Response(body, media_type=content_type)

    return routes


async def _asked(services: Services, complaint: Complaint) -> tuple[str, str]:
    """How the store is, by asking it, and in words for anybody; what names the database goes to the log alone."""
    try:
        await services.database.ping()
    except StoreUnavailable as error:
        complaint.say(str(error))
        return "unavailable", error.public
    complaint.over()
    return "ok", ""
