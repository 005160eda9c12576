"""What a server may ask of a client while it answers: questions as values, what they need, and what came back.

Knows no transport: a handshake revision carries a question as a request of its own, a stateless one as an input
that a result requires. Both read from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, assert_never

from mcp.protocol.content import PromptMessage
from mcp.protocol.revisions import Revision

#: The first revision in which a server may elicit anything, and the first that tells forms from URLs (EL-1, EL-5).
ELICITATION_SINCE: Final = Revision.R2025_06_18
MODES_SINCE: Final = Revision.R2025_11_25


@dataclass(frozen=True, slots=True)
class Elicit:
    """Ask the person for data by a form. `schema` is a flat object of primitives (EL-4)."""

    message: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ElicitUrl:
    """Ask the person to open a URL. `id` names the question where a revision has a place for it (EL-5, EL-6)."""

    message: str
    url: str
    id: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Ask the client's own model for one message."""

    messages: tuple[PromptMessage, ...]
    max_tokens: int
    system: str = ""


@dataclass(frozen=True, slots=True)
class ListRoots:
    """Ask which folders the client works in."""


Question = Elicit | ElicitUrl | Sample | ListRoots


@dataclass(frozen=True, slots=True)
class Elicited:
    """What the person did with an elicitation; `content` is there when they accepted a form."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the client's model said, as the client sent it."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Roots:
    """The URIs of the client's roots."""

    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer that can be used came: the client refused, failed, or sent something else.

    `why` ends a sentence to whoever wrote the client; of what was sent it shows a few characters at most.
    """

    why: str


Reply = Elicited | Sampled | Roots | Unanswered
#: Characters of what a client sent that are shown to it again.
_MOST_SHOWN: Final = 48

_ACTIONS: Final[Mapping[str, Literal["accept", "decline", "cancel"]]] = {
    "accept": "accept",
    "decline": "decline",
    "cancel": "cancel",
}


def lacking(question: Question, capabilities: Mapping[str, Any], revision: Revision) -> Mapping[str, Any] | None:
    """What the client would have to declare before it may be asked, as `ClientCapabilities`; None when it has.

    An elicitation capability without modes is forms alone (EL-1).
    """
    match question:
        case Elicit():
            declared = capabilities.get("elicitation")
            forms = isinstance(declared, dict) and (revision < MODES_SINCE or not declared or "form" in declared)
            return None if forms and revision >= ELICITATION_SINCE else {"elicitation": {}}
        case ElicitUrl():
            declared = capabilities.get("elicitation")
            urls = isinstance(declared, dict) and "url" in declared and revision >= MODES_SINCE
            return None if urls else {"elicitation": {"url": {}}}
        case Sample():
            return None if isinstance(capabilities.get("sampling"), dict) else {"sampling": {}}
        case ListRoots():
            return None if isinstance(capabilities.get("roots"), dict) else {"roots": {}}
        case _:
            assert_never(question)


def read(question: Question, result: Any) -> Reply:
    """What a client's result says to the question; whatever does not fit it is no answer (EL-8)."""
    if not isinstance(result, dict):
        return Unanswered("the result is not an object")
    match question:
        case Elicit(schema=schema):
            return _elicited(result, schema)
        case ElicitUrl():
            return _elicited(result, {})
        case Sample():
            fits = isinstance(result.get("content"), dict | list) and isinstance(result.get("role"), str)
            return Sampled(result) if fits else Unanswered("the result is no message")
        case ListRoots():
            return _roots(result)
        case _:
            assert_never(question)


def _elicited(result: Mapping[str, Any], schema: Mapping[str, Any]) -> Reply:
    sent = result.get("action")
    action = _ACTIONS.get(sent) if isinstance(sent, str) else None
    if action is None:
        return Unanswered(f"the action is {shown(sent)}, not one of {_either(_ACTIONS)}")
    if action != "accept":
        return Elicited(action)
    content = result.get("content", {})
    if not isinstance(content, dict):
        return Unanswered(f"the content is {shown(content)}, not an object")
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in content:
            return Unanswered(f"the content lacks {name}, {_wanted(properties.get(name, {}))}")
    for name, property in properties.items():
        if name in content and not _fits(content[name], property):
            return Unanswered(f"the content's {name} is {shown(content[name])}, not {_wanted(property)}")
    return Elicited(action, content)


def right_form(question: Question) -> str:
    """What an answer to the question looks like, as a sentence for whoever writes a client."""
    others = 'or {"action": "decline"} or {"action": "cancel"}'
    match question:
        case Elicit(schema=schema):
            fields = schema.get("properties", {})
            content = ", ".join(f"{json.dumps(name)}: <{_wanted(property)}>" for name, property in fields.items())
            return f'Answer {{"action": "accept", "content": {{{content}}}}}, {others}.'
        case ElicitUrl():
            return f'Answer {{"action": "accept"}}, {others}.'
        case Sample():
            return 'Answer {"role": "assistant", "content": {...}, "model": "..."}.'
        case ListRoots():
            return 'Answer {"roots": [{"uri": "file:///..."}]}.'
        case _:
            assert_never(question)


def shown(value: Any) -> str:
    """What a client sent, in at most about 50 printable characters: text and numbers as JSON, the rest by its kind."""
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            text = json.dumps(value[:_MOST_SHOWN])
            return text if len(text) <= _MOST_SHOWN + 2 and len(value) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def _wanted(property: Mapping[str, Any]) -> str:
    """What a property takes, in words."""
    listed = _listed(property)
    return f"a value of type {property.get('type')}" if listed is None else f"one of {_either(listed)}"


def _either(choices: Iterable[Any]) -> str:
    return ", ".join(json.dumps(choice) for choice in choices)


_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
}


def _fits(value: Any, property: Mapping[str, Any]) -> bool:
    """Whether a value has the type of its property, and is one of the listed ones where there is a list."""
    kind = property.get("type")
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, _TYPES.get(str(kind), object)):
        return False
    listed = _listed(property)
    return listed is None or value in listed


def _listed(property: Mapping[str, Any]) -> tuple[Any, ...] | None:
    if "enum" in property:
        return tuple(property["enum"])
    if "oneOf" in property:
        return tuple(one["const"] for one in property["oneOf"])
    return None


def _roots(result: Mapping[str, Any]) -> Reply:
    roots = result.get("roots")
    if not isinstance(roots, list) or not all(
        isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots
    ):
        return Unanswered("the roots are not a list of objects with a uri")
    return Roots(tuple(root["uri"] for root in roots))
