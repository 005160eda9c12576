"""The one JSON parser and encoder.

Strict: UTF-8 only, at most 64 levels deep, no NaN or infinity, integers within 64 bits, no U+0000, no duplicate
keys. `msgspec` reads the text; what it would let pass is looked for only in texts that can hold it, so that an
ordinary message costs one pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

MAX_DEPTH: Final = 64
_INTEGERS: Final = range(-(2**63), 2**63)
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class NotJson:
    """Why a text is not JSON that this server takes, in words for its sender."""

    why: str


@dataclass(frozen=True, slots=True)
class HoldsNul(NotJson):
    """Why a text is refused that would be taken but for U+0000 in its strings; `value` is what it holds."""

    value: Any


def decode(raw: bytes) -> Any | NotJson:
    """The value that `raw` holds, or why it is refused. Never raises, whatever the bytes."""
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        return NotJson(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value = _decode(raw)
    except UnicodeDecodeError:
        return NotJson("not valid UTF-8")
    except (msgspec.MsgspecError, RecursionError) as error:
        return NotJson("half of a surrogate pair is no character" if _is_lone_surrogate(raw) else str(error))
    if _LONG_NUMBER.search(raw) and _holds(value, _is_wide_integer):
        return NotJson("an integer is outside the 64-bit range")
    # A colon that is no key's may stand in a string; only then is the slower look needed.
    if raw.count(b":") != _keys(value) and _has_duplicate_keys(raw):
        return NotJson("an object has the same key twice")
    if b"\\u0000" in raw and _holds(value, _is_nul_text):
        return HoldsNul("U+0000 is not allowed in strings", value)
    return value


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON of a value of JSON types (and `msgspec.Raw` for parts encoded before)."""
    return _encode(value)


def canonical(value: Any) -> bytes:
    """JSON in which equal values look equal, whatever the order of their keys."""
    return _encode_sorted(value)


def _is_lone_surrogate(raw: bytes) -> bool:
    """Whether a text that `msgspec` refused is one that only an unpaired surrogate escape spoils."""
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return re.search(rb"\\u[dD][89a-fA-F]", raw) is not None


def _depth(raw: bytes) -> int:
    """The deepest nesting of brackets outside strings."""
    depth = deepest = 0
    in_string = escaped = False
    for byte in raw:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _holds(value: Any, predicate: Callable[[Any], bool]) -> bool:
    """Whether any scalar or key below `value` satisfies `predicate`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif predicate(item):
            return True
    return False


def _is_nul_text(value: Any) -> bool:
    return isinstance(value, str) and "\x00" in value


def _is_wide_integer(value: Any) -> bool:
    return isinstance(value, int) and value not in _INTEGERS


def _keys(value: Any) -> int:
    """How many keys the objects below `value` have together."""
    count = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            count += len(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return count


def _has_duplicate_keys(raw: bytes) -> bool:
    found = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        pairs_as_dict = dict(pairs)
        found = found or len(pairs_as_dict) != len(pairs)
        return pairs_as_dict

    json.loads(raw, object_pairs_hook=collect)
    return found
