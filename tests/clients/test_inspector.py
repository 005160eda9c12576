"""The Inspector's command line, unmodified: a connection for each thing that it is asked to do."""

import json
from functools import partial

import pytest

from tests.support.clients import INSPECTOR, expected, inspect, inspector, parted, plan
from tests.support.clients_table import passed
from tests.support.doors import DATABASES


def asked(door, *arguments: str, era: str) -> dict:
    """What the Inspector prints for one thing."""
    ran = inspect(door.url, door.token, *arguments, era=era)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["result"]


def called(ask, tool: str, arguments: dict) -> dict:
    """Call a tool; what came back."""
    result = ask("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return {
        "tool": tool,
        "is_error": result.get("isError", False),
        "text": "".join(block["text"] for block in result["content"] if block["type"] == "text"),
        "structured": result.get("structuredContent"),
    }


def visited(door, place: str, *, era: str = "legacy") -> dict:
    """What a visit of the programs sees, but for completions, which the Inspector does not ask for."""
    ask = partial(asked, door, era=era)
    wanted = plan(place)
    goal = f"goal={wanted['prompt_arguments']['goal']}"
    told = ask("--method", "initialize")
    got = ask("--method", "prompts/get", "--prompt-name", wanted["prompt"], "--prompt-args", goal)
    contents = ask("--method", "resources/read", "--uri", wanted["resource"])["contents"]
    prompts = ask("--method", "prompts/list")["prompts"]
    resources = ask("--method", "resources/list")["resources"]
    templates = ask("--method", "resources/templates/list")["resourceTemplates"]
    return {
        "version": json.loads((inspector() / "package.json").read_text("utf-8"))["version"],
        "protocol": told["protocolVersion"],
        "session": None,
        "server": told["serverInfo"]["name"],
        "tools": [tool["name"] for tool in ask("--method", "tools/list", "--strict")["tools"]],
        "prompts": [prompt["name"] for prompt in prompts],
        "resources": [resource["uri"] for resource in resources],
        "templates": [template["uriTemplate"] for template in templates],
        "prompt": [message["role"] for message in got["messages"]],
        "resource": [found["uri"] for found in contents],
        "calls": [called(ask, tool, arguments) for tool, arguments in wanted["calls"]],
    }


@pytest.mark.parametrize("database", DATABASES)
def test_the_inspector_uses_everything_over_http(database, doors):
    """`--strict` fails on a schema that a host may refuse."""
    visit, rest = parted(visited(doors.http(database), INSPECTOR.name))
    assert rest == {key: value for key, value in expected(INSPECTOR.name).items() if key != "completion"}
    passed(INSPECTOR.name, database, visit.version, visit.protocol)


def test_the_inspector_uses_everything_in_the_stateless_era(doors):
    """With `--strict` as above: the schemas are the same in both eras."""
    visit, rest = parted(visited(doors.http("sqlite"), "inspector-modern", era="modern"))
    assert visit.protocol == "2026-07-28"
    assert rest == {key: value for key, value in expected("inspector-modern").items() if key != "completion"}


def test_the_inspector_ends_with_an_error_when_a_tool_does(doors):
    """Its status 5 is what a script of a user sees of `isError`."""
    arguments = json.dumps({"path": "nowhere.txt"})
    call = ["--method", "tools/call", "--tool-name", "read", "--tool-args-json", arguments]
    door = doors.http("sqlite")
    assert inspect(door.url, door.token, *call).returncode == 5


def test_the_inspector_takes_a_refused_token_for_what_it_is(doors):
    """Its status 3 and `auth_required`: a 401 that it understands, and no login that leads nowhere."""
    ran = inspect(doors.http("sqlite").url, "unknown", "--method", "tools/list")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert json.loads(ran.stderr)["error"]["code"] == "auth_required"
