"""JSON of other people's making (keys and claims of an issuer), read strictly. Pure.

A key that stands twice means one thing to one reader and another to the next, which is how a signature is got around.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

Json = dict[str, Any]
#: Nesting that no key and no claim needs; deeper texts could exhaust the stack.
MAX_DEPTH: Final = 16


class StrictError(ValueError):
    """The text is no JSON object that is taken; the message says why, without the text."""


def read_object(raw: bytes) -> Json:
    """The JSON object that `raw` holds. Raises StrictError, and nothing else, whatever the bytes."""
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise StrictError("nested too deeply")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except StrictError:
        raise
    except (ValueError, RecursionError):
        raise StrictError("no JSON") from None
    if not isinstance(value, dict):
        raise StrictError("no JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise StrictError("a key stands twice")
    return found


def _no_constant(_name: str) -> NoReturn:
    raise StrictError("a number is not finite")


def _depth(raw: bytes) -> int:
    """At least the depth of nesting: brackets within strings count too."""
    depth = deepest = 0
    for byte in raw:
        if byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest
