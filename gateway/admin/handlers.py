"""From what was raised to the answer: every refusal as a problem, and those for want of the scope on record."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException

from gateway import problems
from gateway.admin.access import circumstances, refusal_of, services_of
from gateway.admin.faults import described
from gateway.admin.refusals import BY_STATUS, AdminRefusal, Refused
from gateway.routes import is_admin, label
from mcp.router import CALLER_KEY, REQUEST_ID_KEY
from telemetry.audit import AuditRecord, Decision

#: The action of a refused request in the audit log; its object is the method and the route.
ACTION = "admin"


def add_handlers(app: FastAPI) -> None:
    """Have the application answer with problems."""

    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        """Also what FastAPI refuses by itself: a path or a method that there is not."""
        refused = _refused(request, error)
        if refused.refusal is AdminRefusal.ADMIN_SCOPE_MISSING:
            _tell(request, refused)
        return _answer(request, refused)

    @app.exception_handler(RequestValidationError)
    async def correct(request: Request, error: RequestValidationError) -> Response:
        """An input that the models do not take."""
        return _answer(request, Refused(AdminRefusal.INVALID, errors=described(error.errors())))


def _refused(request: Request, error: HTTPException) -> Refused:
    if isinstance(error, Refused):
        return error
    # Whoever may not administer learns nothing of the paths: no other status comes first.
    if is_admin(request.scope["path"]) and (refusal := refusal_of(request.scope[CALLER_KEY])) is not None:
        return Refused(refusal)
    # What FastAPI refuses besides is a body that it could not read.
    known = BY_STATUS.get(error.status_code, AdminRefusal.NOT_JSON)
    headers = {"allow": _allowed(request)} if known is AdminRefusal.METHOD_NOT_ALLOWED else None
    return Refused(known, headers=headers)


def _allowed(request: Request) -> str:
    """The methods of a path, of all its routes: FastAPI names those of the first."""
    served = label(request.scope["path"])
    found = (route.methods or () for route in iter_route_contexts(request.app.routes) if route.path_format == served)
    return ", ".join(sorted({method for methods in found for method in methods}))


def _answer(request: Request, refused: Refused) -> Response:
    content = problems.body(
        refused.refusal, request.scope[REQUEST_ID_KEY], detail=refused.detail, errors=refused.errors
    )
    return Response(content, refused.status_code, refused.headers, problems.MEDIA_TYPE)


def _tell(request: Request, refused: Refused) -> None:
    by = circumstances(request)
    record = AuditRecord(
        by.request_id,
        by.principal,
        ACTION,
        f"{request.method} {label(request.scope['path'])}",
        Decision.REFUSED.value,
        reason=problems.code(refused.refusal),
        trace_id=by.trace_id,
        token=by.token,
        address=by.address,
    )
    services_of(request).lifecycle.trail.record(record)
