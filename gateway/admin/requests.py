"""How a request is read: the same strict JSON as on `/mcp`, bounded while it arrives, and only of who may send it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from gateway.admin.access import admit, services_of
from gateway.admin.faults import MOST, REPEATED, UNASKED, parameter
from gateway.admin.refusals import AdminRefusal, Refused
from mcp import http
from mcp.http import BodyBounds
from mcp.protocol import codec
from mcp.protocol.codec import NotJson
from mcp.protocol.errors import HttpRefusal

#: Where the bound of a body comes from.
_BODY_BYTES: Final = "SUPERPI_ADMIN_BODY_BYTES"


class StrictRequest(Request):
    """A request whose body is what `codec` takes for JSON, and of the size that the settings allow."""

    _whole: bytes | None = None

    async def body(self) -> bytes:
        """All of it, for a route that asks for one. Raises Refused."""
        if self._whole is None:
            self._whole = _taken(await http.read_json_body(self.scope, self.receive, _bounds(self)))
            if not self._whole:
                raise Refused(AdminRefusal.NOT_JSON)
        return self._whole

    async def json(self) -> Any:
        """The value that it holds. Raises Refused."""
        value = codec.decode(await self.body())
        if isinstance(value, NotJson):
            raise Refused(AdminRefusal.NOT_JSON, detail=f"The body is no JSON that this server takes: {value.why}.")
        return value


class StrictRoute(APIRoute):
    """A route that judges the caller first: FastAPI reads the body before it asks the first dependency."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler behind that judgement."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            admit(request)
            _each_once(request)
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


async def no_body(request: Request) -> None:
    """A dependency of routes that take no body; `{}` says as little, under whatever media type. Raises Refused."""
    whole = _taken(await http.read_body(request.receive, _bounds(request)))
    if whole and codec.decode(whole) != {}:
        raise Refused(AdminRefusal.INVALID, errors=({"pointer": "", "detail": UNASKED},))


def _bounds(request: Request) -> BodyBounds:
    settings = services_of(request).settings
    return BodyBounds(settings.admin_body_bytes, settings.http.body_seconds, _BODY_BYTES)


def _taken(read: bytes | http.Refused | None) -> bytes:
    """What was read, or its refusal. When the client has left nobody hears that one."""
    if isinstance(read, bytes):
        return read
    raise Refused.of(read or http.Refused(HttpRefusal.BODY_TIMEOUT, headers=http.CLOSE))


def _each_once(request: Request) -> None:
    """Raise Refused where a parameter of the query is given twice: which of them was meant is not to be guessed."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    if repeated := [name for name, times in given.items() if times > 1]:
        raise Refused(AdminRefusal.INVALID, errors=tuple(parameter(name, REPEATED) for name in repeated[:MOST]))
