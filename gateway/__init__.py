"""Hosts: the listener, the wiring, persistence and administration.

The only package that puts the others together. It refuses to load beside a foreign `mcp` package.
"""

import mcp

if getattr(mcp, "MARKER", None) != "superpi":
    raise ImportError(
        "the imported 'mcp' package is not Super-Pi's own (the official MCP SDK uses the same name). "
        "Install superpi into an environment of its own: 'pipx install superpi' or 'uv tool install superpi'."
    )
