"""Faults of an input in words that say what to do, from what pydantic found. Never shows what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: Faults that an answer names; whoever sent more begins with these.
MOST: Final = 20
#: Characters of the place of a fault, which may be a key of the sender's.
_LONGEST_PLACE: Final = 100

_SENTENCES: Final[Mapping[str, str]] = {
    "missing": "This is required.",
    "extra_forbidden": "There is no such field here. Leave it out.",
    "value_error": "This {error}.",
    "model_attributes_type": "Send a JSON object.",
}


def described(found: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], ...]:
    """Each fault with its place: a JSON Pointer into the body, or the name of a parameter."""
    return tuple(_place(fault["loc"]) | {"detail": _sentence(fault)} for fault in found[:MOST])


def _place(steps: Sequence[str | int]) -> dict[str, str]:
    where, *inner = steps
    if where != "body":
        return {"parameter": ".".join(map(str, inner))[:_LONGEST_PLACE]}
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in inner)
    return {"pointer": "".join(f"/{step}" for step in escaped)[:_LONGEST_PLACE]}


def _sentence(fault: Mapping[str, Any]) -> str:
    if (sentence := _SENTENCES.get(fault["type"])) is not None:
        return sentence.format(**fault.get("ctx", {}))
    return f"{fault['msg'].replace('Input should', 'This must')}."
