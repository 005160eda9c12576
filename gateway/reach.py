"""Where a command finds what it administers: in the database of the settings, or at a server's address by `--url`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Final

Run = Callable[[argparse.Namespace], int]

#: Holds the token for `--url`, unless a file does. No setting of the server.
TOKEN_VARIABLE: Final = "SUPERPI_TOKEN"  # noqa: S105 - the name of a variable


def add_run(parser: argparse.ArgumentParser, local: Run, remote: str) -> None:
    """Have the command run `local`, or what `gateway.remote_cli` has under the name `remote` where a URL is given."""
    there = parser.add_argument_group("at a server, instead of its database")
    there.add_argument("--url", help="address of the server, like https://superpi.example")
    there.add_argument(
        "--token-file", help=f"file with the token of an administrator (default: the variable {TOKEN_VARIABLE})"
    )
    parser.set_defaults(run=partial(_run, local, remote))


def _run(local: Run, remote: str, options: argparse.Namespace) -> int:
    if options.url is None:
        return local(options)
    from gateway import remote_cli

    return remote_cli.run(remote, options)
