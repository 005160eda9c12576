"""The command `superpi`. Parses, then hands over; heavy imports wait until a command needs them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from gateway import audit_cli, grant_cli, migrate_cli, session_cli, token_cli
from gateway.version import VERSION

if TYPE_CHECKING:
    from gateway.settings import Settings

_USAGE_ERROR = 2
_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status: 0 done, 1 failed, 2 a mistake in settings or arguments."""
    options = _parser().parse_args(arguments)
    from gateway.settings import SettingsError
    from gateway.store.faults import StoreUnavailable

    try:
        return int(options.run(options))
    except SettingsError as error:
        _complain(str(error))
        return _USAGE_ERROR
    except StoreUnavailable as error:
        _complain(str(error))
        return _FAILED
    except KeyboardInterrupt:
        return 128 + 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="superpi",
        description="One URL that gives every MCP host of a team the same coding-agent tools over a workspace.",
        epilog="Settings are SUPERPI_* environment variables; docs/settings.md lists them.",
    )
    parser.add_argument("--version", action="version", version=f"superpi {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="serve MCP over HTTP, on loopback unless SUPERPI_HOST says otherwise")
    serve.add_argument("--host", help="address to listen on (SUPERPI_HOST)")
    serve.add_argument("--port", type=int, help="port to listen on, 0 for any (SUPERPI_PORT)")
    serve.add_argument("--workspace", help="folder to work in (SUPERPI_WORKSPACE)")
    serve.set_defaults(run=_serve)

    stdio = commands.add_parser("stdio", help="serve one MCP host over stdin and stdout")
    stdio.add_argument("--workspace", help="folder to work in (SUPERPI_WORKSPACE)")
    stdio.add_argument("--harness", help="harness of the direct tool calls (SUPERPI_HARNESS)")
    stdio.set_defaults(run=_stdio)
    for module in (migrate_cli, token_cli, session_cli, grant_cli, audit_cli):
        module.add_commands(commands)
    return parser


def _serve(options: argparse.Namespace) -> int:
    settings = _settings(host=options.host, port=options.port, workspace=options.workspace)
    from gateway.listener import serve

    _run(serve(settings))
    return 0


def _stdio(options: argparse.Namespace) -> int:
    settings = _settings(workspace=options.workspace, harness=options.harness)
    from mcp.stdio import claim_stdout

    lines = claim_stdout(settings.http.body_bytes)
    from gateway.local import serve_stdio

    _run(serve_stdio(settings, lines))
    sys.stdout.flush()
    return 0


def _settings(**overrides: Any) -> Settings:
    from gateway.settings import load, unknown
    from telemetry.logs import configure

    settings = load(**overrides)
    configure(settings.log_level, settings.log_format, settings.secrets)
    for line in unknown():
        _complain(line)
    return settings


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run the loop; uvloop's where it exists, for it is the faster one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def _complain(text: str) -> None:
    print("\n".join(f"superpi: {line}" for line in text.splitlines()), file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
