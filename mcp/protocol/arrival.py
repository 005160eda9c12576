"""What comes with a payload and is not part of it: the time, and the headers that repeat parts of its body.

A stateless request over HTTP says its version, method and target a second time in headers, so that what stands
between can route it (SEP-2243). A server that reads the body refuses one that does not agree with them (HDR-3).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.protocol.offer import Offer
from mcp.protocol.wire import Request

#: Method -> the parameter that `Mcp-Name` repeats (HDR-1).
NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
#: The annotation of a property whose value an `Mcp-Param-*` header repeats (HDR-6).
ANNOTATION: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NUMBER: Final = re.compile(r"-?[0-9]{1,32}(\.[0-9]{1,32})?([eE][+-]?[0-9]{1,3})?")
#: What a header may hold as it is; anything else comes in Base64 (RFC 9110 section 5.5).
_PLAIN: Final = re.compile(r"[\t -~]*")
_PREFIX, _SUFFIX = "=?base64?", "?="
_MIRRORED_TYPES: Final = frozenset({"string", "integer", "boolean"})
_EXACT: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Mirror:
    """The values of each mirroring header, in order, trimmed; `params` by the lower-case rest of the name."""

    version: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a payload came, in seconds of the epoch, and its mirror; None for a transport without headers."""

    now: float = 0.0
    mirror: Mirror | None = None


def version_fault(mirror: Mirror, claimed: str) -> str | None:
    """What is wrong with `MCP-Protocol-Version` (HM-12), if anything."""
    return _fault("MCP-Protocol-Version", mirror.version, claimed)


def routing_fault(mirror: Mirror, request: Request) -> str | None:
    """What is wrong with `Mcp-Method` or `Mcp-Name`, if anything (HDR-1 to HDR-5, HDR-11)."""
    fault = _fault("Mcp-Method", mirror.method, request.method)
    if fault is not None or request.method not in NAMED_BY:
        return fault
    target = request.params.get(NAMED_BY[request.method])
    # A request without its target is refused for that, in words that say so.
    return _fault("Mcp-Name", mirror.name, target, encoded=True) if isinstance(target, str) else None


def params_fault(mirror: Mirror, request: Request, offer: Offer) -> str | None:
    """What is wrong with the `Mcp-Param-*` headers of a tool call, if anything (HDR-7, HDR-8)."""
    arguments = request.params.get("arguments")
    for path, name in offer.mirrored.get(str(request.params.get("name")), ()):
        value = _at(arguments, path)
        given = mirror.params.get(name.lower(), ())
        if value is None:
            if given:
                return f"the header Mcp-Param-{name} repeats an argument that is not there"
        elif (fault := _fault(f"Mcp-Param-{name}", given, value, encoded=True)) is not None:
            return fault
    return None


def mirrored_properties(schema: Mapping[str, Any]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The annotated properties of a tool's schema: the path of each, and the header's name after `Mcp-Param-`.

    Raises ValueError for an annotation that would make clients drop the tool (HDR-6).
    """
    found = tuple(_annotated(schema, ()))
    names = [name.lower() for _, name in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two properties are annotated with the same {ANNOTATION}")
    if _count(schema) != len(found):
        raise ValueError(f"{ANNOTATION} is allowed only on properties that `properties` keys alone lead to")
    return found


def _annotated(schema: Mapping[str, Any], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    found: list[tuple[tuple[str, ...], str]] = []
    for key, property in schema.get("properties", {}).items():
        if not isinstance(property, Mapping):
            continue
        name = property.get(ANNOTATION)
        if name is not None:
            if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
                raise ValueError(f"{ANNOTATION} {name!r} is no header name")
            if property.get("type") not in _MIRRORED_TYPES:
                raise ValueError(f"{ANNOTATION} {name!r} stands on a property that is no string, integer or boolean")
            found.append(((*path, key), name))
        found += _annotated(property, (*path, key))
    return found


def _count(value: Any) -> int:
    """How often the annotation stands anywhere in a schema."""
    if isinstance(value, Mapping):
        return (ANNOTATION in value) + sum(_count(item) for item in value.values())
    return sum(_count(item) for item in value) if isinstance(value, list | tuple) else 0


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(key)
    return arguments


def _fault(header: str, values: tuple[str, ...], expected: Any, *, encoded: bool = False) -> str | None:
    if len(values) != 1:
        return f"send the header {header} exactly once"
    if _PLAIN.fullmatch(values[0]) is None:
        return f"the header {header} holds characters that only Base64 can carry"
    value = _decoded(values[0]) if encoded else values[0]
    if value is None:
        return f"the header {header} is not valid Base64 of UTF-8 between its markers"
    return None if _agrees(value, expected) else f"the header {header} does not say what the body says"


def _agrees(value: str, expected: Any) -> bool:
    """Whether a header's text stands for the value: integers by number, booleans as `true` and `false` (HDR-8)."""
    match expected:
        case bool():
            return value == ("true" if expected else "false")
        case int() | float():
            return _NUMBER.fullmatch(value) is not None and abs(expected) <= _EXACT and float(value) == expected
        case _:
            return bool(value == expected)


def _decoded(value: str) -> str | None:
    """The text of a header value: decoded between exact Base64 markers, else as it is (HDR-4, HDR-5)."""
    if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)) or len(value) < len(_PREFIX + _SUFFIX):
        return value
    text = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        raw = base64.b64decode(text, validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == text else None
    except (binascii.Error, ValueError):
        return None
