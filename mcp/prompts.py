"""Prompts: one a harness, and an alias. The text is the harness's own, its placeholders filled. Knows no client."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from mcp.entries import PromptEntry
from mcp.exchange import Exchange
from mcp.faults import Fault
from mcp.harness.definition import Argument, Harness
from mcp.harness.registry import Registry
from mcp.protocol.content import PromptMessage, Text
from mcp.protocol.effects import NotFound, Prompt
from mcp.protocol.offer import PromptArgument, PromptSpec

#: Further names of prompts: name to harness id and title. A harness id holds no underscore, so none can clash.
ALIASES: Final = {"plan_architecture": ("super-pi-planner", "Plan an architecture")}
#: An argument of this name takes a harness id.
_HARNESS_ARGUMENT: Final = "harness"


def prompt_entries(registry: Registry) -> tuple[PromptEntry, ...]:
    """The prompts with what makes their messages."""
    return tuple(
        PromptEntry(spec, partial(_render, registry, spec.name), partial(complete_prompt_argument, registry, spec.name))
        for spec in prompt_specs(registry)
    )


def prompt_specs(registry: Registry) -> tuple[PromptSpec, ...]:
    """The prompts that clients are offered: one a harness in the registry's order, then the aliases."""
    own = [_spec(harness.id, harness.title, harness) for harness in registry]
    aliases = [
        _spec(name, title, harness)
        for name, (id, title) in ALIASES.items()
        if (harness := registry.get(id)) is not None
    ]
    return (*own, *aliases)


def render_prompt(
    registry: Registry, name: str, arguments: Mapping[str, str]
) -> tuple[str, tuple[PromptMessage, ...]] | Fault:
    """The description and the messages of a prompt; a Fault for a name or arguments that it does not take (PR-3)."""
    harness = _harness(registry, name)
    if harness is None:
        listed = ", ".join(spec.name for spec in prompt_specs(registry))
        return Fault(f"There is no prompt called {name!r}. The prompts are {listed}.")
    if (fault := _mistaken(name, harness.arguments, arguments)) is not None:
        return fault
    return harness.description, (PromptMessage("user", Text(harness.render(arguments))),)


def complete_prompt_argument(
    registry: Registry, name: str, argument: str, value: str, context: Mapping[str, str]
) -> tuple[str, ...] | None:
    """What the argument may be given that begins with `value`, whatever the case; None for an unknown one.

    `context` holds the arguments that are filled in already (CP-3); no completion of ours depends on them.
    """
    del context
    harness = _harness(registry, name)
    known = None if harness is None else next((one for one in harness.arguments if one.name == argument), None)
    if known is None:
        return None
    values = known.values or (registry.ids if known.name == _HARNESS_ARGUMENT else ())
    return tuple(offered for offered in values if offered.casefold().startswith(value.casefold()))


async def _render(registry: Registry, name: str, arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    del exchange
    rendered = render_prompt(registry, name, arguments)
    return NotFound(rendered.message) if isinstance(rendered, Fault) else Prompt(*rendered)


def _harness(registry: Registry, name: str) -> Harness | None:
    return registry.get(ALIASES[name][0] if name in ALIASES else name)


def _spec(name: str, title: str, harness: Harness) -> PromptSpec:
    arguments = tuple(PromptArgument(one.name, one.description, one.required) for one in harness.arguments)
    return PromptSpec(name, title, harness.description, arguments)


def _mistaken(name: str, known: tuple[Argument, ...], given: Mapping[str, str]) -> Fault | None:
    """What is wrong with the arguments, if anything. A required one that is blank is as good as missing."""
    listed = ", ".join(argument.name for argument in known) or "none"
    if unknown := sorted(set(given) - {argument.name for argument in known}):
        return Fault(f"The prompt {name} has no argument {', '.join(unknown)}. Its arguments: {listed}.")
    if missing := [one.name for one in known if one.required and not given.get(one.name, "").strip()]:
        return Fault(f"The prompt {name} needs {', '.join(missing)}. Its arguments: {listed}.")
    return None
