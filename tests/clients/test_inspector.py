"""The Inspector's command line, unmodified: a connection for each thing that it is asked to do."""

import json
from functools import partial

import pytest

from tests.support.clients import INSPECTOR, answered, arriving, calls, inspect, inspector, offered
from tests.support.clients_table import passed
from tests.support.doors import DATABASES

#: It shares servers with the other clients.
pytestmark = pytest.mark.xdist_group("clients")

#: The tools that the Inspector calls, because each call takes it a second: one that changes and one that reads.
CALLED = ("write", "grep")


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


def listed(ask) -> dict:
    """What a visit of the programs finds. `--strict` fails on a schema that a host may refuse."""
    wanted = arriving([], "")
    goal = f"goal={wanted['prompt_arguments']['goal']}"
    got = ask("--method", "prompts/get", "--prompt-name", wanted["prompt"], "--prompt-args", goal)
    contents = ask("--method", "resources/read", "--uri", wanted["resource"])["contents"]
    templates = ask("--method", "resources/templates/list")["resourceTemplates"]
    return {
        "tools": [tool["name"] for tool in ask("--method", "tools/list", "--strict")["tools"]],
        "prompts": [prompt["name"] for prompt in ask("--method", "prompts/list")["prompts"]],
        "resources": [resource["uri"] for resource in ask("--method", "resources/list")["resources"]],
        "templates": [template["uriTemplate"] for template in templates],
        "prompt": [message["role"] for message in got["messages"]],
        "resource": [found["uri"] for found in contents],
    }


@pytest.mark.parametrize("database", DATABASES)
def test_the_inspector_uses_what_is_offered_in_each_era(database, doors):
    """All that is listed on one of the databases, and on both what it calls."""
    door, revisions = doors.http(database), []
    for era in INSPECTOR.modes:
        ask = partial(asked, door, era=era)
        place = f"inspector-{era}"
        told = ask("--method", "initialize")
        revisions.append(told["protocolVersion"])
        assert told["serverInfo"]["name"] == "superpi"
        wanted = [call for call in calls(place) if call[0] in CALLED]
        assert [called(ask, *call) for call in wanted] == [one for one in answered(place) if one["tool"] in CALLED]
        if database == "sqlite":
            assert listed(ask) == {key: value for key, value in offered().items() if key != "server"}
    version = json.loads((inspector() / "package.json").read_text("utf-8"))["version"]
    passed(INSPECTOR.name, version, {database: revisions})


@pytest.mark.parametrize("era", INSPECTOR.modes)
def test_the_inspector_ends_with_an_error_when_a_tool_does(era, doors):
    """Its status 5 is what a script of a user sees of `isError`."""
    arguments = json.dumps({"path": "nowhere.txt"})
    call = ["--method", "tools/call", "--tool-name", "read", "--tool-args-json", arguments]
    door = doors.http("sqlite")
    assert inspect(door.url, door.token, *call, era=era).returncode == 5


@pytest.mark.parametrize("era", INSPECTOR.modes)
def test_the_inspector_takes_a_refused_token_for_what_it_is(era, doors):
    """Its status 3 and `auth_required`: a 401 that it understands, and no login that leads nowhere."""
    ran = inspect(doors.http("sqlite").url, "unknown", "--method", "tools/list", era=era)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert json.loads(ran.stderr)["error"]["code"] == "auth_required"
