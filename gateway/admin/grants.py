"""Grants: list what people allowed from now on, and delete it. They are made by answers to questions, and not here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from gateway import granting, issuing
from gateway.admin.access import Administrator, Wired
from gateway.admin.models import AnyPrincipal, Listing
from gateway.admin.refusals import AdminRefusal, Refused, bad_after, declared
from gateway.admin.requests import StrictRoute, no_body
from mcp.protocol.errors import HttpRefusal


class Grants(Listing):
    """Which grants are asked for."""

    principal: AnyPrincipal | None = Field(None, description="Only those of this principal; `anonymous` for no token.")


class Grant(BaseModel):
    """A yes from now on, to one tool and one subject."""

    id: str = Field(description="Names it in paths, lists and logs.")
    principal: str = Field(description="Whose it is.")
    tool: str = Field(description="The tool that may be used.")
    subject: str = Field(description="On what, to the letter: a path, or the whole of a command; empty for everything.")
    reach: Literal["session", "harness"] = Field(
        description="Whether it holds in one session until that ends, or in a harness until it expires."
    )
    harness: str | None = Field(description="The harness that it holds in; null for one of a session.")
    expires: datetime | None = Field(description="When it ends by itself; null for one of a session.")
    token: str | None = Field(description="The id of the token through which it was given; it ends with that.")
    created: datetime = Field(description="When it was given.")


class GrantPage(BaseModel):
    """A part of the list of grants, the newest first."""

    items: list[Grant] = Field(description="The grants.")
    after: str | None = Field(description="Asks for the next page when sent as `after`; null at the end of the list.")


_DELETE: Final = declared(
    AdminRefusal.GRANT_UNKNOWN, AdminRefusal.NOT_FOUND, HttpRefusal.BODY_TIMEOUT, HttpRefusal.BODY_TOO_LARGE
)
_Id = Annotated[str, Path(max_length=64, description="The id of a grant.")]

routes: Final = APIRouter(prefix="/grants", tags=["grants"], route_class=StrictRoute)


@routes.get("", response_description="The grants.")
async def list_grants(asked: Annotated[Grants, Query()], services: Wired) -> GrantPage:
    """List the grants that count now, the newest first."""
    try:
        page = await services.lifecycle.grants.list(
            asked.principal, now=issuing.utc_now(), after=asked.after, limit=asked.limit
        )
    except ValueError:
        raise bad_after() from None
    return GrantPage(items=[Grant(**granting.grant_fields(grant)) for grant in page.items], after=page.after)


@routes.delete(
    "/{id}",
    status_code=204,
    response_description="The grant is gone.",
    responses=_DELETE,
    dependencies=[Depends(no_body)],
)
async def delete_grant(id: _Id, by: Administrator, services: Wired) -> None:
    """End a grant at once, on every server: the person is asked again."""
    if await granting.withdraw(services.lifecycle.grants, id, by) is None:
        raise Refused(AdminRefusal.GRANT_UNKNOWN)
