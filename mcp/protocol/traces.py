"""The trace that a message says it belongs to (SEP-414). Knows no tracing, and judges no value."""

from __future__ import annotations

from typing import Final

from mcp.protocol.wire import Notification, Payload, Request, Single

_PARENT: Final = "traceparent"


def parent_of(message: Request | Notification | None) -> str | None:
    """The `traceparent` of a message's metadata (CT-5), in every revision; None without a text of that name."""
    meta = None if message is None else message.params.get("_meta")
    parent = meta.get(_PARENT) if isinstance(meta, dict) else None
    return parent if isinstance(parent, str) else None


def parent(payload: Payload) -> str | None:
    """The same of a payload that is one message: the messages of a batch may name different traces."""
    if isinstance(payload, Single) and isinstance(payload.message, Request | Notification):
        return parent_of(payload.message)
    return None
