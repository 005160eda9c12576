"""The state of one connection: what the handshake agreed on and the little that changes after it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.protocol.revisions import Revision


class LogLevel(enum.StrEnum):
    """Severity of log notifications, in rising order (RFC 5424 names)."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"


def level_of(value: Any) -> LogLevel | None:
    """The level that a client's value names, if it does."""
    return next((level for level in LogLevel if level.value == value), None)


@dataclass(frozen=True, slots=True)
class State:
    """One connection. `revision` is None until `initialize`; `harness` empty means the configured default.

    `client` and `capabilities` are the JSON objects of the client's `initialize`, as sent.
    """

    principal: str = "anonymous"
    harness: str = ""
    revision: Revision | None = None
    client: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    initialized: bool = False
    log_level: LogLevel | None = None
