"""The application: the edge, `/mcp`, administration and the probes beside it, over one set of services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI
from starlette.routing import Route

from gateway.admin.api import add_admin
from gateway.admin.document import TAGS
from gateway.bootstrap import Services
from gateway.health import health_routes
from gateway.middleware import Edge
from gateway.origins import Rules
from gateway.version import VERSION
from mcp.router import Router


def create_app(services: Services) -> FastAPI:
    """The ASGI application. Its lifespan closes the services."""
    app = FastAPI(
        title="Super-Pi",
        version=VERSION,
        lifespan=_closing(services),
        redirect_slashes=False,
        # The document is served by the administrative interface, to those who may use it.
        openapi_url=None,
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    settings = services.settings
    router = Router(
        services.offering,
        services.lifecycle.sessions,
        services.lifecycle.flight,
        services.lifecycle.pending,
        settings.http,
        services.lifecycle.refusal,
        services.announcer,
    )
    # First in the list: nearly every request is for it, and a match ends the search.
    app.router.routes.insert(0, Route("/mcp", endpoint=router, include_in_schema=False))
    app.include_router(health_routes(services))
    add_admin(app, services)
    rules = Rules.of(settings.allowed_origins, settings.allowed_hosts)
    app.add_middleware(
        Edge,
        rules=rules,
        authenticator=services.lifecycle.authenticator,
        metrics=services.metrics,
        tracing=services.lifecycle.tracing,
    )
    return app


def _closing(services: Services) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """The life of an application over these services, at whose end they are closed."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await services.close()

    return lifespan
