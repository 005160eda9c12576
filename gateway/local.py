"""One MCP host on stdin and stdout: the services of a local user, and the stdio transport over them.

Nobody waits for a database here: the host shows its user what the process says when it ends, and starts it anew.
"""

from __future__ import annotations

import asyncio
import signal

from auth.caller import ANONYMOUS
from gateway.bootstrap import build
from gateway.settings import Settings
from mcp.stdio import Lines, Stdio, StdioServices


async def serve_stdio(settings: Settings, lines: Lines) -> None:
    """Serve until the end of input, or until the host terminates the process. Raises StoreUnavailable at once."""
    services = await build(settings, local=True)
    try:
        await services.opening.once()
        parts = StdioServices(services.offering, services.announcer, settings.http.ask_seconds)
        connection = Stdio(parts, lines, principal=ANONYMOUS, harness=settings.harness)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, connection.stop)
        await connection.serve()
    finally:
        await services.close()
