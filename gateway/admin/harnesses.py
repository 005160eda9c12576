"""Harnesses as the server has them now, and what a principal may do in one. They are files, and are changed as such."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from auth import scopes
from auth.caller import Caller, Transport
from auth.rules import rule_text
from auth.scopes import Scope
from auth.tokens import Valid, judge
from gateway import issuing
from gateway.admin.access import Wired
from gateway.admin.models import Input
from gateway.admin.principals import Key
from gateway.admin.refusals import AdminRefusal, Refused, declared
from gateway.admin.requests import StrictRoute
from gateway.bootstrap import Services
from gateway.naming import id_of
from mcp.calls import Connection
from mcp.harness.definition import Harness as Definition
from mcp.loadout import loadout
from mcp.protocol.state import State

#: Tokens whose permissions are told at once; whoever has more asks by scopes.
_MOST_TOKENS: Final = 100


class Harness(BaseModel):
    """What a connection may be: tools, a mode and rules, under a name."""

    id: str = Field(description="What `?harness=` asks for.")
    title: str = Field(description="Its name for people.")
    description: str = Field(description="What it is for.")
    tools: list[str] = Field(description="The tools that it may use.")
    mode: str = Field(description="The highest mode in it: `read_only`, `workspace_write` or `full`.")
    rules: list[str] = Field(description="Its own rules, each as a sentence.")
    is_default: bool = Field(description="Whether it is that of connections which ask for none.")


class HarnessList(BaseModel):
    """All harnesses, those that ship first."""

    items: list[Harness] = Field(description="The harnesses.")


class Tool(BaseModel):
    """A tool, and whether it may be used at all. A single call can still be refused for its path or its command."""

    name: str = Field(description="Name of the tool.")
    title: str = Field(description="Its name for people.")
    allowed: bool = Field(description="Whether it may be used.")
    reach: str | None = Field(None, description="What it may do, where it is allowed.")
    rules: list[str] | None = Field(None, description="Rules that bind it, where it is allowed.")
    message: str | None = Field(None, description="Why not, where it is not.")
    refusal: dict[str, Any] | None = Field(None, description="The same as data: the layer that decided, and the mode.")


class Cap(BaseModel):
    """One of the bounds of a mode, of which the lowest counts."""

    layer: str = Field(description="Who sets it: the harness, the remote cap, or the scope of the token.")
    mode: str = Field(description="The highest mode that it allows.")


class Permissions(BaseModel):
    """What a principal may do with certain scopes."""

    scopes: list[Scope] = Field(description="The scopes.")
    tokens: list[str] = Field(description="Ids of the principal's valid tokens that have just these.")
    mode: str = Field(description="The mode that results.")
    caps: list[Cap] = Field(description="What bounds it.")
    tools: list[Tool] = Field(description="Every tool.")
    rules: list[str] = Field(description="Every rule, each as a sentence.")


class Effective(BaseModel):
    """What a principal may do in a harness."""

    principal: str = Field(description="Whose permissions these are.")
    harness: str = Field(description="The harness that they are told for.")
    items: list[Permissions] = Field(description="One for each set of scopes.")


class Question(Input):
    """Which permissions are asked for."""

    harness: str | None = Field(None, max_length=64, description="In this harness; without it, in the configured one.")
    scope: Scope | None = Field(None, description="As with a token of this scope, instead of those that there are.")


_UNKNOWN: Final = declared(AdminRefusal.HARNESS_MISSING, AdminRefusal.NOT_FOUND)
_Id = Annotated[str, Path(max_length=64, description="The id of a harness.")]

routes: Final = APIRouter(tags=["harnesses"], route_class=StrictRoute)


@routes.get("/harnesses", response_description="The harnesses.")
async def list_harnesses(services: Wired) -> HarnessList:
    """List the harnesses."""
    return HarnessList(items=[_shown(services, one) for one in services.offering.current.performer.harnesses])


@routes.get("/harnesses/{id}", response_description="The harness.", responses=_UNKNOWN)
async def get_harness(id: _Id, services: Wired) -> Harness:
    """Show a harness."""
    return _shown(services, _found(services, id))


@routes.get(
    "/principals/{key}/permissions",
    response_description="The permissions.",
    responses=declared(AdminRefusal.PRINCIPAL_MISSING, AdminRefusal.HARNESS_MISSING, AdminRefusal.NOT_FOUND),
)
async def get_permissions(key: Key, asked: Annotated[Question, Query()], services: Wired) -> Effective:
    """Tell what a principal may do over `/mcp`, by the scopes of its valid tokens, and why not more."""
    owner = await services.principals.get(id_of(key))
    if owner is None:
        raise Refused(AdminRefusal.PRINCIPAL_MISSING)
    default = services.offering.current.performer.default_harness
    harness = default if asked.harness is None else _found(services, asked.harness)
    sets: dict[scopes.Scopes, list[str]] = {}
    if asked.scope is not None:
        sets[frozenset({asked.scope})] = []
    else:
        page = await services.tokens.list(principal=owner.id, limit=_MOST_TOKENS)
        now = issuing.utc_now()
        for token in page.items:
            if isinstance(judge(token, owner, now), Valid):
                sets.setdefault(token.scopes, []).append(token.id)
    items = [_permissions(services, owner.id, harness, have, tokens) for have, tokens in sets.items()]
    return Effective(principal=owner.id, harness=harness.id, items=items)


def _permissions(
    services: Services, principal: str, harness: Definition, have: scopes.Scopes, tokens: list[str]
) -> Permissions:
    performer = services.offering.current.performer
    caller = Caller(principal, Transport.HTTP, "-", have)
    policy = performer.policy(Connection(caller, State(principal, harness.id)))
    shell = performer.shell
    told = loadout(
        policy,
        [(tool.spec, tool.need) for tool in performer.tools.values()],
        workspace=performer.workspace.root.name,
        step=shell.step,
        why=shell.why,
    )
    if scopes.mode(have) is None:
        # Such a token is not even let in.
        told |= {"mode": "none", "tools": [_shut(tool) for tool in told["tools"]]}
    return Permissions(
        scopes=sorted(have),
        tokens=tokens,
        mode=told["mode"],
        caps=told["caps"],
        tools=told["tools"],
        rules=told["rules"],
    )


def _shut(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "title": tool["title"], "allowed": False, "message": "The token has no mcp scope."}


def _found(services: Services, id: str) -> Definition:
    harness = services.offering.current.performer.harnesses.get(id)
    if harness is None:
        raise Refused(AdminRefusal.HARNESS_MISSING)
    return harness


def _shown(services: Services, harness: Definition) -> Harness:
    return Harness(
        id=harness.id,
        title=harness.title,
        description=harness.description,
        tools=sorted(harness.tools),
        mode=harness.mode.label,
        rules=[rule_text(rule) for rule in harness.rules],
        is_default=harness.id == services.offering.current.performer.default_harness.id,
    )
