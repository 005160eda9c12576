"""The version of the installed distribution."""

from __future__ import annotations

from importlib import metadata
from typing import Final


def _installed() -> str:
    try:
        return metadata.version("superpi")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


VERSION: Final = _installed()
