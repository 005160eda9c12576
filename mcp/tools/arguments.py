"""Argument shapes that clients and models send although the schema says otherwise, and what they mean. Pure.

Normalization comes before validation: what it does not understand it leaves as it is, for the schema to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp.protocol.codec import decode
from mcp.tools.base import Normalize, as_sent

_WHOLE: Final = re.compile(r"\d{1,15}")

#: Other names of an edit's fields: camelCase, and what models learned from other tools.
_OLD: Final = ("old_text", "oldText", "old_string", "oldString")
_NEW: Final = ("new_text", "newText", "new_string", "newString")


def tolerating(
    *,
    whole: Collection[str] = (),
    blank: Collection[str] = (),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Normalize:
    """A normalization that takes other shapes of some arguments, and nulls as absent.

    `whole` may come as strings of digits, `blank` count as absent when they are empty strings, and `renamed` leads
    from another name of an argument to its own.
    """

    def normalize(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        sent = {renamed.get(name, name): value for name, value in as_sent(arguments).items()}
        return {
            name: _whole(value) if name in whole else value
            for name, value in sent.items()
            if not (name in blank and value == "")
        }

    return normalize


def normalize_edit(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of `edit` in the schema's shape (case 38: pi#7835, pi-mono#3370, pi#6278, pi#9996).

    Takes `edits` as a JSON string or as one object, each edit with other field names and extra fields, and one
    more edit as `old_text` and `new_text` beside the path.
    """
    given = dict(as_sent(arguments))
    edits = _parsed(given.pop("edits", []))
    edits = [edits] if isinstance(edits, Mapping) else edits
    if not isinstance(edits, list):
        return {**given, "edits": edits}
    beside = {name: given.pop(name) for name in (*_OLD, *_NEW) if name in given}
    return {**given, "edits": [_edit(_parsed(edit)) for edit in [*edits, *([beside] if beside else [])]]}


def _whole(value: object) -> object:
    """A string of digits as the number that it writes."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value.strip()) else value


def _parsed(value: object) -> object:
    """A string that holds a JSON object or array as that value, by the rules for messages; others as they are."""
    if not isinstance(value, str):
        return value
    parsed = decode(value.encode("utf-8", "surrogatepass"))
    return parsed if isinstance(parsed, list | dict) else value


def _edit(edit: object) -> object:
    """One edit with the schema's field names only."""
    if not isinstance(edit, Mapping):
        return edit
    named = {
        name: next((edit[other] for other in others if edit.get(other) is not None), None)
        for name, others in (("old_text", _OLD), ("new_text", _NEW))
    }
    return as_sent(named)
