"""The official Python SDK 1.x as a client: visits side by side, each told as one JSON line.

`python -P python_1.py`; the plans of the visits are a JSON array on stdin. A plan's `target` is `[URL, TOKEN]`,
`[URL]`, or `[COMMAND, ARGUMENT...]` (stdio). Runs in an environment of its own, never in that of the server.
"""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import ElicitResult, PromptReference
from pydantic import AnyUrl

from mcp import ClientSession, StdioServerParameters

sys.path.append(str(Path(__file__).parent))

from visiting import News, Plan, run

#: A session, and what tells the id that the server gave it: None over stdio.
Connection = tuple[ClientSession, Callable[[], str | None]]


@asynccontextmanager
async def connected(plan: Plan, news: News) -> AsyncIterator[Connection]:
    """A session with a URL, with a token if there is one, or with a command that is started for it."""

    async def answer(_context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=news.answer(params.message))

    async def hear(message: Any) -> None:
        news.hear(message)

    made = partial(ClientSession, elicitation_callback=answer, message_handler=hear)
    target, *rest = plan["target"]
    if target.startswith("http"):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {rest[0]}"} if rest else None)
        async with (
            http,
            streamable_http_client(target, http_client=http) as (read, write, session_id),
            made(read, write) as session,
        ):
            yield session, session_id
    else:
        server = StdioServerParameters(command=target, args=rest)
        async with stdio_client(server) as (read, write), made(read, write) as session:
            yield session, lambda: None


async def called(session: ClientSession, tool: str, arguments: dict[str, Any], progress: Any = None) -> dict[str, Any]:
    """Call a tool; what came back."""
    result = await session.call_tool(tool, arguments, progress_callback=progress)
    return {
        "tool": tool,
        "is_error": bool(result.isError),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structuredContent,
    }


async def visited(connection: Connection, plan: Plan, news: News) -> dict[str, Any]:
    """Do everything in the plan, in order."""
    session, session_id = connection
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
        "followed": await news.follow(partial(called, session)) if "wait" in plan else None,
        "asked": news.asked,
    }


async def visit(plan: Plan) -> dict[str, Any]:
    """Connect, do what is planned, close."""
    news = News(plan)
    async with connected(plan, news) as connection:
        return await visited(connection, plan, news)


if __name__ == "__main__":
    run(visit)
