"""The official Python SDK 1.x as a client: one visit, told as one JSON line.

`python -P python_1.py URL [TOKEN]` or `python -P python_1.py COMMAND ARGUMENT...` (stdio); the plan of the visit is a
JSON object on stdin. Runs in an environment of its own, never in that of the server.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import PromptReference
from pydantic import AnyUrl

from mcp import ClientSession, StdioServerParameters

Plan = dict[str, Any]
#: A session, and what tells the id that the server gave it: None over stdio.
Connection = tuple[ClientSession, Callable[[], str | None]]


@asynccontextmanager
async def connected(arguments: list[str]) -> AsyncIterator[Connection]:
    """A session with a URL, with a token if there is one, or with a command that is started for it."""
    target, *rest = arguments
    if target.startswith("http"):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {rest[0]}"} if rest else None)
        async with (
            http,
            streamable_http_client(target, http_client=http) as (read, write, session_id),
            ClientSession(read, write) as session,
        ):
            yield session, session_id
    else:
        server = StdioServerParameters(command=target, args=rest)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            yield session, lambda: None


async def called(session: ClientSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await session.call_tool(tool, arguments)
    return {
        "tool": tool,
        "is_error": bool(result.isError),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structuredContent,
    }


async def visit(session: ClientSession, session_id: Callable[[], str | None], plan: Plan) -> dict[str, Any]:
    """Do everything in the plan, in order."""
    initialized = await session.initialize()
    prompt = await session.get_prompt(plan["prompt"], plan["prompt_arguments"])
    resource = await session.read_resource(AnyUrl(plan["resource"]))
    completion = await session.complete(PromptReference(type="ref/prompt", name=plan["prompt"]), plan["completion"])
    return {
        "version": version("mcp"),
        "session": session_id(),
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
    async with connected(sys.argv[1:]) as (session, session_id):
        seen = await visit(session, session_id, plan)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    anyio.run(main)
