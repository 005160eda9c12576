"""Cutting a list into pages, for the tables and the twins alike. Pure; knows no noun beyond its place in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from auth.ports import Page
from auth.tokens import PrincipalRecord, TokenRecord
from gateway.store import values
from mcp.grants import Grant

T = TypeVar("T")


def tokens(found: Sequence[TokenRecord], limit: int) -> Page[TokenRecord]:
    """The first `limit` of what was found; continued at a time and an id."""
    return _page(found, limit, lambda token: values.position(token.created, token.id))


def tokens_after(after: str | None) -> tuple[datetime, str] | None:
    """The place that a page of tokens named; ValueError when none did."""
    return None if after is None else values.parse_position(after)


def principals(found: Sequence[PrincipalRecord], limit: int) -> Page[PrincipalRecord]:
    """The first `limit` of what was found; continued at an id."""
    return _page(found, limit, lambda principal: principal.id)


def grants(found: Sequence[Grant], limit: int) -> Page[Grant]:
    """The first `limit` of what was found; continued at a time and an id."""
    return _page(found, limit, lambda grant: values.position(grant.created, grant.id))


def _page(found: Sequence[T], limit: int, place: Callable[[T], str]) -> Page[T]:
    items = tuple(found[:limit])
    return Page(items, place(items[-1]) if items and len(found) > limit else None)
