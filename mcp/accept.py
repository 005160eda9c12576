"""Content negotiation of the HTTP transport: which of the two reply forms a client takes. Pure."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Final

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class Form(enum.Flag):
    """The reply forms that a client accepts."""

    NONE = 0
    JSON = enum.auto()
    EVENTS = enum.auto()


_FORMS: Final = {
    JSON: Form.JSON,
    "application/*": Form.JSON,
    EVENTS: Form.EVENTS,
    "text/*": Form.EVENTS,
    "*/*": Form.JSON | Form.EVENTS,
}


#: A client sends the same two headers with each of its requests.
_remembered: Final = lru_cache(maxsize=128)


@_remembered
def accepted(header: str | None) -> Form:
    """What an `Accept` header takes (RFC 9110 section 12.5.1); everything when there is none.

    A range with `q=0` takes back what a wider one gives.
    """
    if header is None or not header.strip():
        return Form.JSON | Form.EVENTS
    given = refused = Form.NONE
    for part in header.split(","):
        name, *parameters = (piece.strip() for piece in part.lower().split(";"))
        form = _FORMS.get(name, Form.NONE)
        if any(_is_zero(parameter) for parameter in parameters):
            refused |= form if "*" not in name else Form.NONE
        else:
            given |= form
    return given & ~refused


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0").rstrip(".") in ("", "0") and value.strip() != ""


@_remembered
def is_json(content_type: str | None) -> bool:
    """Whether a `Content-Type` is JSON in UTF-8."""
    if content_type is None:
        return False
    name, *parameters = (piece.strip().lower() for piece in content_type.split(";"))
    charsets = [parameter[8:].strip('"') for parameter in parameters if parameter.startswith("charset=")]
    return name == JSON and all(charset in ("utf-8", "utf8") for charset in charsets)
