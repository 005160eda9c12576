"""One MCP host on stdin and stdout: the services of a local user, and the stdio transport over them."""

from __future__ import annotations

from auth.caller import ANONYMOUS
from gateway.bootstrap import build
from gateway.settings import Settings
from mcp.stdio import Lines, Stdio


async def serve_stdio(settings: Settings, lines: Lines) -> None:
    """Serve until the end of input."""
    services = await build(settings, local=True)
    try:
        connection = Stdio(services.engine, services.performer, lines, principal=ANONYMOUS, harness=settings.harness)
        await connection.serve()
    finally:
        await services.close()
