"""Who may administer: callers whose token has the scope admin, and nobody else. Knows no resource.

Every route of the interface depends on `administrator`; a test walks them. Nothing that comes without the scope
learns which paths there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from auth.caller import Caller
from auth.scopes import Scope
from gateway.admin.refusals import AdminRefusal, Refused
from gateway.bootstrap import Services
from gateway.routes import ADMIN, label
from mcp.meter import Meter
from mcp.rates import WORKS
from mcp.recording import Circumstances
from mcp.router import CALLER_KEY, REQUEST_ID_KEY, SPAN_KEY

#: Says in the document how to show a token. The edge has judged it by then, the same way as for `/mcp`.
_BEARER: Final = HTTPBearer(
    scheme_name="token",
    bearerFormat="spi_adm_...",
    description="A token with the scope `admin`, made by `superpi token create --kind adm` or by this interface.",
    auto_error=False,
)
_PLAIN: Final = f"{ADMIN}/".encode()
_AGAIN: Final = {"retry-after": "2", "connection": "close"}


async def administrator(
    request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
) -> Circumstances:
    """Who asks, and what surrounds the request. Raises Refused for everybody without the scope."""
    admit(request)
    return circumstances(request)


Administrator = Annotated[Circumstances, Security(administrator)]


def services_of(request: Request) -> Services:
    """What the process is made of."""
    return cast("Services", request.app.state.services)


async def services(request: Request) -> Services:
    """The same as a dependency; without `async` FastAPI would ask a thread for it."""
    return services_of(request)


Wired = Annotated[Services, Depends(services)]


def admit(request: Request) -> None:
    """Raise Refused unless the caller may administer, by this path, and now."""
    if (refusal := refusal_of(request.scope[CALLER_KEY])) is not None:
        raise Refused(refusal)
    if not is_plain(request.scope):
        raise Refused(AdminRefusal.NOT_FOUND)
    if (closed := services_of(request).lifecycle.refusal()) is not None:
        raise Refused(closed, headers=_AGAIN)
    _meter(request)


def _meter(request: Request) -> None:
    """Count the request, as one of `/mcp` that makes the server work."""
    by, meter = circumstances(request), cast("Meter", request.app.state.meter)
    if (over := meter.take(by.principal, WORKS)) is not None:
        recorder = services_of(request).offering.current.performer.recorder
        recorder.limited(f"{request.method} {label(request.scope['path'])}", by, over)
        raise Refused.of(over.refused())


def refusal_of(caller: Caller) -> AdminRefusal | None:
    """Why the caller may not administer, if so."""
    return None if Scope.ADMIN in caller.scopes else AdminRefusal.ADMIN_SCOPE_MISSING


def is_plain(scope: Mapping[str, Any]) -> bool:
    """Whether the path was sent as it reads: a proxy that guards `/admin` must have seen what is routed here."""
    raw: bytes = scope["raw_path"]
    return raw.startswith(_PLAIN) and b"%2f" not in raw.lower()


def circumstances(request: Request) -> Circumstances:
    """Whose request it is, for the row that tells of it."""
    scope = request.scope
    caller: Caller = scope[CALLER_KEY]
    return Circumstances(
        caller.principal,
        caller.token,
        scope[REQUEST_ID_KEY],
        request.client.host if request.client else None,
        scope[SPAN_KEY].trace_id,
    )
