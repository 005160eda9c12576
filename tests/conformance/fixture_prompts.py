"""The suite's prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp.entries import PromptEntry
from mcp.exchange import Exchange
from mcp.protocol.content import Block, Embedded, Image, PromptMessage, Text, TextContents
from mcp.protocol.effects import NotFound, Prompt
from mcp.protocol.offer import PromptArgument, PromptSpec
from mcp.protocol.questions import Elicited
from tests.conformance.asking_tools import form
from tests.conformance.making import PNG

#: What an argument is offered.
_OFFERED: Final = ("testValue1", "testValue2", "paris")


def _prompt(*blocks: Block) -> Prompt:
    return Prompt("A prompt of the suite.", tuple(PromptMessage("user", block) for block in blocks))


async def _simple(arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    return _prompt(Text("This is a simple prompt for testing."))


async def _filled(arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    return _prompt(Text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))


async def _embedded(arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    inside = TextContents(arguments["resourceUri"], "Embedded resource content for testing.", "text/plain")
    return _prompt(Embedded(inside), Text("Please process the embedded resource above."))


async def _picture(arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    return _prompt(Image(PNG, "image/png"), Text("Please analyze the image above."))


async def _asking(arguments: Mapping[str, str], exchange: Exchange) -> Prompt | NotFound:
    question = form("What context should the prompt use?", context={"type": "string"})
    reply = (await exchange.ask({"user_context": question}))["user_context"]
    if isinstance(reply, Elicited) and reply.action == "accept":
        return _prompt(Text(f"Use this context: {reply.content['context']}"))
    return NotFound("Without a context there is no prompt.")


def _complete(argument: str, value: str, context: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(offered for offered in _OFFERED if offered.startswith(value))


def _spec(name: str, *needs: str) -> PromptSpec:
    arguments = tuple(PromptArgument(need, "An argument for testing", required=True) for need in needs)
    return PromptSpec(name, name, "A prompt of the suite.", arguments)


def prompts() -> tuple[PromptEntry, ...]:
    """The prompts."""
    return (
        PromptEntry(_spec("test_simple_prompt"), _simple, _complete),
        PromptEntry(_spec("test_prompt_with_arguments", "arg1", "arg2"), _filled, _complete),
        PromptEntry(_spec("test_prompt_with_embedded_resource", "resourceUri"), _embedded, _complete),
        PromptEntry(_spec("test_prompt_with_image"), _picture, _complete),
        PromptEntry(_spec("test_input_required_result_prompt"), _asking, _complete),
    )


def further_prompt() -> PromptEntry:
    """One that is there now and then, so that the list changes."""
    return PromptEntry(_spec("test_further_prompt"), _simple, _complete)
