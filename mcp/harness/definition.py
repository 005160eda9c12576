"""What a harness is: an id, the tools and the mode it may use, its rules, and its prompt. Pure.

A definition is a Markdown file: YAML front matter, and the system prompt as its body (docs/harnesses.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from auth.permissions import ANY_TOOL, Cap, Effect, Layer, Mode, Policy, Rule
from auth.rules import rule_problem
from mcp.harness.frontmatter import Document, Field, HarnessError, read_document

#: The tools that a harness can be given, in the order in which they are listed.
TOOL_NAMES: Final = ("read", "write", "edit", "bash", "grep", "find", "ls")
_RULE_TOOLS: Final = (*TOOL_NAMES, ANY_TOOL)
_MODES: Final = {mode.label: mode for mode in Mode}
_EFFECTS: Final = {effect.value: effect for effect in Effect}

_REQUIRED: Final = ("id", "title", "description", "tools", "mode")
_KEYS: Final = (*_REQUIRED, "rules", "model", "arguments")
_RULE_KEYS: Final = ("tool", "match", "effect")
_ARGUMENT_KEYS: Final = ("name", "description", "required", "values")

_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLACEHOLDER: Final = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\}\}")
#: What stands for an argument that was not given.
NOT_GIVEN: Final = "(not given)"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the prompt. `values` are offered when a client asks to complete it."""

    name: str
    description: str
    required: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Harness:
    """One harness. `model` None means the configured one; `source` is the file it came from, for messages."""

    id: str
    title: str
    description: str
    tools: frozenset[str]
    mode: Mode
    body: str
    source: str
    rules: tuple[Rule, ...] = ()
    model: str | None = None
    arguments: tuple[Argument, ...] = ()

    def policy(self, caps: Iterable[Cap] = (), rules: Iterable[Rule] = ()) -> Policy:
        """The policy of a connection in this harness, under further caps and rules."""
        return Policy(self.id, self.tools, (Cap(Layer.HARNESS, self.mode), *caps), (*self.rules, *rules))

    def render(self, arguments: Mapping[str, str]) -> str:
        """The prompt with its placeholders filled, in one pass, so that text of an argument is never expanded.

        An argument that was not given reads `(not given)`; one that no placeholder names is added at the end.
        """
        text = _PLACEHOLDER.sub(lambda found: arguments.get(found[1], NOT_GIVEN), self.body)
        named = set(_PLACEHOLDER.findall(self.body))
        extra = [
            f"{argument.name}: {arguments[argument.name]}"
            for argument in self.arguments
            if argument.name in arguments and argument.name not in named
        ]
        return "\n\n".join([text, *extra])


def parse_harness(content: bytes, source: str) -> Harness:
    """Read a definition. Raises `HarnessError`, which names `source` and the line."""
    document = read_document(content, source)
    fields = document.front.fields(_KEYS, _REQUIRED)
    arguments = _arguments(fields["arguments"]) if "arguments" in fields else ()
    return Harness(
        id=_matching(fields["id"], _ID, "small letters, digits and hyphens, at most 64, no hyphen first"),
        title=fields["title"].text(),
        description=fields["description"].text(),
        tools=_tools(fields["tools"]),
        mode=_MODES[_one_of(fields["mode"], "mode", _MODES)],
        body=_body(document, arguments),
        source=source,
        rules=tuple(_rule(item) for item in fields["rules"].items()) if "rules" in fields else (),
        model=fields["model"].text() if "model" in fields else None,
        arguments=arguments,
    )


def _tools(field: Field) -> frozenset[str]:
    found: list[str] = []
    for item in field.items():
        name = _one_of(item, "tool", TOOL_NAMES)
        if name in found:
            item.fail(f"the tool {name!r} is listed twice")
        found.append(name)
    return frozenset(found)


def _rule(field: Field) -> Rule:
    fields = field.fields(_RULE_KEYS, _RULE_KEYS)
    rule = Rule(
        tool=_one_of(fields["tool"], "tool", _RULE_TOOLS),
        match=fields["match"].text(),
        effect=_EFFECTS[_one_of(fields["effect"], "effect", _EFFECTS)],
    )
    if (problem := rule_problem(rule)) is not None:
        fields["match"].fail(problem)
    return rule


def _arguments(field: Field) -> tuple[Argument, ...]:
    found: dict[str, Argument] = {}
    for item in field.items():
        fields = item.fields(_ARGUMENT_KEYS, ("name", "description"))
        argument = Argument(
            name=_matching(fields["name"], _NAME, "letters, digits, hyphens and underscores, a letter first"),
            description=fields["description"].text(),
            required="required" in fields and fields["required"].flag(),
            values=tuple(value.text() for value in fields["values"].items()) if "values" in fields else (),
        )
        if argument.name in found:
            fields["name"].fail(f"the argument {argument.name!r} is defined twice")
        found[argument.name] = argument
    return tuple(found.values())


def _body(document: Document, arguments: tuple[Argument, ...]) -> str:
    file = document.front.file
    if not document.body.strip():
        raise HarnessError(file, document.body_line, "no prompt follows the front matter")
    known = [argument.name for argument in arguments]
    for placeholder in _PLACEHOLDER.finditer(document.body):
        if placeholder[1] not in known:
            line = document.body_line + document.body.count("\n", 0, placeholder.start())
            listed = ", ".join(known) or "none"
            raise HarnessError(file, line, f"no argument is called {placeholder[1]!r}; the arguments are {listed}")
    return document.body


def _matching(field: Field, pattern: re.Pattern[str], wanted: str) -> str:
    text = field.text()
    if not pattern.fullmatch(text):
        field.fail(f"{field.name} {text!r} is not made of {wanted}")
    return text


def _one_of(field: Field, what: str, known: Iterable[str]) -> str:
    text = field.text()
    if text not in known:
        field.fail(f"unknown {what} {text!r}; known are {', '.join(known)}")
    return text
