"""Who may call from where: the rules on Host and Origin against DNS rebinding, and CORS for those let in. Pure.

A web page must not reach a local server. So a request names a host that is ours, and an Origin, where there is
one, is loopback or on the list (basic/transports, security; case C01).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_EXPOSED: Final = b"Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id"
_ALLOWED_HEADERS: Final = (
    b"Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "
    b"Last-Event-ID, X-Request-Id"
)
_ALLOWED_METHODS: Final = b"POST, DELETE"
_PREFLIGHT_SECONDS: Final = b"600"

Headers = tuple[tuple[bytes, bytes], ...]


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without a port, can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Rules:
    """The allowed lists: exact origins (`https://host:port`) and host names; `*` allows all of either."""

    origins: frozenset[str]
    hosts: frozenset[str]

    @classmethod
    def of(cls, origins: tuple[str, ...], hosts: tuple[str, ...]) -> Rules:
        """The rules for lists as an operator writes them."""
        return cls(
            frozenset(origin.lower().rstrip("/") for origin in origins), frozenset(host.lower() for host in hosts)
        )

    def allow_host(self, header: str) -> bool:
        """Whether a `Host` header names this server; its port does not matter."""
        host = _host_of(f"//{header}")
        return host is not None and ("*" in self.hosts or is_loopback(host) or host in self.hosts)

    def allow_origin(self, header: str) -> bool:
        """Whether a request with this `Origin` header may go on."""
        if "*" in self.origins or header.lower() in self.origins:
            return True
        scheme, separator, _ = header.partition("://")
        host = _host_of(header)
        return bool(separator) and scheme.lower() in ("http", "https") and host is not None and is_loopback(host)


def _host_of(url: str) -> str | None:
    """The host of an origin or of `//authority`; None for anything that has more to it than host and port."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None or "@" in parts.netloc or parts.path or parts.query or parts.fragment:
        return None
    return host


def cors_headers(origin: str) -> Headers:
    """What a page of an allowed origin needs to read the answer."""
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    )


def preflight_headers(origin: str) -> Headers:
    """The answer to the question a browser asks before the request itself."""
    return (
        *cors_headers(origin),
        (b"access-control-allow-methods", _ALLOWED_METHODS),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    )
