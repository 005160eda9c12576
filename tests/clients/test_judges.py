"""Programs that look for faults in any MCP server, unmodified, against the product as it ships."""

import json
from contextlib import ExitStack

import pytest
import yaml

from tests.support.clients import TOOLS, run_in
from tests.support.doors import Doors
from tests.support.environments import environment

JUDGES = "client-judges"
#: What mcpcheck would have otherwise, and why it is not. Everything else that it finds fails.
DECIDED = {
    # docs/decisions/0006: with one, every picture that `read` gives would be lost in hosts that people use.
    ("schemas.output_schema_missing", "tool:read"),
}
#: Inputs a tool, of those that its schema allows and of those that it does not.
EXAMPLES = 15


@pytest.mark.xdist_group("clients")
@pytest.mark.timeout(200)
def test_mcpcheck_finds_nothing_but_what_was_decided(doors):
    """Every check, with every tool probed and both eras looked at, warnings included."""
    door, program = doors.http("sqlite"), environment(JUDGES) / "bin" / "mcpcheck"
    options = ["--probe", "all", "--legacy-probes", "--strict", "--timeout", "60", "--json"]
    ran = run_in(environment(JUDGES), [str(program), door.url, "--token", door.token, *options])
    checks = json.loads(ran.stdout)["checks"]
    assert {check["name"]: check["status"] for check in checks if check["status"] not in {"pass", "warn"}} == {}
    assert len(checks) == 8
    found = {(issue["code"], issue["subject"]) for check in checks for issue in check["failures"] + check["warnings"]}
    assert found == DECIDED


@pytest.mark.timeout(400)
def test_toolproof_finds_no_input_that_a_tool_takes_badly(tmp_path):
    """No crash, no hang, no failure of the server's own, no result beside its schema, on a workspace of its own."""
    fuzz = {
        "max_examples": EXAMPLES,
        "timeout_ms": 60_000,
        "max_time_s": 40,
        "seed": 1,
        "include_destructive": True,
        # A null counts as an argument that was left out (mcp.tools.base.as_sent), whatever the schema says.
        "invalid_must_fail": False,
    }
    with ExitStack() as stack:
        door = Doors(stack).http("sqlite")
        server = {"url": door.url, "headers": {"Authorization": f"Bearer {door.token}"}}
        (tmp_path / "toolproof.yaml").write_text(yaml.safe_dump({"server": server, "fuzz": fuzz}))
        program = environment(JUDGES) / "bin" / "toolproof"
        argv = [str(program), "fuzz", "-c", "toolproof.yaml", "--json", "report.json"]
        ran = run_in(tmp_path, argv, seconds=300)
    assert ran.returncode in {0, 1}, ran.stderr
    tools = json.loads((tmp_path / "report.json").read_text("utf-8"))["fuzz"]["tools"]
    assert [tool["tool"] for tool in tools if tool["calls"] > EXAMPLES and tool["skipped"] is None] == TOOLS
    assert [(tool["tool"], finding) for tool in tools for finding in tool["findings"]] == []
    assert ran.returncode == 0, ran.stderr
