"""U+0000 in a message: where it spoils the message, and where its sender can mend it.

No tool, database or file system is ever given one. A string of a tool's arguments was written by a model, which reads
the results of its calls and no errors of the protocol (SEP-1303), so that one is answered like any other fault in the
arguments. Everywhere else, in keys too, it is a program's mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from mcp.protocol.places import place

_CALL: Final = "tools/call"
_ARGUMENTS: Final = ("params", "arguments")
_MOST_FAULTS: Final = 10


def faults_of_arguments(message: Any) -> tuple[str, ...] | None:
    """What is wrong with the arguments that a message calls a tool with, one sentence for each string with U+0000.

    None where one stands anywhere else. `message` is JSON as it was decoded, so it is not deep.
    """
    places = _places(message, ())
    if not isinstance(message, dict) or message.get("method") != _CALL:
        return () if next(places, None) is None else None
    faults = []
    for steps in places:
        if steps is None or steps[:2] != _ARGUMENTS:
            return None
        faults.append(steps[2:])
    return tuple(f"{place(steps)}: U+0000 is not allowed, leave it out" for steps in islice(faults, _MOST_FAULTS))


def _places(value: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...] | None]:
    """The place of every string that holds U+0000; None for a key, which has no place that could be told."""
    if isinstance(value, str):
        if "\x00" in value:
            yield steps
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\x00" in key:
                yield None
            yield from _places(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*steps, index))
