"""The application: the edge, `/mcp`, administration and the probes beside it, over one set of services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.routing import Route

from auth.permissions import Need
from gateway.admin.api import add_admin
from gateway.admin.document import TAGS
from gateway.bootstrap import Services
from gateway.health import health_routes, metrics_routes
from gateway.metadata import metadata_routes
from gateway.middleware import Edge
from gateway.origins import Rules
from gateway.routes import MCP
from gateway.version import VERSION
from mcp.http import Receive, Scope, Send
from mcp.meter import Meter
from mcp.router import Router

Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


def create_app(services: Services, *, is_secure: bool = False) -> FastAPI:
    """The ASGI application; `is_secure` is whether its listener speaks TLS. Its lifespan closes the services."""
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
    app.state.meter = meter = Meter(settings.rates)
    services.lifecycle.on_replicas = meter.share
    router = _router(services, meter)
    # Declared like every route; the shortcut is how requests come to it.
    app.router.routes.insert(0, Route("/mcp", endpoint=router, include_in_schema=False))
    app.include_router(health_routes(services))
    if services.oidc is not None:
        app.include_router(metadata_routes(services.oidc.metadata))
    add_admin(app, services)
    rules = Rules.of(settings.allowed_origins, settings.allowed_hosts)
    app.add_middleware(_Shortcut, endpoint=router)
    app.add_middleware(
        Edge,
        rules=rules,
        authenticator=services.lifecycle.authenticator,
        metrics=services.metrics,
        tracing=services.lifecycle.tracing,
        meter=meter,
        is_secure=is_secure,
    )
    return app


def metrics_app(services: Services) -> FastAPI:
    """An application that has the metrics, and nothing else."""
    app = FastAPI(openapi_url=None, telemetry={"tracing": False, "metrics": False, "logs": False})
    app.include_router(metrics_routes(services))
    return app


@dataclass(frozen=True, slots=True)
class _Shortcut:
    """Leads from the edge to `/mcp` past the layers that only FastAPI's own routes need: a tenth of a ping's time."""

    app: Endpoint
    endpoint: Endpoint

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and scope["path"] == MCP:
            return self.endpoint(scope, receive, send)
        return self.app(scope, receive, send)


def _router(services: Services, meter: Meter) -> Router:
    lifecycle = services.lifecycle
    tools = services.offering.current.performer.tools.items()
    return Router(
        services.offering,
        lifecycle.sessions,
        lifecycle.flight,
        lifecycle.pending,
        services.settings.http,
        lifecycle.refusal,
        services.announcer,
        None if services.oidc is None else services.oidc.challenges,
        lifecycle.authenticator.again,
        # Only a database server is shared by several processes.
        lifecycle.changes.announce if services.database.is_server else None,
        meter,
        frozenset(name for name, tool in tools if tool.need is Need.EXECUTE),
    )


def _closing(services: Services) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """The life of an application over these services, at whose end they are closed."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await services.close()

    return lifespan
