"""The suite's tools that ask their client for something: data from the person, a message of its model, its roots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp.protocol.content import PromptMessage, Text, ToolResult
from mcp.protocol.questions import Elicit, Elicited, ListRoots, Question, Reply, Roots, Sample, Sampled
from mcp.tools.base import Run, Tool, ToolContext
from tests.conformance.making import said, tool


def form(message: str, **properties: Mapping[str, Any]) -> Elicit:
    """Ask for these properties, all of them required."""
    return Elicit(message, {"type": "object", "properties": properties, "required": list(properties)})


def sample(prompt: str, most: int = 100) -> Sample:
    """Ask the client's model to answer that."""
    return Sample((PromptMessage("user", Text(prompt)),), most)


_STRING: Final = {"type": "string"}
_NAME: Final = form("What is your name?", name=_STRING)
_CONFIRM: Final = form("Please confirm", ok={"type": "boolean"})
#: A default for each primitive type (SEP-1034).
_DEFAULTS: Final = form(
    "Please review these values",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


_OPTIONS: Final = ["option1", "option2", "option3"]
#: Each form of an enumeration (SEP-1330).
_ENUMS: Final = form(
    "Please choose",
    untitledSingle={"type": "string", "enum": _OPTIONS},
    titledSingle={"type": "string", "oneOf": _titled("First Option", "Second Option", "Third Option")},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    titledMulti={"type": "array", "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")}},
)


def _words(reply: Reply) -> str:
    match reply:
        case Elicited(action, content):
            return f"action={action}, content={json.dumps(content)}"
        case Sampled(message):
            return f"LLM response: {json.dumps(message)}"
        case Roots(uris):
            return f"roots={', '.join(uris)}"
        case _:
            return f"no answer: {reply.why}"


async def _answers(context: ToolContext, **questions: Question) -> ToolResult:
    replies = await context.exchange.ask(questions)
    return said("; ".join(f"{key}: {_words(reply)}" for key, reply in replies.items()))


def _asking(**questions: Question) -> Run:
    """A run that asks for all of this in one round."""

    async def run(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        return await _answers(context, **questions)

    return run


async def _sampling(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    return await _answers(context, answer=sample(arguments["prompt"]))


async def _elicitation(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    username = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    return await _answers(context, user=form(arguments["message"], username=username, email=email))


async def _two_rounds(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """The second question follows the first answer."""
    first = await context.exchange.ask({"step1": form("Step 1: What is your name?", name=_STRING)})
    second = await context.exchange.ask({"step2": form("Step 2: What is your favorite color?", color=_STRING)})
    return said(f"{_words(first['step1'])}; {_words(second['step2'])}")


async def _what_is_declared(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Asks for as much as this client can be asked."""
    questions: dict[str, Question] = {"name": _NAME, "greeting": sample("Greet me."), "roots": ListRoots()}
    return await _answers(context, **{key: one for key, one in questions.items() if context.exchange.can_ask(one)})


async def _state(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """That this comes to an end shows that the state came back as it was given."""
    replies = await context.exchange.ask({"confirm": _CONFIRM})
    return said(f"state-ok: {_words(replies['confirm'])}")


def asking_tools() -> tuple[Tool, ...]:
    """The tools: those of the handshake revisions, then those of the stateless one."""
    return (
        tool("test_sampling", "Asks the client's model.", _sampling, "prompt"),
        tool("test_elicitation", "Asks the person for a name and an address.", _elicitation, "message"),
        tool("test_elicitation_sep1034_defaults", "Asks with a default for each type.", _asking(form=_DEFAULTS)),
        tool("test_elicitation_sep1330_enums", "Asks with each form of enumeration.", _asking(form=_ENUMS)),
        tool("test_missing_capability", "Needs the client's model.", _asking(answer=sample("Say hello."))),
        tool("test_input_required_result_elicitation", "Asks for a name.", _asking(user_name=_NAME)),
        tool(
            "test_input_required_result_sampling",
            "Asks the client's model.",
            _asking(capital_question=sample("What is the capital of France?")),
        ),
        tool("test_input_required_result_list_roots", "Asks for the roots.", _asking(client_roots=ListRoots())),
        tool("test_input_required_result_request_state", "Asks, with a state.", _state),
        tool(
            "test_input_required_result_multiple_inputs",
            "Asks for three things at once.",
            _asking(user_name=_NAME, greeting=sample("Generate a greeting", 50), client_roots=ListRoots()),
        ),
        tool("test_input_required_result_multi_round", "Asks twice.", _two_rounds),
        tool("test_input_required_result_tampered_state", "Asks, with a state.", _state),
        tool("test_input_required_result_capabilities", "Asks what can be asked.", _what_is_declared),
    )
