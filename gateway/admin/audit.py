"""The audit log: read a page of it, or all of it. Nothing here changes a row, and to export is one more row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from gateway import issuing, trails
from gateway.admin.access import Administrator, Wired
from gateway.admin.models import ByNumber, Input, Moment, Words
from gateway.admin.refusals import bad_after
from gateway.admin.requests import StrictRoute
from gateway.store.audit import SqlAudit

_LINES: Final = "application/jsonl"


class Filter(Input):
    """Which rows are asked for."""

    principal: Words | None = Field(None, description="Only what this principal did; `cli` for the command line.")
    action: Words | None = Field(None, description="Only this action, like `tools/call` or `token.revoke`.")
    since: Moment | None = Field(None, description="Only from this time on, by RFC 3339 with a zone.")


class Rows(Filter, ByNumber):
    """The same, a page at a time."""


class Row(BaseModel):
    """One thing that happened. docs/telemetry.md says more of each column."""

    seq: int = Field(description="Grows in the order of writing.")
    at: str = Field(description="When it happened, by the database's clock.", json_schema_extra={"format": "date-time"})
    request_id: str = Field(description="The request that it belongs to, as in the header `X-Request-Id`.")
    principal: str = Field(description="Who did it.")
    action: str = Field(description="What was done.")
    object: str = Field(description="What it was done to.")
    decision: str = Field(description="`allowed`, `refused` or `failed`.")
    reason: str | None = Field(description="Why it was refused or failed.")
    trace_id: str | None = Field(description="The trace that the request belongs to.")
    token: str | None = Field(description="Id of the token that the caller showed.")
    address: str | None = Field(description="The client's address.")
    duration_ms: int | None = Field(description="How long it took, in milliseconds.")
    arguments_sha256: str | None = Field(description="SHA-256 of the canonical JSON of the arguments, in hexadecimal.")
    arguments_bytes: int | None = Field(description="Length of that JSON, in bytes.")
    result_bytes: int | None = Field(description="Size of the result.")


class RowPage(BaseModel):
    """A part of the log, the newest first."""

    items: list[Row] = Field(description="The rows.")
    after: str | None = Field(description="Asks for the next page when sent as `after`; null at the end of the list.")


routes: Final = APIRouter(prefix="/audit", tags=["audit"], route_class=StrictRoute)


@routes.get("", response_description="The rows.")
async def list_audit(asked: Annotated[Rows, Query()], services: Wired) -> RowPage:
    """List what happened, the newest first."""
    found = await SqlAudit(services.database).page(
        **_filters(asked), after=_place(asked.after), newest_first=True, limit=asked.limit + 1
    )
    rows = found[: asked.limit]
    more = str(rows[-1].seq) if len(found) > len(rows) else None
    return RowPage(items=[Row(**row.plain()) for row in rows], after=more)


@routes.get(
    "/export",
    response_class=StreamingResponse,
    response_description="A row a line, the oldest first, in ASCII.",
    responses={200: {"content": {_LINES: {"schema": {"type": "string"}}}}},
)
async def export_audit(asked: Annotated[Filter, Query()], by: Administrator, services: Wired) -> StreamingResponse:
    """Export all rows as JSON Lines. That somebody does is a row too, written before."""
    also = issuing.audited("audit.export", "audit", by)
    await services.database.write(also)
    return StreamingResponse(_lines(SqlAudit(services.database), _filters(asked)), media_type=_LINES)


async def _lines(audit: SqlAudit, filters: dict[str, Any]) -> AsyncIterator[str]:
    async for rows in trails.pages(audit, filters):
        yield "".join(map(trails.line, rows))


def _filters(asked: Filter) -> dict[str, Any]:
    return {"principal": asked.principal, "action": asked.action, "since": asked.since}


def _place(after: str | None) -> int | None:
    if after is None:
        return None
    if not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise bad_after()
    return int(after)
