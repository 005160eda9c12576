"""An offer for tests of the engine: small, with every kind of thing in it."""

from collections.abc import Mapping
from typing import Any

from mcp.protocol.content import BlobContents, Image, PromptMessage, ResourceLink, Text, TextContents, ToolResult
from mcp.protocol.effects import (
    CallTool,
    Complete,
    Completion,
    Done,
    Effect,
    GetPrompt,
    Listen,
    ListResources,
    NotFound,
    Prompt,
    ReadResource,
    ResourcePage,
    Subscribe,
    Value,
)
from mcp.protocol.engine import Engine
from mcp.protocol.offer import (
    Accepted,
    Announced,
    Offer,
    PromptArgument,
    PromptSpec,
    Rejected,
    ResourceSpec,
    ServerInfo,
    TemplateSpec,
    ToolAnnotations,
    ToolSpec,
)
from mcp.protocol.revisions import EVERY

READ_ONLY = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tool(name: str) -> ToolSpec:
    return ToolSpec(name, name.title(), f"The tool {name}.", SCHEMA, SCHEMA, READ_ONLY)


def check(arguments: Mapping[str, Any]) -> Accepted | Rejected:
    if isinstance(arguments.get("text"), str):
        return Accepted(arguments)
    return Rejected(('"text" is a required property',))


OFFER = Offer(
    ServerInfo("superpi", "Super-Pi", "1.0", "A server.", "https://example.org"),
    instructions="Be careful.",
    tools=(tool("echo"), tool("rich")),
    prompts=(PromptSpec("plan", "Plan", "Plan it.", (PromptArgument("goal", "What for.", required=True),)),),
    resources=(ResourceSpec("superpi://workspace/context", "context", "Context", "All of it.", "text/markdown"),),
    templates=(TemplateSpec("superpi://conversation/{id}/transcript", "transcript", "T", "One.", "application/jsonl"),),
    checks={"echo": check, "rich": check},
    announced=Announced(prompts=True, updates=True),
    logging=EVERY,
)
ENGINE = Engine(OFFER, (b"k" * 32,))
CONVERSATIONS = tuple(
    ResourceSpec(f"superpi://conversation/{n}/transcript", f"c{n}", f"C{n}", "One.", "application/jsonl", size=n)
    for n in range(5)
)


def perform(effect: Effect) -> Value:
    """The world of these tests: a function of the effect alone."""
    match effect:
        case CallTool(name="echo", arguments={"text": text}):
            return ToolResult((Text(text),), {"text": text})
        case CallTool(arguments={"text": text}):
            blocks = (Text(text), Image("aGk=", "image/png"), ResourceLink("file:///a", "a", title="A"))
            return ToolResult(blocks, {"text": text}, is_error=True, meta={"io.superpi/refusal": {"tool": "rich"}})
        case ReadResource(uri="superpi://workspace/context" as uri):
            return (TextContents(uri, "# Context", "text/markdown"), BlobContents(uri, "aGk="))
        case ReadResource(uri=uri):
            return NotFound(f"There is no resource {uri}.")
        case ListResources(after=after, limit=limit):
            start = int(after or 0)
            end = start + limit
            return ResourcePage(CONVERSATIONS[start:end], str(end) if end < len(CONVERSATIONS) else None)
        case GetPrompt(arguments=arguments):
            return Prompt("Plan it.", (PromptMessage("user", Text(f"Plan {arguments['goal']}.")),))
        case Listen() | Subscribe():
            return Done()
        case Complete(value=value):
            return Completion(tuple(f"{value}{n}" for n in range(150)))
        case _:
            raise AssertionError(effect)
