"""What every result says beside its content, by revision: its kind, who answers, and how long it may be kept.

A result of the stateless era names its kind and its server (RPC-10, MOD-10), and those of `HINTS` how long and for whom
they may be kept (CA-1); on the handshake revisions none of this exists (ERA-15).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

from mcp.protocol import encode
from mcp.protocol.offer import Offer
from mcp.protocol.revisions import Revision
from mcp.protocol.wire import Result

SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
_DISCOVERY: Final = "server/discover"


@dataclass(frozen=True, slots=True)
class Hint:
    """For how many milliseconds a result may be kept, and whether for one caller or for all (CA-2, CA-4)."""

    ttl_ms: int
    scope: Literal["public", "private"]


#: The tools are the same whoever asks, and change with the server. Prompts name a team's own harnesses, and are not
#: for a shared cache to show to others (CA-4). What belongs to a caller is theirs, and longer a moment later.
HINTS: Final[Mapping[str, Hint]] = MappingProxyType(
    {
        _DISCOVERY: Hint(300_000, "public"),
        "tools/list": Hint(300_000, "public"),
        "prompts/list": Hint(60_000, "private"),
        "resources/templates/list": Hint(300_000, "public"),
        "resources/list": Hint(0, "private"),
        "resources/read": Hint(0, "private"),
    }
)


def complete(method: str, body: Mapping[str, Any], offer: Offer, revision: Revision) -> Result:
    """The whole result of a method that is through."""
    beside = _beside(method, offer, revision)
    return _merged(body, beside) if beside else body


def interim(body: Mapping[str, Any], offer: Offer, revision: Revision) -> Result:
    """A result that asks for input; it may not be kept (MRTR-11)."""
    return _merged(body, _beside("", offer, revision) | {"resultType": "input_required"})


@lru_cache(maxsize=256)
def _beside(method: str, offer: Offer, revision: Revision) -> dict[str, Any]:
    hint = HINTS.get(method)
    fields = encode.known(
        "result",
        revision,
        (
            ("resultType", "complete"),
            ("ttlMs", hint and hint.ttl_ms),
            ("cacheScope", hint and hint.scope),
        ),
    )
    if encode.knows("result", "serverInfo", revision):
        server = encode.server_info(offer.server, revision)
        if method != _DISCOVERY:
            # On every result it only says who answered; what that looks like is told once.
            server = {name: server[name] for name in ("name", "version")}
        fields["_meta"] = {SERVER_KEY: server}
    return fields


def _merged(body: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    if "_meta" in body:
        return {**body, **beside, "_meta": {**beside["_meta"], **body["_meta"]}}
    return {**body, **beside}
