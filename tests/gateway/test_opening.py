"""From a process without a database to one that serves: its phases, its door, and how often its log says the same."""

import itertools
from dataclasses import replace

import pytest

from auth.caller import Caller, Transport
from gateway.bootstrap import build
from gateway.lifecycle import Phase, Readiness
from gateway.opening import Complaint
from gateway.settings import load
from gateway.store.faults import StoreUnavailable
from mcp.calls import Connection
from mcp.catalogue import standard_catalogue
from mcp.harness import registry
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.effects import CallTool
from mcp.protocol.errors import HttpRefusal
from mcp.protocol.state import State

#: Every way from one phase to another that there is.
WAYS = {
    *itertools.product((Phase.STARTING, Phase.WAITING, Phase.BEHIND), frozenset(Phase) - {Phase.STARTING}),
    (Phase.READY, Phase.DRAINING),
}
BY_WAY_OF = {phase: [phase] for phase in Phase} | {Phase.STARTING: []}


def in_phase(phase):
    readiness = Readiness()
    for step in BY_WAY_OF[phase]:
        readiness.become(step, f"why {step.name}")
    return readiness


@pytest.mark.parametrize("after", Phase)
@pytest.mark.parametrize("before", Phase)
def test_a_phase_leads_where_the_table_says_and_else_stays(before, after):
    readiness = in_phase(before)
    readiness.become(after, "why")
    assert readiness.phase is (after if (before, after) in WAYS else before)
    assert (readiness.why == "why") == ((before, after) in WAYS)


@pytest.mark.parametrize("phase", Phase)
def test_calls_are_taken_in_one_phase_alone(phase):
    expected = {Phase.READY: None, Phase.DRAINING: HttpRefusal.DRAINING}
    assert in_phase(phase).refusal is expected.get(phase, HttpRefusal.UNAVAILABLE)


def test_the_same_words_are_logged_ever_more_rarely_and_new_ones_at_once(caplog):
    now = 0.0
    complaint = Complaint("not ready", lambda: now)
    said = []
    for second in range(3600):
        now = float(second)
        before = len(caplog.records)
        complaint.say("away" if second < 3000 else "behind")
        said += [second] * (len(caplog.records) - before)
    assert said == [0, 30, 90, 210, 450, 930, 1530, 2130, 2730, 3000, 3030, 3090, 3210, 3450]
    assert {record.getMessage() for record in caplog.records} == {"not ready: away", "not ready: behind"}


def test_a_complaint_that_is_over_is_said_anew(caplog):
    complaint = Complaint("not ready", lambda: 0.0)
    assert not complaint.over()
    complaint.say("away")
    assert (complaint.over(), complaint.over()) == (True, False)
    complaint.say("away")
    assert len(caplog.records) == 2


@pytest.fixture
def workspace(tmp_path):
    """A folder beside that of the database."""
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
async def services(tmp_path, workspace):
    """A process over a database of its own, whose tool `write` loses the database in the middle."""

    async def run(context, arguments):
        (context.workspace.root / arguments["path"]).write_text("half")
        raise StoreUnavailable("The database is away.")

    settings = load(workspace=(workspace,), data_dir=tmp_path / "data", sandbox="off")
    usual = standard_catalogue(registry.load(None), settings.limits)
    tools = tuple(replace(tool, run=run) if tool.spec.name == "write" else tool for tool in usual.tools)
    services = await build(settings, catalogue=replace(usual, tools=tools))
    await services.opening.once()
    yield services
    await services.close()


async def test_a_tool_that_lost_the_database_half_way_is_no_call_to_repeat(services, workspace):
    """No tool that ships asks the database; one that does may have changed something before."""
    connection = Connection(Caller(transport=Transport.HTTP), State())
    effect = CallTool(0, 1, "write", {"path": "f", "content": "whole"})
    value = await services.offering.current.performer.perform(effect, connection)
    text = (
        "The server lost its database while write ran, so it is not known how much of it was done. "
        "See what is there before you try again."
    )
    assert value == ToolResult((Text(text),), is_error=True)
    assert (workspace / "f").read_text() == "half"


async def test_before_it_is_opened_no_job_is_taken_and_afterwards_keys_are_there(tmp_path, workspace):
    settings = load(workspace=(workspace,), data_dir=tmp_path / "data", sandbox="off")
    services = await build(settings)
    with pytest.raises(StoreUnavailable, match="is not in use yet"):
        await services.tokens.ever_any()
    assert (services.offering.current.engine.keys, (tmp_path / "data").exists()) == ((), False)
    await services.opening.once()
    assert await services.tokens.ever_any() is False
    assert [len(key) for key in services.offering.current.engine.keys] == [32]
    await services.close()
    await services.close()
