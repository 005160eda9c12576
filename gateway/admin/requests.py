"""How a request is read: the same strict JSON as on `/mcp`, bounded while it arrives, and only of who may send it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from gateway.admin.access import admit, services_of
from gateway.admin.refusals import AdminRefusal, Refused
from mcp import http
from mcp.protocol import codec
from mcp.protocol.codec import NotJson
from mcp.protocol.errors import HttpRefusal


class StrictRequest(Request):
    """A request whose body is what `codec` takes for JSON, and of the size that the settings allow."""

    _whole: bytes | None = None

    async def body(self) -> bytes:
        """All of it. Raises Refused."""
        if self._whole is None:
            settings = services_of(self).settings
            read = await http.read_json_body(
                self.scope, self.receive, most=settings.admin_body_bytes, seconds=settings.http.body_seconds
            )
            if not isinstance(read, bytes):
                # Without a refusal the client has left, and nobody hears this one. The rest of a body that was not
                # read is not the next request.
                raise Refused(read or HttpRefusal.BODY_TIMEOUT, headers={"connection": "close"})
            self._whole = read
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
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
