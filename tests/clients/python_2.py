"""The official Python SDK 2.x as a client: one visit, told as one JSON line.

`python -P python_2.py URL` or `python -P python_2.py COMMAND ARGUMENT...` (stdio); the plan of the visit is a JSON
object on stdin. Runs in an environment of its own, never in that of the server.
"""

import json
import sys
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters
from mcp_types import PromptReference

from mcp import Client

Plan = dict[str, Any]


def target(arguments: list[str]) -> str | StdioServerParameters:
    """Where to connect to: a URL, or a command to start."""
    if arguments[0].startswith("http"):
        return arguments[0]
    return StdioServerParameters(command=arguments[0], args=arguments[1:])


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
    async with Client(target(sys.argv[1:])) as client:
        seen = await visit(client, plan)
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    anyio.run(main)
