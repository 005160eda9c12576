"""The real clients: which there are, the visit that each of them makes, and what every one of them must see."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.environments import ROOT, environment, node, python

PROGRAMS: Final = ROOT / "tests" / "clients"
TOOLS: Final = ["read", "write", "edit", "bash", "grep", "find", "ls"]
PROMPTS: Final = ["super-pi-code", "super-pi-assistant", "super-pi-librarian", "super-pi-planner", "plan_architecture"]
#: A visit takes seconds; a busy machine is no failure.
_SECONDS: Final = 100


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one package in an environment of its own; `mode` is how it agrees on a revision, if one can say."""

    name: str
    title: str
    package: str
    environment: str
    program: str
    mode: str | None = None

    def argv(self, target: Sequence[str]) -> list[str]:
        """The command line of a visit; started in the environment's folder."""
        program = str(PROGRAMS / self.program)
        if self.program.endswith(".mjs"):
            return [str(node()), program, *target]
        return [str(python(self.environment)), "-P", program, *target]

    def visit(self, target: Sequence[str], place: str) -> dict[str, Any]:
        """Visit a URL (`[URL]` or `[URL, TOKEN]`) or a command that is started for it; what the client saw."""
        ran = self.run(target, place)
        assert ran.returncode == 0, ran.stderr
        (line,) = ran.stdout.splitlines()
        seen = json.loads(line)
        assert isinstance(seen, dict)
        return seen

    def run(self, target: Sequence[str], place: str) -> subprocess.CompletedProcess[str]:
        """The ended program of a visit, whatever came of it."""
        told = json.dumps({**plan(place), "mode": self.mode})
        return run_in(environment(self.environment), self.argv(target), text=told)


PYTHON_2: Final = Client("python-2", "official Python SDK 2.x", "mcp", "client-python-2", "python_2.py")
PYTHON_1: Final = Client("python-1", "official Python SDK 1.x", "mcp", "client-python-1", "python_1.py")
FASTMCP: Final = Client("fastmcp", "fastmcp", "fastmcp", "client-fastmcp", "fastmcp_4.py")
TYPESCRIPT_2: Final = Client(
    "typescript-2",
    "official TypeScript SDK 2.x",
    "@modelcontextprotocol/client",
    "client-typescript-2",
    "typescript_2.mjs",
    "legacy",
)
TYPESCRIPT_2_AUTO: Final = Client(
    "typescript-2-auto",
    "the same, probing first (`auto`)",
    "@modelcontextprotocol/client",
    "client-typescript-2",
    "typescript_2.mjs",
    "auto",
)
TYPESCRIPT_1: Final = Client(
    "typescript-1",
    "official TypeScript SDK 1.x",
    "@modelcontextprotocol/sdk",
    "client-typescript-1",
    "typescript_1.mjs",
)
#: Has a command line instead of a program of ours: see `inspect`.
INSPECTOR: Final = Client(
    "inspector", "Inspector CLI", "@modelcontextprotocol/inspector", "client-inspector", "mcp-inspector"
)
CLIENTS: Final = (PYTHON_2, PYTHON_1, FASTMCP, TYPESCRIPT_2, TYPESCRIPT_2_AUTO, TYPESCRIPT_1)


def plan(place: str) -> dict[str, Any]:
    """A visit that works in one folder of the workspace."""
    edit = {"old_text": "two", "new_text": "2"}
    return {
        "prompt": "plan_architecture",
        "prompt_arguments": {"goal": "Greet politely."},
        "completion": {"name": "goal", "value": ""},
        "resource": "superpi://workspace/context",
        "calls": [
            ["write", {"path": f"{place}/notes.txt", "content": "one\ntwo\n"}],
            ["edit", {"path": f"{place}/notes.txt", "edits": [edit]}],
            ["read", {"path": f"{place}/notes.txt"}],
            ["bash", {"command": f"cat {place}/notes.txt"}],
            ["grep", {"pattern": "one", "path": place}],
            ["find", {"pattern": "*.txt", "path": place}],
            ["ls", {"path": place}],
        ],
    }


def expected(place: str) -> dict[str, Any]:
    """What a visit to one folder sees, but for what differs each time: `parted` takes that out."""
    return {
        "server": "superpi",
        "tools": TOOLS,
        "prompts": PROMPTS,
        "resources": ["superpi://workspace/context", "superpi://workspace/tools"],
        "templates": ["superpi://conversation/{id}/transcript"],
        "prompt": ["user"],
        "resource": ["superpi://workspace/context"],
        "completion": [],
        "calls": [
            {"tool": tool, "is_error": False, "text": text, "structured": structured}
            for tool, text, structured in _answers(f"{place}/notes.txt")
        ],
    }


def _answers(path: str) -> list[tuple[str, str, Any]]:
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    changed = {"edits": 1, "added": 1, "removed": 1, "first_line": 2, "diff_truncated": False, "inexact": []}
    lines = {"first_line": 1, "last_line": 2, "truncated": False, "total_lines": 2}
    ended = {"exit_code": 0, "truncated": False, "timed_out": False, "spool": None}
    match = {"path": path, "line": 1, "text": "one", "cut": False}
    entries = [{"name": "notes.txt", "type": "file", "size": 6}]
    return [
        ("write", f"Created {path} with 8 bytes.", {"path": path, "bytes": 8, "created": True}),
        ("edit", f"Made 1 edit in {path} (+1 -1 lines).\n\n{diff}", {"path": path, "diff": diff, **changed}),
        ("read", "one\n2\n", {"path": path, "content": "one\n2\n", **lines}),
        ("bash", "one\n2", {"output": "one\n2\n", **ended}),
        ("grep", f"{path}:1: one", {"matches": [match], "truncated": False, "files_left_out": 0}),
        ("find", path, {"files": [path], "truncated": False}),
        ("ls", "notes.txt", {"entries": entries, "total": 1, "truncated": False}),
    ]


@dataclass(frozen=True, slots=True)
class Visit:
    """What differs from client to client and from visit to visit."""

    version: str
    protocol: str
    session: str | None


def parted(seen: dict[str, Any]) -> tuple[Visit, dict[str, Any]]:
    """Part what a client saw into what differs, and what must be as `expected`."""
    visit = Visit(seen["version"], seen["protocol"], seen["session"])
    same = {key: value for key, value in seen.items() if key not in {"version", "protocol", "session", "calls"}}
    return visit, {**same, "calls": [_timeless(call) for call in seen["calls"]]}


def _timeless(call: dict[str, Any]) -> dict[str, Any]:
    """A call without the time that its command took."""
    structured = {key: value for key, value in call["structured"].items() if key != "duration"}
    return {**call, "structured": structured}


def inspect(url: str, token: str, *arguments: str, era: str = "legacy") -> subprocess.CompletedProcess[str]:
    """One run of the Inspector's command line, which connects in that era, does one thing, and leaves."""
    header = ["--header", f"Authorization: Bearer {token}"]
    program = inspector() / "clients" / "launcher" / "build" / "index.js"
    options = ["--transport", "http", "--protocol-era", era, "--stored-auth-only", "--format", "json"]
    return run_in(inspector(), [str(node()), str(program), "--cli", url, *options, *header, *arguments])


def fastmcp_list(url: str, token: str) -> subprocess.CompletedProcess[str]:
    """One run of fastmcp's own command line, which lists the tools."""
    folder = environment(FASTMCP.environment)
    return run_in(folder, [str(folder / "bin" / "fastmcp"), "list", url, "--auth", token, "--json"])


def inspector() -> Path:
    """Where the Inspector is installed."""
    return environment("client-inspector") / "node_modules" / "@modelcontextprotocol" / "inspector"


def run_in(
    folder: Path, argv: list[str], *, text: str = "", seconds: float = _SECONDS, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in its environment, with a home of its own: a client must not read or keep anything elsewhere."""
    with tempfile.TemporaryDirectory(prefix="superpi-client-") as home:
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, **more}
        return subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=seconds, cwd=folder, env=variables
        )
