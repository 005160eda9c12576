"""Where to get a token: the protected resource metadata (RFC 9728), for hosts that look before they were refused.

At both well-known places, the one with the path of the endpoint and the one without, because hosts try either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from gateway.routes import RESOURCE_METADATA, RESOURCE_METADATA_ROOT


def metadata_routes(document: Mapping[str, Any]) -> APIRouter:
    """The routes of one document."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(RESOURCE_METADATA)
    @routes.get(RESOURCE_METADATA_ROOT)
    async def resource_metadata() -> JSONResponse:
        """The document itself."""
        return JSONResponse(document)

    return routes
