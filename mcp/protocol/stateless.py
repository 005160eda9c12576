"""The stateless era: a request that says everything of itself, and the order in which that is checked.

Nothing of an earlier request is looked at (MOD-4): what a request may rely on is built from its own `_meta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.protocol import arrival as mirroring
from mcp.protocol import revisions
from mcp.protocol.arrival import Arrival
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.revisions import STATELESS
from mcp.protocol.state import LogLevel, State, level_of
from mcp.protocol.wire import Batch, Payload, Request

_PREFIX: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = _PREFIX + "protocolVersion"
CAPABILITIES_KEY: Final = _PREFIX + "clientCapabilities"
CLIENT_KEY: Final = _PREFIX + "clientInfo"
LOG_LEVEL_KEY: Final = _PREFIX + "logLevel"
_NAMES: Final = frozenset(revision.value for revision in STATELESS)


def claims(request: Request) -> bool:
    """Whether a request says that it is stateless: by its body, whatever the headers say (ERA-3)."""
    meta = request.params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def is_stateless(payload: Payload, versions: tuple[str, ...], *, has_session: bool) -> bool:
    """Whether a payload over HTTP is of the stateless era; `versions` are the values of `MCP-Protocol-Version`.

    Without a claim a header that names a stateless version decides: a request that contradicts it is refused for
    that (ERA-4, ERA-6), and what is no request has no body to claim with (ERA-8); with a session it belongs to that.
    """
    named = any(value in _NAMES for value in versions)
    if isinstance(payload, Batch):
        claimed = any(isinstance(message, Request) and claims(message) for message in payload.messages)
        return claimed or (named and not has_session)
    message = payload.message
    if isinstance(message, Request) and claims(message):
        return True
    return named and (isinstance(message, Request) or not has_session)


def admit(request: Request, state: State, arrival: Arrival) -> State | Refusal:
    """The state that a request is taken under, built from nothing but the request and whose it is."""
    meta = request.params.get("_meta")
    mirror = arrival.mirror
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        if request.method == "initialize" and mirror is not None and mirror.version:
            return Refusal(Reason.HEADER_MISMATCH, "Header mismatch: initialize does not belong to the version named")
        return _malformed(f'"_meta" needs "{VERSION_KEY}" and "{CAPABILITIES_KEY}"')
    if (fault := _meta_fault(meta)) is not None:
        return _malformed(fault)
    claimed: str = meta[VERSION_KEY]
    if mirror is not None:
        fault = mirroring.version_fault(mirror, claimed) or mirroring.routing_fault(mirror, request)
        if fault is not None:
            return Refusal(Reason.HEADER_MISMATCH, f"Header mismatch: {fault}")
    revision = revisions.by_name(claimed)
    if revision not in STATELESS:
        data = {"supported": list(revisions.supported_versions()), "requested": claimed}
        return Refusal(Reason.VERSION_UNSUPPORTED, "Unsupported protocol version", data)
    return State(
        principal=state.principal,
        harness=state.harness,
        revision=revision,
        client=meta.get(CLIENT_KEY, {}),
        capabilities=meta[CAPABILITIES_KEY],
        initialized=True,
        log_level=level_of(meta.get(LOG_LEVEL_KEY)),
    )


def _meta_fault(meta: Mapping[str, Any]) -> str | None:
    """What is wrong with what a request says of itself, if anything (MOD-1, LG-3)."""
    if not isinstance(meta[VERSION_KEY], str):
        return f'"{VERSION_KEY}" is a string'
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        return f'"_meta" needs the object "{CAPABILITIES_KEY}"'
    if not isinstance(meta.get(CLIENT_KEY, {}), dict):
        return f'"{CLIENT_KEY}" is an object'
    if LOG_LEVEL_KEY in meta and level_of(meta[LOG_LEVEL_KEY]) is None:
        return f'"{LOG_LEVEL_KEY}" is one of {", ".join(LogLevel)}'
    return None


def _malformed(why: str) -> Refusal:
    return Refusal(Reason.META_INVALID, f"Invalid params: {why}")
