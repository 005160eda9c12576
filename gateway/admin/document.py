"""The OpenAPI document: FastAPI's own, with what it cannot know of. Served to administrators, like all else here."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic.json_schema import models_json_schema

from gateway.admin.models import Problem
from gateway.admin.requests import StrictRoute

TAGS: Final = [
    {"name": "tokens", "description": "Who may call: tokens by id, without their secrets."},
    {"name": "principals", "description": "Whose tokens, sessions and grants these are."},
    {"name": "sessions", "description": "Handshake connections that clients opened, by a label."},
    {"name": "audit", "description": "What was done and refused, for reading only."},
    {"name": "harnesses", "description": "What connections may be, and what a principal may do in one."},
    {"name": "grants", "description": "What people allowed from now on when a rule asked."},
    {"name": "health", "description": "For load balancers, kubelets and scrapers; they need no token."},
]

routes: Final = APIRouter(route_class=StrictRoute)


@routes.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The document itself."""
    return JSONResponse(request.app.openapi())


def describe(app: FastAPI) -> None:
    """Have the application's document hold the model of a problem, which no route gives back."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        _, schemas = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= schemas["$defs"]
        return document

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's documentation extends it in this way
