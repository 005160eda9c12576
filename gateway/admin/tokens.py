"""Tokens: create, list, get, revoke. A token is never deleted, so nothing here has the method DELETE."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import AfterValidator, BaseModel, Field

from auth.ports import Obstacle
from auth.scopes import Scope
from auth.tokens import MOST_NAME, Issued, Kind, TokenRecord, Valid, judge
from gateway import issuing
from gateway.admin.access import Administrator, Wired
from gateway.admin.models import WHOLE, AnyPrincipal, Input, Listing, OurPrincipal
from gateway.admin.refusals import OBSTACLES, AdminRefusal, Refused, bad_after, declared
from gateway.admin.requests import StrictRoute, no_body
from gateway.bootstrap import Services
from gateway.issuing import DEFAULT_DAYS, MOST_DAYS, MOST_OVERLAP, Wanted
from gateway.routes import TOKENS
from mcp.protocol.errors import HttpRefusal


def _name(name: str) -> str:
    if (why := issuing.name_fault(name)) is not None:
        raise ValueError(f"is no name: {why}")
    return name


#: What Python calls printable: no control or format character, and of the separators the space alone.
_LINE: Final = {"pattern": r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$"}


class NewToken(Input):
    """A token to be made."""

    principal: OurPrincipal = Field(
        description="Whose it is: `local:` and a name of up to 64 letters, digits, dots, hyphens and underscores. A "
        "principal that is missing is made.",
        examples=["local:alice"],
    )
    kind: Kind = Field(
        Kind.PAT,
        description="For a person (`pat`), a service (`svc`) or administration (`adm`): a label in the secret.",
    )
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] | None = Field(
        None, description="What it may be used for; without any, `admin` for the kind `adm` and else `mcp:write`."
    )
    name: Annotated[str, Field(max_length=MOST_NAME, json_schema_extra=_LINE), AfterValidator(_name)] = Field(
        "", description="A note of your own: one line of printable characters.", examples=["laptop"]
    )
    expires_days: Annotated[int, Field(ge=1, le=MOST_DAYS), *WHOLE] | None = Field(
        DEFAULT_DAYS, description="Days that it is valid for; null for a token that never expires."
    )


class Rotation(Input):
    """How a token is replaced."""

    overlap_seconds: Annotated[int, Field(ge=0, le=MOST_OVERLAP), *WHOLE] = Field(
        0, description="How long the old secret still counts, in seconds, so that nobody has to change it at once."
    )


class Tokens(Listing):
    """Which tokens are asked for."""

    principal: AnyPrincipal | None = Field(None, description="Only those of this principal.")


class Token(BaseModel):
    """A token, without its secret."""

    id: str = Field(description="Names it in paths, lists and logs; no secret.")
    kind: Kind = Field(description="What it was made for.")
    principal: str = Field(description="Whose it is.")
    name: str = Field(description="The note it was made with.")
    token: str = Field(description="The beginning and the end of the secret, to know it by.")
    scopes: list[Scope] = Field(description="What it may be used for.")
    state: Literal["valid", "revoked", "expired", "disabled", "unknown"] = Field(
        description="Whether it may be used now; `disabled` is said of its principal."
    )
    created: datetime = Field(description="When it was made.")
    created_by: str = Field(description="Who made it: a principal, or `cli` for the command line.")
    expires: datetime | None = Field(description="When it ends by itself; null for never.")
    last_used: datetime | None = Field(description="When it was last used, to the minute; null for never.")
    revoked: datetime | None = Field(description="When it was revoked, or will be where it was replaced.")
    revoked_by: str | None = Field(description="Who revoked it.")


class CreatedToken(Token):
    """A new token with its secret, which is shown this once."""

    secret: str = Field(description="What to send as `Authorization: Bearer ...`. It is stored nowhere.")


class TokenPage(BaseModel):
    """A part of the list of tokens, the newest first."""

    items: list[Token] = Field(description="The tokens.")
    after: str | None = Field(description="Asks for the next page when sent as `after`; null at the end of the list.")


BODY: Final = declared(
    AdminRefusal.NOT_JSON,
    HttpRefusal.HOST_MISSING,
    HttpRefusal.BODY_TIMEOUT,
    HttpRefusal.BODY_TOO_LARGE,
    HttpRefusal.MEDIA_TYPE,
)
NO_BODY: Final = declared(HttpRefusal.BODY_TIMEOUT, HttpRefusal.BODY_TOO_LARGE)
_UNKNOWN: Final = declared(AdminRefusal.TOKEN_UNKNOWN, AdminRefusal.NOT_FOUND)
_LOCATION: Final = {"Location": {"description": "The path of the token.", "schema": {"type": "string"}}}
_IN_THE_WAY: Final = (AdminRefusal.PRINCIPAL_UNKNOWN, AdminRefusal.PRINCIPAL_DISABLED, AdminRefusal.TOKEN_ENDED)
_Id = Annotated[str, Path(max_length=64, description="The id of a token.")]

routes: Final = APIRouter(prefix="/tokens", tags=["tokens"], route_class=StrictRoute)


@routes.post(
    "",
    status_code=201,
    response_description="The token was made. Keep the secret: it cannot be shown again.",
    responses={201: {"headers": _LOCATION}} | BODY | declared(AdminRefusal.PRINCIPAL_DISABLED),
)
async def create_token(wanted: NewToken, by: Administrator, services: Wired, response: Response) -> CreatedToken:
    """Make a token. Its secret is in this answer and nowhere else: if the answer is lost, revoke the token."""
    new = issuing.issued(_wanted(wanted), by=by.principal, now=issuing.utc_now())
    if (obstacle := await issuing.keep(services.tokens, new, by)) is not None:
        raise Refused(OBSTACLES[obstacle])
    return _created(new, response)


@routes.get("", response_description="The tokens.")
async def list_tokens(asked: Annotated[Tokens, Query()], services: Wired) -> TokenPage:
    """List tokens, the newest first, revoked and expired ones too."""
    try:
        page = await services.tokens.list(principal=asked.principal, after=asked.after, limit=asked.limit)
    except ValueError:
        raise bad_after() from None
    return TokenPage(items=await _shown(services, *page.items), after=page.after)


@routes.get("/{id}", response_description="The token.", responses=_UNKNOWN)
async def get_token(id: _Id, services: Wired) -> Token:
    """Show a token, without its secret."""
    return await _one(services, await services.tokens.get(id))


@routes.post(
    "/{id}/revoke",
    response_description="The token, which is revoked.",
    responses=_UNKNOWN | NO_BODY,
    dependencies=[Depends(no_body)],
)
async def revoke_token(id: _Id, by: Administrator, services: Wired) -> Token:
    """End a token at once. It stays in the list; a token that was revoked before stays as it is."""
    return await _one(services, await issuing.revoke(services.tokens, id, by, issuing.utc_now()))


@routes.post(
    "/{id}/rotate",
    status_code=201,
    response_description="The token that takes its place. Keep the secret: it cannot be shown again.",
    responses={201: {"headers": _LOCATION}} | _UNKNOWN | BODY | declared(*_IN_THE_WAY),
)
async def rotate_token(
    id: _Id, wanted: Rotation, by: Administrator, services: Wired, response: Response
) -> CreatedToken:
    """Replace a token by one that is the same but for its id, its secret and its days, which begin anew.

    A token is replaced once: if the answer is lost, revoke what took its place, and make a new one.
    """
    old = await services.tokens.get(id)
    if old is None:
        raise Refused(AdminRefusal.TOKEN_UNKNOWN)
    overlap = timedelta(seconds=wanted.overlap_seconds)
    new = await issuing.rotate(services.tokens, old, overlap, by, issuing.utc_now())
    if isinstance(new, Obstacle):
        raise Refused(OBSTACLES[new])
    return _created(new, response)


def _created(new: Issued, response: Response) -> CreatedToken:
    response.headers["location"] = f"{TOKENS}/{new.record.id}"
    fields = issuing.token_fields(new.record, Valid(new.record, new.record.until))
    return CreatedToken(**fields, secret=new.minted.secret)


def _wanted(new: NewToken) -> Wanted:
    scopes = issuing.scopes_for(new.kind, new.scopes)
    assert isinstance(scopes, frozenset)  # noqa: S101 - the model took only names of scopes
    lifetime = None if new.expires_days is None else timedelta(days=new.expires_days)
    return Wanted(new.kind, new.principal, scopes, new.name, lifetime)


async def _one(services: Services, found: TokenRecord | None) -> Token:
    if found is None:
        raise Refused(AdminRefusal.TOKEN_UNKNOWN)
    return (await _shown(services, found))[0]


async def _shown(services: Services, *tokens: TokenRecord) -> list[Token]:
    owned_by = await issuing.owners(services.principals, tokens)
    now = issuing.utc_now()
    return [Token(**issuing.token_fields(token, judge(token, owned_by[token.principal], now))) for token in tokens]
