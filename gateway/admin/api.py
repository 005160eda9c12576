"""The interface put together: its resources below one path, behind one dependency, with their document."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI, Security

from gateway.admin import audit, document, grants, harnesses, principals, sessions, tokens
from gateway.admin.access import administrator
from gateway.admin.handlers import add_handlers
from gateway.admin.refusals import AdminRefusal, declared
from gateway.bootstrap import Services
from gateway.routes import ADMIN
from mcp.protocol.errors import HttpRefusal

#: What may happen to any request, whatever it asks for.
_ALWAYS: Final = declared(
    HttpRefusal.HOST_MISSING,
    HttpRefusal.UNAUTHENTICATED,
    HttpRefusal.ORIGIN_FORBIDDEN,
    AdminRefusal.ADMIN_SCOPE_MISSING,
    AdminRefusal.NOT_FOUND,
    HttpRefusal.HOST_FORBIDDEN,
    AdminRefusal.INVALID,
    HttpRefusal.TOO_MANY_REQUESTS,
    HttpRefusal.INTERNAL,
    HttpRefusal.UNAVAILABLE,
    HttpRefusal.DRAINING,
)
_RESOURCES: Final = (
    tokens.routes,
    principals.routes,
    sessions.routes,
    grants.routes,
    audit.routes,
    harnesses.routes,
)


def add_admin(app: FastAPI, services: Services) -> None:
    """Add the interface to the application."""
    app.state.services = services
    api = APIRouter(prefix=ADMIN, dependencies=[Security(administrator)], responses=_ALWAYS)
    for resource in (*_RESOURCES, document.routes):
        api.include_router(resource)
    app.include_router(api)
    add_handlers(app)
    document.describe(app)
