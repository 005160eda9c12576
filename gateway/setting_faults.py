"""What is wrong with a setting, in words of ours: which variable, what it must be, and what it is.

Knows no setting. Never shows the value of one that is secret, nor anything that has the form of a secret: a URL with
a password may stand in the wrong variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from mcp.limits import BoundError
from telemetry.logs import escaped
from telemetry.redaction import redact

PREFIX: Final = "SUPERPI_"
NESTED: Final = "__"
#: Characters of a value that are shown.
_MOST_SHOWN: Final = 80

_A_WHOLE_NUMBER: Final = "a whole number"
_A_NUMBER: Final = "a number"
#: What a setting must be, by the type of the fault that pydantic found.
MUST_BE: Final[Mapping[str, str]] = {
    "literal_error": "{expected}",
    "enum": "{expected}",
    "int_type": _A_WHOLE_NUMBER,
    "int_parsing": _A_WHOLE_NUMBER,
    "int_parsing_size": "a smaller number",
    "int_from_float": _A_WHOLE_NUMBER,
    "float_type": _A_NUMBER,
    "float_parsing": _A_NUMBER,
    "finite_number": _A_NUMBER,
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
    "string_type": "text",
    "string_too_short": "more than nothing",
    "string_unicode": "text in UTF-8",
    "path_type": "a path",
    "tuple_type": "a list",
    "too_short": "more than nothing",
    "value_error": "{error}",
}
_OTHERWISE: Final = "what docs/settings.md says"


def variable(*names: str) -> str:
    """The environment variable of a field, or of a field in a group."""
    return PREFIX + NESTED.join(names).upper()


def sentence(fault: Mapping[str, Any], *, secret: Collection[str]) -> str:
    """One line on one fault of pydantic's; `secret` are the fields whose values are not shown."""
    names = [step for step in fault["loc"] if isinstance(step, str)]
    context, value = fault.get("ctx", {}), fault.get("input")
    error = context.get("error")
    if isinstance(error, BoundError):
        # It is found in a group as a whole, and names its member.
        names, value, must_be = [*names, error.name], error.value, error.must_be
    else:
        must_be = MUST_BE.get(fault["type"], _OTHERWISE).format(**context)
    shown = "a value that is not shown" if names[0] in secret else _shown(value)
    return f"{variable(*names)}: must be {must_be}" + (f", got {shown}" if shown else "")


def _shown(value: Any) -> str:
    """A value as it was given, without secrets; nothing for what was not given as one."""
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str):
        return ""
    text = escaped(redact(value))
    return f"'{text[:_MOST_SHOWN]}...'" if len(text) > _MOST_SHOWN else f"'{text}'"


def unknown(environment: Iterable[str], known: Collection[str]) -> list[str]:
    """A line on each variable that looks like a setting and is none: usually a typing error."""
    names = sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)
    return [f"{name} is not a setting and has no effect{_meant(name, known)}" for name in names]


def _meant(name: str, known: Collection[str]) -> str:
    """Which setting comes nearest, if one is near. The prefix, which all have, is no nearness."""
    bare = {setting.removeprefix(PREFIX): setting for setting in known}
    near = get_close_matches(name.upper().removeprefix(PREFIX), bare, n=1)
    return f"; did you mean {bare[near[0]]}?" if near else "; docs/settings.md lists those there are"
