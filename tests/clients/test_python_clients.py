"""The official Python SDK, two generations, unmodified, as the client: over HTTP and over stdio."""

import json
import subprocess

import pytest

from tests.support.environments import ROOT, python
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

TOOLS = ["read", "write", "edit", "bash", "grep", "find", "ls"]
PROMPTS = ["super-pi-code", "super-pi-assistant", "super-pi-librarian", "super-pi-planner", "plan_architecture"]


@pytest.fixture(scope="module")
def home():
    with folder() as path:
        (path / "workspace").mkdir()
        own(path)
        yield path


@pytest.fixture(scope="module")
def url(home):
    with serving(unprivileged(), home / "workspace", home) as server:
        yield server.url


def plan(place: str) -> dict:
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


def visit(client: str, target: list[str], place: str) -> dict:
    """What one client saw."""
    argv = [python(f"client-{client}"), "-P", ROOT / "tests" / "clients" / f"{client.replace('-', '_')}.py", *target]
    ran = subprocess.run(argv, input=json.dumps(plan(place)), capture_output=True, text=True, timeout=100, cwd="/")
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    return json.loads(line)


def check(seen: dict, place: str) -> None:
    """Compare everything that a client saw with what the server offers."""
    calls = seen.pop("calls")
    assert seen == {
        "protocol": "2025-11-25",
        "server": "superpi",
        "tools": TOOLS,
        "prompts": PROMPTS,
        "resources": ["superpi://workspace/context", "superpi://workspace/tools"],
        "templates": ["superpi://conversation/{id}/transcript"],
        "prompt": ["user"],
        "resource": ["superpi://workspace/context"],
        "completion": [],
    }
    assert [call["tool"] for call in calls] == [tool for tool, _ in plan(place)["calls"]]
    assert [call for call in calls if call["is_error"]] == []
    texts = {call["tool"]: call["text"] for call in calls}
    assert texts["read"] == "one\n2\n"
    assert texts["grep"] == f"{place}/notes.txt:1: one"
    assert texts["find"] == f"{place}/notes.txt"
    assert texts["ls"] == "notes.txt"


@pytest.mark.parametrize("client", ["python-2", "python-1"])
def test_a_client_uses_everything_over_http(client, url):
    check(visit(client, [url], f"http-{client}"), f"http-{client}")


@pytest.mark.parametrize("client", ["python-2", "python-1"])
def test_a_client_uses_everything_over_stdio(client, home):
    """The SDK starts the server with an environment of its own choice; `env -i` gives the server the one it needs."""
    launcher = unprivileged()
    variables = {
        **launcher.env,
        "HOME": str(home),
        "SUPERPI_WORKSPACE": str(home / "workspace"),
        "SUPERPI_DATA_DIR": str(home / f"data-{client}"),
    }
    server = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *launcher.superpi("stdio")]
    check(visit(client, server, f"stdio-{client}"), f"stdio-{client}")
