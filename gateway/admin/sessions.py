"""Sessions: list, get, end. They are opened by clients and by nothing else.

By the label of a session, never by its id: where no token is asked for, whoever knows the id may use the session.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from gateway import issuing
from gateway.admin.access import Administrator, Wired
from gateway.admin.models import AnyPrincipal, Listing
from gateway.admin.refusals import AdminRefusal, Refused, bad_after, declared
from gateway.admin.requests import StrictRoute, no_body
from gateway.admin.tokens import NO_BODY
from gateway.sessions import session_fields
from mcp import sessions


class Sessions(Listing):
    """Which sessions are asked for."""

    principal: AnyPrincipal | None = Field(None, description="Only those of this principal; `anonymous` for no token.")


class Session(BaseModel):
    """A handshake connection that a client opened."""

    label: str = Field(description="Names it in paths, lists and spans. It is not the id that the client shows.")
    principal: str = Field(description="Whose it is.")
    harness: str | None = Field(description="The harness that it asked for; null for the configured one.")
    revision: str | None = Field(description="The revision of the protocol that was agreed on.")
    client: dict[str, Any] = Field(description="What the client said of itself, to the letter: escape it before use.")
    created: datetime = Field(description="When it was opened.")
    last_seen: datetime = Field(description="When it was last used, to the minute.")


class SessionPage(BaseModel):
    """A part of the list of sessions, the newest first."""

    items: list[Session] = Field(description="The sessions.")
    after: str | None = Field(description="Asks for the next page when sent as `after`; null at the end of the list.")


_UNKNOWN: Final = declared(AdminRefusal.SESSION_ENDED, AdminRefusal.NOT_FOUND)
_Label = Annotated[str, Path(max_length=64, description="The label of a session.")]

routes: Final = APIRouter(prefix="/sessions", tags=["sessions"], route_class=StrictRoute)


@routes.get("", response_description="The sessions.")
async def list_sessions(asked: Annotated[Sessions, Query()], services: Wired) -> SessionPage:
    """List sessions, the newest first."""
    try:
        items, after = await services.session_store.list(
            principal=asked.principal, after=asked.after, limit=asked.limit
        )
    except ValueError:
        raise bad_after() from None
    return SessionPage(items=[_shown(session) for session in items], after=after)


@routes.get("/{label}", response_description="The session.", responses=_UNKNOWN)
async def get_session(label: _Label, services: Wired) -> Session:
    """Show a session."""
    return _shown(_found(await services.session_store.labelled(label)))


@routes.delete(
    "/{label}",
    status_code=204,
    response_description="The session has ended.",
    responses=_UNKNOWN | NO_BODY,
    dependencies=[Depends(no_body)],
)
async def end_session(label: _Label, by: Administrator, services: Wired) -> None:
    """End a session at once, with the calls that run in it: its client has to begin a new one."""
    session = _found(await services.session_store.labelled(label))
    also = issuing.audited("session.end", label, by, reason=f"of {session.principal}")
    _found(session if await services.session_store.end(session.id, also=also) else None)


def _found(session: sessions.Session | None) -> sessions.Session:
    if session is None:
        raise Refused(AdminRefusal.SESSION_ENDED)
    return session


def _shown(session: sessions.Session) -> Session:
    return Session(**session_fields(session))
