"""Lists and their pages. What a whole page holds is encoded once for an offer and a revision.

The end of a list is the absence of a cursor (PG-3). `resources/list` gives the fixed resources first, then
those that only the outside knows, fetched by an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from mcp.protocol import codec, cursors, encode, results
from mcp.protocol.effects import ListResources, ResourcePage
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.offer import Offer
from mcp.protocol.revisions import Revision
from mcp.protocol.wire import Request, Result

_RESOURCES: Final = "resources/list"


@dataclass(frozen=True, slots=True)
class Pager:
    """How pages are cut and their cursors signed, for one principal."""

    keys: tuple[bytes, ...]
    principal: str
    size: int

    def sign(self, method: str, position: str) -> str:
        """A cursor for that position."""
        return cursors.sign(self.keys, self.principal, method, position)

    def position(self, method: str, cursor: object) -> str | None:
        """The position of a cursor that `sign` gave out; None for anything else."""
        return cursors.verify(self.keys, self.principal, method, cursor) if isinstance(cursor, str) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """One method that lists: the member of its result, and how its items are found and encoded."""

    member: str
    items: Callable[[Offer], tuple[Any, ...]]
    encode: Callable[[Any, Revision], dict[str, Any]]


LISTINGS: Final[Mapping[str, Listing]] = MappingProxyType(
    {
        "tools/list": Listing("tools", lambda offer: offer.tools, encode.tool),
        "prompts/list": Listing("prompts", lambda offer: offer.prompts, encode.prompt),
        "resources/templates/list": Listing("resourceTemplates", lambda offer: offer.templates, encode.template),
        _RESOURCES: Listing("resources", lambda offer: offer.resources, encode.resource),
    }
)


@lru_cache(maxsize=256)
def page(method: str, offer: Offer, revision: Revision, size: int) -> Result | None:
    """The whole list as one encoded result; None when it takes more than one page."""
    listing = LISTINGS[method]
    items = listing.items(offer)
    if len(items) > size:
        return None
    body = {listing.member: [listing.encode(item, revision) for item in items]}
    return msgspec.Raw(codec.encode(results.complete(method, body, offer, revision)))


def slice_of(method: str, cursor: object, offer: Offer, revision: Revision, pager: Pager) -> Result | Refusal:
    """The page of a fixed list that a cursor names; the first without one."""
    listing = LISTINGS[method]
    position = "0" if cursor is None else pager.position(method, cursor)
    if position is None:
        return _bad_cursor(method)
    start = int(position)
    items = listing.items(offer)
    result: dict[str, Any] = {
        listing.member: [listing.encode(item, revision) for item in items[start : start + pager.size]]
    }
    if start + pager.size < len(items):
        result["nextCursor"] = pager.sign(method, str(start + pager.size))
    return result


def resources(
    request: Request, slot: int, offer: Offer, revision: Revision, pager: Pager
) -> Result | Refusal | ListResources:
    """A page of fixed resources, or the effect that fills the page up with the others.

    Positions are `f<offset>` among the fixed ones and `d<after>` among the others.
    """
    cursor = request.params.get("cursor")
    position = "f0" if cursor is None else pager.position(_RESOURCES, cursor)
    if position is None:
        return _bad_cursor(_RESOURCES)
    if position.startswith("d"):
        return ListResources(slot, request.id, position[1:] or None, pager.size)
    start = int(position[1:])
    fixed = offer.resources[start : start + pager.size]
    room = pager.size - len(fixed)
    if room > 0:
        return ListResources(slot, request.id, None, room)
    end = start + len(fixed)
    following = f"f{end}" if end < len(offer.resources) else "d"
    encoded = [encode.resource(spec, revision) for spec in fixed]
    return {"resources": encoded, "nextCursor": pager.sign(_RESOURCES, following)}


def resource_page(
    effect: ListResources, found: ResourcePage, offer: Offer, revision: Revision, pager: Pager
) -> dict[str, Any]:
    """The page that an outcome makes: the fixed resources that the effect left room for, then the found ones."""
    fixed = offer.resources[len(offer.resources) - (pager.size - effect.limit) :] if effect.limit < pager.size else ()
    result: dict[str, Any] = {"resources": [encode.resource(spec, revision) for spec in (*fixed, *found.items)]}
    if found.after is not None:
        result["nextCursor"] = pager.sign(_RESOURCES, f"d{found.after}")
    return result


def _bad_cursor(method: str) -> Refusal:
    return Refusal(Reason.INVALID_PARAMS, f"Invalid params: the cursor is not one that {method} gave you")
