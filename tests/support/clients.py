"""The real clients: which there are, the visit that each of them makes, and what every one of them must see."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp.consent import ONCE
from tests.support.asking import HARNESS
from tests.support.doors import Way
from tests.support.environments import ROOT, environment, node, python

#: What a client is told to do: see `plan`.
Plan = dict[str, Any]

PROGRAMS: Final = ROOT / "tests" / "clients"
TOOLS: Final = ["read", "write", "edit", "bash", "grep", "find", "ls"]
#: Those that ship, the one of the team's own harness, and the alias.
PROMPTS: Final = [
    "super-pi-code",
    "super-pi-assistant",
    "super-pi-librarian",
    "super-pi-planner",
    "careful",
    "plan_architecture",
]
#: A visit takes seconds; a busy machine is no failure.
_SECONDS: Final = 100


#: The eras that a client can be told to speak: by the handshake alone, or by asking first whether there is another.
LEGACY: Final = ("legacy",)
BOTH: Final = ("legacy", "auto")


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one package in an environment of its own; `modes` are the ways in which it agrees on a revision."""

    name: str
    title: str
    package: str
    environment: str
    program: str
    modes: Sequence[str]

    def argv(self) -> list[str]:
        """The command line of the visits; started in the environment's folder."""
        program = str(PROGRAMS / self.program)
        if self.program.endswith(".mjs"):
            return [str(node()), program]
        return [str(python(self.environment)), "-P", program]

    def visit(self, plans: Sequence[Plan]) -> dict[str, dict[str, Any]]:
        """Make the visits, side by side; what the client saw, by the plans' names."""
        ran = self.run(plans)
        assert ran.returncode == 0, ran.stderr
        return {seen.pop("name"): seen for seen in map(json.loads, ran.stdout.splitlines())}

    def run(self, plans: Sequence[Plan]) -> subprocess.CompletedProcess[str]:
        """The ended program of visits, whatever came of them."""
        return run_in(environment(self.environment), self.argv(), text=json.dumps(plans))


PYTHON_2: Final = Client("python-2", "official Python SDK 2.x", "mcp", "client-python-2", "python_2.py", BOTH)
PYTHON_1: Final = Client("python-1", "official Python SDK 1.x", "mcp", "client-python-1", "python_1.py", LEGACY)
FASTMCP: Final = Client("fastmcp", "fastmcp", "fastmcp", "client-fastmcp", "fastmcp_4.py", BOTH)
TYPESCRIPT_2: Final = Client(
    "typescript-2",
    "official TypeScript SDK 2.x",
    "@modelcontextprotocol/client",
    "client-typescript-2",
    "typescript_2.mjs",
    BOTH,
)
TYPESCRIPT_1: Final = Client(
    "typescript-1",
    "official TypeScript SDK 1.x",
    "@modelcontextprotocol/sdk",
    "client-typescript-1",
    "typescript_1.mjs",
    LEGACY,
)
#: Has a command line instead of a program of ours: see `inspect`.
INSPECTOR: Final = Client(
    "inspector",
    "Inspector CLI",
    "@modelcontextprotocol/inspector",
    "client-inspector",
    "mcp-inspector",
    ("legacy", "modern"),
)
CLIENTS: Final = (PYTHON_2, PYTHON_1, FASTMCP, TYPESCRIPT_2, TYPESCRIPT_1)


def arriving(target: Sequence[str], mode: str) -> Plan:
    """A visit that does what every visit begins with."""
    return {
        "target": list(target),
        "mode": mode,
        "prompt": "plan_architecture",
        "prompt_arguments": {"goal": "Greet politely."},
        "completion": {"name": "goal", "value": ""},
        "resource": "superpi://workspace/context",
    }


def plan(way: Way, name: str, mode: str) -> Plan:
    """A visit that uses everything, in a folder of the workspace that is named like it."""
    return {
        **arriving(way.target, mode),
        "name": name,
        "calls": calls(f"src/{name}"),
        "answer": ONCE,
        "wait": ["bash", {"command": _waiting(name)}],
        "release": ["write", {"path": _heard(name), "content": ""}],
        "harness": {
            "path": str(way.harness),
            "text": HARNESS.replace("title: Careful", f"title: As {name} would have it"),
        },
    }


def _heard(name: str) -> str:
    return f"src/{name}/heard.txt"


def _waiting(name: str) -> str:
    """A command that is asked about, for a rule might be meant for a part of it, and that ends when a file is there."""
    return f"for i in $(seq 600); do [ -e {_heard(name)} ] && exit; sleep 0.1; done; false"


def calls(place: str) -> list[Any]:
    """Every tool once."""
    path = f"{place}/notes.txt"
    return [
        ["write", {"path": path, "content": "one\ntwo\n"}],
        ["edit", {"path": path, "edits": [{"old_text": "two", "new_text": "2"}]}],
        ["read", {"path": path}],
        ["bash", {"command": f"cat {path}"}],
        ["grep", {"pattern": "one", "path": place}],
        ["find", {"pattern": "*.txt", "path": place}],
        ["ls", {"path": place}],
    ]


def expected(name: str) -> dict[str, Any]:
    """What a visit sees, but for what differs each time: `parted` takes that out."""
    return {
        **offered(),
        "completion": [],
        "calls": answered(f"src/{name}"),
        "asked": [["May bash run this command?", _waiting(name)]],
        "followed": {"is_error": False, "progress": True, "changed": True},
    }


def offered() -> dict[str, Any]:
    """What everybody finds."""
    return {
        "server": "superpi",
        "tools": TOOLS,
        "prompts": PROMPTS,
        "resources": ["superpi://workspace/context", "superpi://workspace/tools"],
        "templates": ["superpi://conversation/{id}/transcript"],
        "prompt": ["user"],
        "resource": ["superpi://workspace/context"],
    }


def answered(place: str) -> list[dict[str, Any]]:
    """What comes of `calls`."""
    return [
        {"tool": tool, "is_error": False, "text": text, "structured": structured}
        for tool, text, structured in _answers(f"{place}/notes.txt")
    ]


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
    same = {key: value for key, value in seen.items() if key not in {"version", "protocol", "session"}}
    same["calls"] = [_timeless(call) for call in seen["calls"]]
    if "asked" in same:
        same["asked"] = [[line.strip() for line in asked.split("\n\n")[:2]] for asked in same["asked"]]
    return visit, same


def _timeless(call: dict[str, Any]) -> dict[str, Any]:
    """A call without the time that its command took."""
    structured = {key: value for key, value in call["structured"].items() if key != "duration"}
    return {**call, "structured": structured}


def inspect(url: str, token: str, *arguments: str, era: str) -> subprocess.CompletedProcess[str]:
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
