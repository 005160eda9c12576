"""fastmcp as a client: visits side by side, each told as one JSON line.

`python -P fastmcp_4.py`; the plans of the visits are a JSON array on stdin. A plan's `target` is `[URL, TOKEN]`,
`[URL]`, or `[COMMAND, ARGUMENT...]` (stdio); its `mode` is that of the negotiation: "auto", fastmcp's own default,
which probes `server/discover` first, or "legacy". Runs in an environment of its own, never in that of the server.
"""

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.client.subscriptions import listen
from mcp_types import PromptReference

sys.path.append(str(Path(__file__).parent))

from visiting import News, Plan, run


def client_of(plan: Plan, news: News) -> Client[Any]:
    """A client of a URL, with a token if there is one, or of a command that is started for it."""

    async def answer(message: str, _type: Any, _params: Any, _context: Any) -> dict[str, str]:
        return news.answer(message)

    async def hear(message: Any) -> None:
        news.hear(message)

    made = partial(Client, mode=plan["mode"], elicitation_handler=answer, message_handler=hear)
    target, *rest = plan["target"]
    if target.startswith("http"):
        return made(target, auth=rest[0] if rest else None)
    return made(StdioTransport(target, rest, keep_alive=False))


async def called(client: Client[Any], tool: str, arguments: dict[str, Any], progress: Any = None) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await client.call_tool(tool, arguments, raise_on_error=False, progress_handler=progress)
    return {
        "tool": tool,
        "is_error": result.is_error,
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structured_content,
    }


async def followed(client: Client[Any], news: News) -> dict[str, Any]:
    """A long call, with a listener beside it where changes are told to nobody else.

    fastmcp has no listener of its own, so it is that of the SDK that it is made of.
    """
    if client.protocol_version < "2026":
        return await news.follow(partial(called, client))
    async with listen(client.session, prompts_list_changed=True) as changes, anyio.create_task_group() as tasks:

        async def hear() -> None:
            await anext(changes)
            news.on_change()

        tasks.start_soon(hear)
        return await news.follow(partial(called, client))


async def visited(client: Client[Any], plan: Plan, news: News) -> dict[str, Any]:
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
        "followed": await followed(client, news) if "wait" in plan else None,
        "asked": news.asked,
    }


async def visit(plan: Plan) -> dict[str, Any]:
    """Connect, do what is planned, close."""
    news = News(plan)
    async with client_of(plan, news) as client:
        return await visited(client, plan, news)


if __name__ == "__main__":
    run(visit)
