"""The numbers that bound the tools and the HTTP transport. Each is a setting; these are the defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


class NotAboveZeroError(ValueError):
    """A number that would leave nothing: the `value` of the bound `name`."""

    def __init__(self, name: str, value: float) -> None:
        super().__init__(f"{name} must be above 0, and is {value:g}")
        self.name = name
        self.value = value


def _all_above_zero(limits: Any) -> None:
    """Raise NotAboveZeroError for the first such number."""
    for field in fields(limits):
        value = getattr(limits, field.name)
        if not value > 0:
            raise NotAboveZeroError(field.name, value)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the workspace tools; sizes in bytes, times in seconds."""

    output_lines: int = 2000
    output_bytes: int = 51_200
    grep_matches: int = 100
    grep_line_chars: int = 500
    find_results: int = 1000
    ls_entries: int = 500
    image_pixels: int = 2000
    image_bytes: int = 4_500_000
    edit_file_bytes: int = 16 * 1024 * 1024
    tool_seconds: float = 60.0
    shell_seconds: float = 120.0
    shell_seconds_max: float = 600.0
    shells: int = 8
    shells_per_principal: int = 4
    spool_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        _all_above_zero(self)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of the transport; sizes in bytes, times in seconds.

    `stream_after` is how long a call may take before its answer becomes a stream with a comment every
    `keep_alive`; `ask_seconds` is how long a call waits for an answer of the person.
    """

    body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 30.0
    stream_after: float = 10.0
    keep_alive: float = 15.0
    ask_seconds: float = 300.0

    def __post_init__(self) -> None:
        _all_above_zero(self)
