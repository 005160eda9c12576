"""What a running call may say: rising, not too often, and nothing once it is through."""

import asyncio
import json

import pytest

from mcp.exchange import AnswerUnfit, InputNeeded, NotDeclared
from mcp.protocol.arrival import Arrival
from mcp.protocol.notes import ToolsChanged
from mcp.protocol.questions import ListRoots, Sample
from mcp.protocol.state import LogLevel, State
from mcp.speaking import Line, Speaker
from tests.support.eras import meta, request
from tests.support.offers import ENGINE


@pytest.fixture
def said():
    return []


@pytest.fixture
def asking(said):
    """Of a call whose client has roots, that asked for progress and every level of the log, and brought answers."""

    def asking(answers):
        claim = meta(capabilities={"roots": {}}, logLevel="debug") | {"progressToken": "t"}
        params = {"name": "echo", "arguments": {"text": "x"}, "inputResponses": answers}
        call = request("tools/call", params, claim=claim)
        step = ENGINE.receive(json.dumps(call).encode(), State(), Arrival())
        line = Line("", lambda message: said.append(json.loads(message)), None, 1.0)
        return Speaker(ENGINE, step, step.effects[0], line)

    return asking


@pytest.fixture
def speaker(asking):
    return asking({})


def told(said):
    return [message["params"]["progress"] for message in said if message["method"] == "notifications/progress"]


@pytest.mark.requirement("PRG-1")
async def test_progress_that_does_not_grow_is_not_told(speaker, said):
    for done in (0, 1, 1, 0.5, 2, -1, 2.5):
        await speaker.progress(done)
    assert told(said) == [0, 1, 2, 2.5]


@pytest.mark.requirement("PRG-2")
async def test_of_progress_that_comes_too_fast_some_is_left_out(speaker, said):
    for done in range(10_000):
        await speaker.progress(done)
    assert 0 < len(told(said)) < 1000


@pytest.mark.requirement("STD-4", "RPC-15", "MRTR-1", "MRTR-5")
async def test_a_stateless_client_is_sent_no_request(speaker, said):
    """What it declared is asked by the result, and what it did not is not asked at all."""
    with pytest.raises(InputNeeded) as needed:
        await speaker.ask({"where": ListRoots()})
    assert needed.value.questions == {"where": ListRoots()}
    with pytest.raises(NotDeclared) as missing:
        await speaker.ask({"what": Sample((), 1)})
    assert (missing.value.required, said) == ({"sampling": {}}, [])


@pytest.mark.requirement("MRTR-10")
async def test_an_answer_of_the_wrong_form_is_an_error_even_where_others_are_missing(asking):
    """Whoever sends it hears what is wrong with it, and is not asked again and again."""
    speaker = asking({"where": {"roots": "here"}})
    with pytest.raises(AnswerUnfit) as unfit:
        await speaker.ask({"more": ListRoots(), "where": ListRoots()})
    assert unfit.value.message == (
        'Invalid params: inputResponses["where"] is no answer: the roots are not a list of objects with a uri. '
        'Answer {"roots": [{"uri": "file:///..."}]}. Send the request again with that; nothing was changed.'
    )


@pytest.mark.requirement("MRTR-10")
async def test_only_what_is_missing_is_asked_for(asking):
    with pytest.raises(InputNeeded) as needed:
        await asking({"where": {"roots": []}}).ask({"more": ListRoots(), "where": ListRoots()})
    assert needed.value.questions == {"more": ListRoots()}


@pytest.mark.requirement("PRG-1", "CAN-2", "STD-6", "LG-3")
@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_a_call_leaves_running_is_not_heard_any_more(speaker, said, cancelled):
    """Whether it came to its end or was withdrawn."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def call():
        await speaker.progress(1)
        begun.set()
        if cancelled:
            await done.wait()

    running = asyncio.ensure_future(speaker.while_running(call()))
    await begun.wait()
    if cancelled:
        running.cancel()
    await asyncio.wait([running])
    await speaker.progress(2)
    await speaker.log(LogLevel.ERROR, "late")
    await speaker.tell(ToolsChanged())
    assert [message["method"] for message in said] == ["notifications/progress"]
