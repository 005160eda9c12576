"""Faults of an input in words that say what to do, from the types of what pydantic found.

Never shows what was sent, nor a word of the library's: those change with it, and speak of Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: Faults that an answer names; whoever sent more begins with these.
MOST: Final = 20
#: Characters of the place of a fault, which may be a key of the sender's.
_LONGEST_PLACE: Final = 100

#: Of a parameter of the query that is there twice.
REPEATED: Final = "Give this once."
#: Of a body where there is nothing to say in one.
UNASKED: Final = "Send no body, or {}: there is nothing to be said here."
#: Of a type that has no sentence. A test sees to it that no model of this interface can come to it.
OTHERWISE: Final = "This cannot be taken. The OpenAPI document says what can."

_AN_OBJECT: Final = "This must be a JSON object."
_A_WHOLE_NUMBER: Final = "This must be a whole number."
_A_NUMBER: Final = "This must be a number."
_TRUE_OR_FALSE: Final = "This must be true or false."
_A_TIME: Final = "This must be a date and time by RFC 3339, as in 2026-01-31T12:00:00Z."

#: A sentence by the type of the fault; what stands in braces comes from the model and never from what was sent.
SENTENCES: Final[Mapping[str, str]] = {
    "missing": "This is required.",
    "extra_forbidden": "There is no such field here. Leave it out.",
    "value_error": "This {error}.",
    "enum": "This must be {expected}.",
    "literal_error": "This must be {expected}.",
    "model_type": _AN_OBJECT,
    "model_attributes_type": _AN_OBJECT,
    "dict_type": _AN_OBJECT,
    "list_type": "This must be a JSON array.",
    "too_short": "Give at least {min_length} here.",
    "too_long": "Give at most {max_length} here.",
    "string_type": "This must be a string.",
    "string_unicode": "This must be text in UTF-8.",
    "string_too_short": "The shortest length of this is {min_length}.",
    "string_too_long": "This must have at most {max_length} characters.",
    "int_type": _A_WHOLE_NUMBER,
    "int_parsing": _A_WHOLE_NUMBER,
    "int_from_float": _A_WHOLE_NUMBER,
    "int_parsing_size": "This number is too large.",
    "float_type": _A_NUMBER,
    "float_parsing": _A_NUMBER,
    "finite_number": _A_NUMBER,
    "greater_than": "This must be more than {gt}.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than": "This must be less than {lt}.",
    "less_than_equal": "This must be at most {le}.",
    "bool_type": _TRUE_OR_FALSE,
    "bool_parsing": _TRUE_OR_FALSE,
    "datetime_type": _A_TIME,
    "datetime_parsing": _A_TIME,
    "datetime_from_date_parsing": _A_TIME,
    "datetime_object_invalid": _A_TIME,
    "timezone_aware": _A_TIME,
}


def described(found: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], ...]:
    """Each fault with its place: a JSON Pointer into the body, or the name of a parameter."""
    return tuple(_place(fault["loc"]) | {"detail": _sentence(fault)} for fault in found[:MOST])


def parameter(name: str, detail: str) -> dict[str, str]:
    """The fault of a parameter of the query or the path."""
    return {"parameter": name[:_LONGEST_PLACE], "detail": detail}


def _place(steps: Sequence[str | int]) -> dict[str, str]:
    where, *inner = steps
    if where != "body":
        return {"parameter": ".".join(map(str, inner))[:_LONGEST_PLACE]}
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in inner)
    return {"pointer": "".join(f"/{step}" for step in escaped)[:_LONGEST_PLACE]}


def _sentence(fault: Mapping[str, Any]) -> str:
    return SENTENCES.get(fault["type"], OTHERWISE).format(**fault.get("ctx", {}))
