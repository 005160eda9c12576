"""The numbers that bound the tools, the HTTP transport and its callers. Each is a setting; these are the defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


class BoundError(ValueError):
    """A number that bounds nothing sensibly: the `value` of the bound `name`, which `must_be` something else."""

    def __init__(self, name: str, value: float, must_be: str) -> None:
        super().__init__(f"{name} must be {must_be}, and is {value:g}")
        self.name = name
        self.value = value
        self.must_be = must_be


def _all_above_zero(limits: Any) -> None:
    """Raise BoundError for the first number that would leave nothing."""
    for field in fields(limits):
        value = getattr(limits, field.name)
        if not value > 0:
            raise BoundError(field.name, value, "above 0")


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
    `keep_alive`; `ask_seconds` is how long a call waits for an answer of the person. `header_*` bound the head of a
    request; `idle_seconds` is how long a connection may rest between two.
    """

    body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 30.0
    stream_after: float = 10.0
    keep_alive: float = 15.0
    ask_seconds: float = 300.0
    header_bytes: int = 16 * 1024
    header_fields: int = 100
    header_seconds: float = 10.0
    idle_seconds: float = 75.0

    def __post_init__(self) -> None:
        _all_above_zero(self)


@dataclass(frozen=True, slots=True)
class Rates:
    """How much each may ask for in any `seconds`; 0 bounds nothing.

    `calls` are requests of a principal that make the server work, `runs` the commands among them, `credentials` the
    wrong ones of an address.
    """

    seconds: int = 10
    calls: int = 10_000
    runs: int = 1000
    credentials: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0:
                raise BoundError(field.name, value, "0 or more")
        if self.seconds == 0:
            raise BoundError("seconds", 0, "above 0")
