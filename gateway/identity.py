"""Who answers: what the server says of itself to every client."""

from __future__ import annotations

import base64
from typing import Final

from gateway.version import VERSION
from mcp.protocol.offer import Icon, ServerInfo

#: The Greek letter on a plain ground, as an SVG file within its URL: no host has to fetch anything.
_ICON: Final = Icon(
    "data:image/svg+xml;base64,"
    + base64.b64encode(
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48">'
        b'<rect width="48" height="48" rx="9" fill="#1d3557"/>'
        b'<path d="M11 17h26M18 17v18M30 17v14q0 4 4 4" fill="none" stroke="#fff" stroke-width="4"/></svg>'
    ).decode(),
    "image/svg+xml",
    ("any",),
)


def server_info() -> ServerInfo:
    """The name, the version and the picture."""
    return ServerInfo(
        "superpi",
        "Super-Pi",
        VERSION,
        "Coding-agent tools over one workspace, under one permission policy.",
        icons=(_ICON,),
    )
