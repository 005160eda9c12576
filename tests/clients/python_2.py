"""The official Python SDK 2.x as a client: visits side by side, each told as one JSON line.

`python -P python_2.py`; the plans of the visits are a JSON array on stdin. A plan's `target` is `[URL, TOKEN]`,
`[URL]`, or `[COMMAND, ARGUMENT...]` (stdio); its `mode` is that of the negotiation: "auto", the SDK's own default,
which probes `server/discover` first, or "legacy". Runs in an environment of its own, never in that of the server.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult, PromptReference

from mcp import Client

sys.path.append(str(Path(__file__).parent))

from visiting import News, Plan, run


@asynccontextmanager
async def connected(plan: Plan, news: News) -> AsyncIterator[Client]:
    """A client of a URL, with a token if there is one, or of a command that is started for it."""

    async def answer(_context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=news.answer(params.message))

    async def hear(message: Any) -> None:
        news.hear(message)

    made = partial(Client, mode=plan["mode"], elicitation_callback=answer, message_handler=hear)
    target, *rest = plan["target"]
    if not target.startswith("http"):
        async with made(StdioServerParameters(command=target, args=rest)) as client:
            yield client
    elif not rest:
        async with made(target) as client:
            yield client
    else:
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {rest[0]}"})
        async with http, made(streamable_http_client(target, http_client=http)) as client:
            yield client


async def called(client: Client, tool: str, arguments: dict[str, Any], progress: Any = None) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await client.call_tool(tool, arguments, progress_callback=progress)
    return {
        "tool": tool,
        "is_error": bool(result.is_error),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structured_content,
    }


async def followed(client: Client, news: News) -> dict[str, Any]:
    """A long call, with a listener beside it where changes are told to nobody else."""
    if client.protocol_version < "2026":
        return await news.follow(partial(called, client))
    async with client.listen(prompts_list_changed=True) as changes, anyio.create_task_group() as tasks:

        async def hear() -> None:
            await anext(changes)
            news.on_change()

        tasks.start_soon(hear)
        return await news.follow(partial(called, client))


async def visited(client: Client, plan: Plan, news: News) -> dict[str, Any]:
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
        "followed": await followed(client, news) if "wait" in plan else None,
        "asked": news.asked,
    }


async def visit(plan: Plan) -> dict[str, Any]:
    """Connect, do what is planned, close."""
    news = News(plan)
    async with connected(plan, news) as client:
        return await visited(client, plan, news)


if __name__ == "__main__":
    run(visit)
