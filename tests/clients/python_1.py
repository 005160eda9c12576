"""The official Python SDK 1.x as a client: one visit, told as one JSON line.

`python -P python_1.py URL` or `python -P python_1.py COMMAND ARGUMENT...` (stdio); the plan of the visit is a JSON
object on stdin. Runs in an environment of its own, never in that of the server.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PromptReference
from pydantic import AnyUrl

from mcp import ClientSession, StdioServerParameters

Plan = dict[str, Any]


@asynccontextmanager
async def connected(arguments: list[str]) -> AsyncIterator[ClientSession]:
    """A session with a URL, or with a command that is started for it."""
    if arguments[0].startswith("http"):
        async with streamable_http_client(arguments[0]) as (read, write, _), ClientSession(read, write) as session:
            yield session
    else:
        server = StdioServerParameters(command=arguments[0], args=arguments[1:])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            yield session


async def called(session: ClientSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await session.call_tool(tool, arguments)
    return {
        "tool": tool,
        "is_error": bool(result.isError),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structuredContent,
    }


async def visit(session: ClientSession, plan: Plan) -> dict[str, Any]:
    """Do everything in the plan, in order."""
    initialized = await session.initialize()
    prompt = await session.get_prompt(plan["prompt"], plan["prompt_arguments"])
    resource = await session.read_resource(AnyUrl(plan["resource"]))
    completion = await session.complete(PromptReference(type="ref/prompt", name=plan["prompt"]), plan["completion"])
    return {
        "protocol": initialized.protocolVersion,
        "server": initialized.serverInfo.name,
        "tools": [tool.name for tool in (await session.list_tools()).tools],
        "prompts": [found.name for found in (await session.list_prompts()).prompts],
        "resources": [str(found.uri) for found in (await session.list_resources()).resources],
        "templates": [found.uriTemplate for found in (await session.list_resource_templates()).resourceTemplates],
        "calls": [await called(session, tool, arguments) for tool, arguments in plan["calls"]],
        "prompt": [message.role for message in prompt.messages],
        "resource": [str(contents.uri) for contents in resource.contents],
        "completion": completion.completion.values,
    }


async def main() -> None:
    """Connect, visit, close; then say what was seen."""
    plan = json.load(sys.stdin)
    async with connected(sys.argv[1:]) as session:
        seen = await visit(session, plan)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    anyio.run(main)
