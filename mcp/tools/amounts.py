"""The numbers that descriptions, schemas and notices of the tools name, from the limits of this server. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """How many results a call gets: without asking, at most, and the largest number that may be asked for."""

    default: int
    most: int
    maximum: int


def count(configured: int, usual: int, lines: int) -> Count:
    """The count of a tool whose default is `configured`, who takes up to `usual`, with an output of so many `lines`.

    Asking for more than fits is no error, so the maximum can lie above what is shown at most.
    """
    maximum = max(usual, configured)
    return Count(min(configured, lines), min(maximum, lines), maximum)


def kibibytes(size: int) -> str:
    """A size in bytes in words."""
    return f"{size / 1024:g} KiB"
