"""A harness that asks, and clients that are asked: on a handshake session by a stream, statelessly by rounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.eras import meta
from tests.support.raw_http import BOTH, INITIALIZE

Message = dict[str, Any]
#: What a person does with a question.
Person = Callable[[Message], Message]

HARNESS = """---
id: careful
title: Careful
description: Asks before it pushes, and before it writes outside src.
tools: [read, write, edit, bash, grep, find, ls]
mode: workspace_write
rules:
  - {tool: bash, match: "touch *", effect: ask}
  - {tool: write, match: "src/**", effect: allow}
  - {tool: write, match: "**", effect: ask}
---
Be careful.
"""
FORMS = {"elicitation": {}}


def harness_settings(folder) -> dict[str, str]:
    """The settings of a server that asks; the folder gets the harness."""
    (folder / "careful.md").write_text(HARNESS, "utf-8")
    return {"SUPERPI_HARNESS_DIR": str(folder), "SUPERPI_HARNESS": "careful"}


def says(answer: str) -> Person:
    """A person who chooses that."""
    return lambda _question: {"result": {"action": "accept", "content": {"answer": answer}}}


def accepts(content: Any) -> Person:
    """A client that sends that as the content of a yes."""
    return lambda _question: {"result": {"action": "accept", "content": content}}


def does(action: str) -> Person:
    """A person who declines or dismisses."""
    return lambda _question: {"result": {"action": action}}


def fails(_question: Message) -> Message:
    """A client that cannot ask."""
    return {"error": {"code": -1, "message": "no window"}}


def tool(name: str, id: int = 1, **arguments: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@dataclass
class Asked:
    """A client. `questions` are those it was asked, `notes` what it was told; answers go to `answer_url`."""

    http: httpx.Client
    url: str
    person: Person = fails
    answer_url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    capabilities: Message = field(default_factory=lambda: dict(FORMS))
    questions: list[Message] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    session: str = ""

    def begin(self, revision: str = "2025-11-25", query: str = "") -> Asked:
        """Shake hands."""
        params = INITIALIZE["params"] | {"protocolVersion": revision, "capabilities": self.capabilities}
        answer = self._post(self.url + query, INITIALIZE | {"params": params})
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        return self

    def call(self, message: Message) -> Message:
        """Call over the session, answering on the way what is asked; the reply."""
        with self.http.stream("POST", self.url, json=message, headers=self._headers()) as answer:
            if answer.headers["content-type"] == "application/json":
                return json.loads(answer.read())
            for line in answer.iter_lines():
                if line.startswith("data:") and (reply := self._take(json.loads(line[5:]))) is not None:
                    return reply
        raise AssertionError("the stream ended without a reply")

    def stateless(self, message: Message, rounds: int = 3, query: str = "") -> Message:
        """Call without a session, sending the request anew with the answers for as long as it asks; the reply."""
        params = message["params"]
        for round in range(rounds):
            reply = self.once(message | {"id": round + 1, "params": params}, self.url if round == 0 else None, query)
            result = reply.get("result", {})
            if result.get("resultType") != "input_required":
                return reply
            self.questions += result["inputRequests"].values()
            answers = {key: self.person(asked).get("result", {}) for key, asked in result["inputRequests"].items()}
            params = message["params"] | {"requestState": result["requestState"], "inputResponses": answers}
        raise AssertionError("it asked again and again")

    def once(self, message: Message, url: str | None = None, query: str = "") -> Message:
        """One round of a stateless request, to that URL or where answers go."""
        claim = meta(capabilities=self.capabilities)
        message = message | {"params": {"_meta": claim} | message["params"]}
        headers = {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": message["method"],
            "mcp-name": message["params"]["name"],
        }
        return self._post((url or self.answer_url or self.url) + query, message, headers).json()

    def _take(self, message: Message) -> Message | None:
        if "id" not in message:
            self.notes.append(message)
        elif "method" in message:
            self.questions.append(message)
            answer = {"jsonrpc": "2.0", "id": message["id"]} | self.person(message)
            if self.person is not silence:
                assert self._post(self.answer_url or self.url, answer).status_code == 202
        else:
            return message
        return None

    def _headers(self) -> dict[str, str]:
        return {"accept": BOTH, **self.headers} | ({"mcp-session-id": self.session} if self.session else {})

    def _post(self, url: str, message: Message, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.http.post(url, json=message, headers=self._headers() | (headers or {}))


def silence(_question: Message) -> Message:
    """A person who is away."""
    return {}
