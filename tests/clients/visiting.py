"""What the clients in Python have in common: several visits at once, and what one visit is told beside its replies.

Each program brings its SDK's way to make one visit; the visits are a JSON array on stdin, and each that is through is
told as one JSON line. Knows no SDK, because each of them runs in an environment of its own.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

Plan = dict[str, Any]
Called = dict[str, Any]
#: Calls a tool; the last argument hears of progress.
Call = Callable[..., Awaitable[Called]]


class News:
    """What one visit hears beside its replies: questions, the progress of a call, and a change of the prompts."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._progress: list[float] = []
        self._told = anyio.Event()
        self._changed = anyio.Event()
        self.asked: list[str] = []

    def answer(self, question: str) -> dict[str, str]:
        """What the person says to a question."""
        self.asked.append(question)
        return {"answer": self._plan["answer"]}

    async def on_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Hear how far the call is."""
        self._progress.append(progress)
        self._told.set()

    def hear(self, message: object) -> None:
        """Hear whatever the server says unasked; its type tells what it is."""
        if "PromptListChanged" in type(getattr(message, "root", message)).__name__:
            self.on_change()

    def on_change(self) -> None:
        """Hear that the prompts have changed."""
        self._changed.set()

    async def follow(self, call: Call) -> dict[str, Any]:
        """Call what runs until it is let go, which it is once its progress and a change of the prompts were heard."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._let_go, call)
            through = await call(*self._plan["wait"], self.on_progress)
        told = self._progress
        return {"is_error": through["is_error"], "progress": bool(told) and told == sorted(set(told)), "changed": True}

    async def _let_go(self, call: Call) -> None:
        await self._told.wait()
        replace(Path(self._plan["harness"]["path"]), self._plan["harness"]["text"])
        await self._changed.wait()
        await call(*self._plan["release"])


def replace(path: Path, text: str) -> None:
    """Put a text in the place of a file; nobody reads half of it."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


async def tell(visit: Callable[[Plan], Awaitable[dict[str, Any]]], plan: Plan) -> None:
    """Make one visit and say what was seen."""
    seen = await visit(plan)
    sys.stdout.write(json.dumps({"name": plan["name"], **seen}) + "\n")


def run(visit: Callable[[Plan], Awaitable[dict[str, Any]]]) -> None:
    """Make all the visits, side by side."""
    plans = json.load(sys.stdin)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for plan in plans:
                tasks.start_soon(tell, visit, plan)

    anyio.run(main)
