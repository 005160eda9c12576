"""Super-Pi's MCP package: the protocol, and what the server offers through it.

The official SDK owns the same import name on PyPI. `MARKER` tells the two apart: `gateway` refuses
to start when the `mcp` it gets does not carry it (docs/decisions/0001-the-name-mcp.md).
"""

from typing import Final

MARKER: Final = "superpi"
