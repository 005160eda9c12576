"""The official Python SDK 2.x as a client: one visit, told as one JSON line.

`python -P python_2.py URL [TOKEN]` or `python -P python_2.py COMMAND ARGUMENT...` (stdio); the plan of the visit is a
JSON object on stdin. Runs in an environment of its own, never in that of the server.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import PromptReference

from mcp import Client

Plan = dict[str, Any]


@asynccontextmanager
async def connected(arguments: list[str]) -> AsyncIterator[Client]:
    """A client of a URL, with a token if there is one, or of a command that is started for it."""
    target, *rest = arguments
    if not target.startswith("http"):
        async with Client(StdioServerParameters(command=target, args=rest)) as client:
            yield client
    elif not rest:
        async with Client(target) as client:
            yield client
    else:
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {rest[0]}"})
        async with http, Client(streamable_http_client(target, http_client=http)) as client:
            yield client


async def called(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await client.call_tool(tool, arguments)
    return {
        "tool": tool,
        "is_error": bool(result.is_error),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structured_content,
    }


async def visit(client: Client, plan: Plan) -> dict[str, Any]:
    """Do everything in the plan, in order."""
    prompt = await client.get_prompt(plan["prompt"], plan["prompt_arguments"])
    resource = await client.read_resource(plan["resource"])
    completion = await client.complete(PromptReference(type="ref/prompt", name=plan["prompt"]), plan["completion"])
    server = client.server_info
    return {
        "version": version("mcp"),
        "session": None,
        "protocol": client.protocol_version,
        "server": server.name if server else None,
        "tools": [tool.name for tool in (await client.list_tools()).tools],
        "prompts": [found.name for found in (await client.list_prompts()).prompts],
        "resources": [str(found.uri) for found in (await client.list_resources()).resources],
        "templates": [found.uri_template for found in (await client.list_resource_templates()).resource_templates],
        "calls": [await called(client, tool, arguments) for tool, arguments in plan["calls"]],
        "prompt": [message.role for message in prompt.messages],
        "resource": [str(contents.uri) for contents in resource.contents],
        "completion": completion.completion.values,
    }


async def main() -> None:
    """Connect, visit, close; then say what was seen."""
    plan = json.load(sys.stdin)
    async with connected(sys.argv[1:]) as client:
        seen = await visit(client, plan)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    anyio.run(main)
