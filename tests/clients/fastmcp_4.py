"""fastmcp as a client: one visit, told as one JSON line.

`python -P fastmcp_4.py URL [TOKEN]` or `python -P fastmcp_4.py COMMAND ARGUMENT...` (stdio); the plan of the visit is a
JSON object on stdin. Runs in an environment of its own, never in that of the server.
"""

import json
import sys
from importlib.metadata import version
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp_types import PromptReference

Plan = dict[str, Any]


def client_of(arguments: list[str]) -> Client[Any]:
    """A client of a URL, with a token if there is one, or of a command that is started for it."""
    target, *rest = arguments
    if target.startswith("http"):
        return Client(target, auth=rest[0] if rest else None)
    return Client(StdioTransport(target, rest, keep_alive=False))


async def called(client: Client[Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    return {
        "tool": tool,
        "is_error": result.is_error,
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structured_content,
    }


async def visit(client: Client[Any], plan: Plan) -> dict[str, Any]:
    """Do everything in the plan, in order."""
    prompt = await client.get_prompt(plan["prompt"], plan["prompt_arguments"])
    resource = await client.read_resource(plan["resource"])
    completion = await client.complete(PromptReference(type="ref/prompt", name=plan["prompt"]), plan["completion"])
    server = client.server_info
    return {
        "version": version("fastmcp"),
        "protocol": client.protocol_version,
        "session": None,
        "server": server.name if server else None,
        "tools": [tool.name for tool in await client.list_tools()],
        "prompts": [found.name for found in await client.list_prompts()],
        "resources": [str(found.uri) for found in await client.list_resources()],
        "templates": [found.uri_template for found in await client.list_resource_templates()],
        "calls": [await called(client, tool, arguments) for tool, arguments in plan["calls"]],
        "prompt": [message.role for message in prompt.messages],
        "resource": [str(contents.uri) for contents in resource],
        "completion": completion.values,
    }


async def main() -> None:
    """Connect, visit, close; then say what was seen."""
    plan = json.load(sys.stdin)
    async with client_of(sys.argv[1:]) as client:
        seen = await visit(client, plan)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    anyio.run(main)
