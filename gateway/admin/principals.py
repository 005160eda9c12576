"""Principals: list, get, make, disable, enable. None is ever deleted, because what they did stays on record.

Nothing of a principal is sent as a whole, so that no update can be lost: each change says what it changes, and to
ask for it again changes nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, Field

from auth.tokens import PrincipalRecord
from gateway import issuing
from gateway.admin.access import Administrator, Wired
from gateway.admin.models import ById, Input, OurPrincipal
from gateway.admin.refusals import AdminRefusal, Refused, bad_after, declared
from gateway.admin.requests import StrictRoute, no_body
from gateway.admin.tokens import BODY, NO_BODY
from gateway.naming import id_of, key_of
from gateway.routes import PRINCIPALS
from gateway.token_output import principal_fields


class NewPrincipal(Input):
    """A principal to be made. Those of an issuer are made when they first come."""

    id: OurPrincipal = Field(
        description="`local:` and a name of up to 64 letters, digits, dots, hyphens and underscores.",
        examples=["local:alice"],
    )


class Principal(BaseModel):
    """Somebody who may call."""

    id: str = Field(description="`local:` and a name, or an issuer's address, `#` and the subject.")
    key: str = Field(description="Names it in paths: the id where a path can hold that, else a form of it.")
    state: Literal["enabled", "disabled"] = Field(description="Whether its tokens are taken.")
    created: datetime = Field(description="When it was made.")
    created_by: str = Field(description="Who made it: a principal, `cli` for the command line, or the issuer.")
    disabled: datetime | None = Field(description="When it was disabled; null while it is not.")
    disabled_by: str | None = Field(description="Who disabled it.")


class PrincipalPage(BaseModel):
    """A part of the list of principals, in the order of their ids."""

    items: list[Principal] = Field(description="The principals.")
    after: str | None = Field(description="Asks for the next page when sent as `after`; null at the end of the list.")


_UNKNOWN: Final = declared(AdminRefusal.PRINCIPAL_MISSING, AdminRefusal.NOT_FOUND)
_LOCATION: Final = {"Location": {"description": "The path of the principal.", "schema": {"type": "string"}}}
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": Principal, "description": "There was one already; it is as it was.", "headers": _LOCATION},
    201: {"headers": _LOCATION},
}
Key = Annotated[str, Path(max_length=1024, description="The key of a principal; a local one's is its id.")]

routes: Final = APIRouter(prefix="/principals", tags=["principals"], route_class=StrictRoute)


@routes.get("", response_description="The principals.")
async def list_principals(asked: Annotated[ById, Query()], services: Wired) -> PrincipalPage:
    """List principals by id, disabled ones too."""
    try:
        page = await services.principals.list(after=asked.after, limit=asked.limit)
    except ValueError:
        raise bad_after() from None
    return PrincipalPage(items=[_shown(principal) for principal in page.items], after=page.after)


@routes.post(
    "",
    status_code=201,
    response_description="The principal was made.",
    responses=_MADE | BODY,
)
async def create_principal(wanted: NewPrincipal, by: Administrator, services: Wired, response: Response) -> Principal:
    """Make a principal. To ask again for the same one changes nothing."""
    new = PrincipalRecord(wanted.id, issuing.utc_now(), by.principal)
    is_new = await services.principals.create(new, also=issuing.audited("principal.create", new.id, by))
    kept = new if is_new else await services.principals.get(new.id)
    response.status_code = 201 if is_new else 200
    response.headers["location"] = f"{PRINCIPALS}/{key_of(new.id)}"
    return _found(kept)


@routes.get("/{key}", response_description="The principal.", responses=_UNKNOWN)
async def get_principal(key: Key, services: Wired) -> Principal:
    """Show a principal."""
    return _found(await services.principals.get(id_of(key)))


@routes.post(
    "/{key}/disable",
    response_description="The principal, which is disabled.",
    responses=_UNKNOWN | NO_BODY,
    dependencies=[Depends(no_body)],
)
async def disable_principal(key: Key, by: Administrator, services: Wired) -> Principal:
    """Refuse every token of a principal from now on, and end its grants."""
    id = id_of(key)
    also = issuing.audited("principal.disable", id, by)
    return _found(await services.principals.disable(id, at=issuing.utc_now(), by=by.principal, also=also))


@routes.post(
    "/{key}/enable",
    response_description="The principal, which is enabled.",
    responses=_UNKNOWN | NO_BODY,
    dependencies=[Depends(no_body)],
)
async def enable_principal(key: Key, by: Administrator, services: Wired) -> Principal:
    """Take a disabling back: its tokens are taken again, as far as they are valid."""
    id = id_of(key)
    return _found(await services.principals.enable(id, also=issuing.audited("principal.enable", id, by)))


def _found(principal: PrincipalRecord | None) -> Principal:
    if principal is None:
        raise Refused(AdminRefusal.PRINCIPAL_MISSING)
    return _shown(principal)


def _shown(principal: PrincipalRecord) -> Principal:
    return Principal(key=key_of(principal.id), **principal_fields(principal))
