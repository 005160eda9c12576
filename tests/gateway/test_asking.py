"""A rule that asks, against a real server: the person is asked over the wire, and whatever is no yes is a no."""

import httpx
import pytest

from mcp.consent import ALWAYS, NO, ONCE
from tests.support.asking import Asked, accepts, does, fails, harness_settings, says, silence, tool
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged


@pytest.fixture(scope="module")
def server():
    with folder() as workspace, folder() as home, folder() as harnesses:
        settings = harness_settings(harnesses) | {"SUPERPI_HTTP__ASK_SECONDS": "1"}
        own(harnesses)
        with serving(unprivileged(), workspace, home, **settings) as running:
            yield running


@pytest.fixture
def http():
    with httpx.Client(timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture(params=["2025-06-18", "2025-11-25", "2026-07-28"])
def era(request):
    return request.param


@pytest.fixture
def run(server, http, era):
    """Calls a tool as a client with that person; the client with what it was asked, and the tool's result."""

    def run(message, person, client=None, **changes):
        client = client or Asked(http, server.url, person, **changes)
        client.person = person
        if era == "2026-07-28":
            return client, client.stateless(message)["result"]
        if not client.session:
            client.begin(era)
        return client, client.call(message)["result"]

    return run


def text(result):
    return result["content"][0]["text"]


def params_of(question):
    return question["params"]


@pytest.mark.requirement("RQ-1", "HL-6", "MRTR-1", "ERA-1")
def test_a_yes_lets_just_this_call_go_on(server, run, era):
    """The question shows the command; the next call asks anew."""
    name = f"once-{era}"
    client, result = run(tool("bash", command=f"touch {name}"), says(ONCE))
    assert not result.get("isError"), result
    assert (server.workspace / name).exists()
    assert f"touch {name}" in params_of(client.questions[0])["message"]
    run(tool("bash", command=f"touch {name}"), says(ONCE), client)
    assert len(client.questions) == 2


@pytest.mark.requirement("MRTR-12", "EL-8")
@pytest.mark.parametrize(
    ("person", "why"),
    [
        (says(NO), "the person said no"),
        (does("decline"), "the person declined"),
        (does("cancel"), "the person dismissed the question"),
    ],
)
def test_a_no_is_a_refusal_and_nothing_happens(server, run, era, person, why):
    """The result says whose no it was."""
    name = f"no-{era}"
    _, result = run(tool("bash", command=f"touch {name}"), person)
    assert result["isError"]
    assert f", and {why}. The mode here is workspace_write. Nothing was changed." in text(result)
    assert result["_meta"]["io.superpi/refusal"]["tool"] == "bash"
    assert not (server.workspace / name).exists()


CHOICES = '"allow once", "allow from now on", "do not allow"'


@pytest.mark.requirement("EL-8", "MRTR-10")
@pytest.mark.parametrize(
    ("sent", "words"),
    [
        pytest.param(accepts({"answer": "yes"}), f"""the content's answer is "yes", not one of {CHOICES}""", id="word"),
        pytest.param(accepts({"answer": True}), f"the content's answer is true, not one of {CHOICES}", id="a boolean"),
        pytest.param(accepts({"answer": ["allow once"]}), "the content's answer is a list, not one of", id="a list"),
        pytest.param(
            accepts({"answer": "x" * 5000}), f"""the content's answer is "{"x" * 47}..., not one of""", id="a long text"
        ),
        pytest.param(
            accepts({"answer": "\u202e\x1b[31m"}), 'answer is "\\u202e\\u001b[31m", not one of', id="what could hide"
        ),
        pytest.param(accepts({}), f"the content lacks answer, one of {CHOICES}", id="an empty content"),
        pytest.param(does("accept"), f"the content lacks answer, one of {CHOICES}", id="no content"),
        pytest.param(accepts("allow once"), 'the content is "allow once", not an object', id="no object"),
        pytest.param(does("ok"), 'the action is "ok", not one of "accept", "decline", "cancel"', id="another action"),
    ],
)
def test_an_accept_that_does_not_fit_is_no_yes_and_says_what_was_sent(server, http, era, sent, words):
    """In a session in the refusal; statelessly as an error, at once, so that nothing is asked for ever."""
    name = f"unfit-{era}"
    client = Asked(http, server.url, sent)
    message = tool("bash", command=f"touch {name}")
    if era == "2026-07-28":
        error = client.stateless(message)["error"]
        assert (error["code"], len(client.questions)) == (-32602, 1)
        told = error["message"]
        right = f'{{"action": "accept", "content": {{"answer": <one of {CHOICES}>}}}}'
        assert f"Answer {right}, or" in told
    else:
        result = client.begin(era).call(message)["result"]
        assert (result["isError"], len(client.questions)) == (True, 1)
        told = text(result)
        assert "Nothing was changed." in told
    assert words in told
    assert "x" * 50 not in told
    assert not (server.workspace / name).exists()


@pytest.mark.requirement("MRTR-10")
def test_after_an_unfit_answer_the_same_round_may_be_answered_rightly(server, http):
    """The state is as good as it was."""
    client = Asked(http, server.url)
    message = tool("bash", command="touch rightly")
    asked = client.once(message)["result"]
    (key,) = asked["inputRequests"]
    for answer, right in (({"action": "accept"}, False), (says(ONCE)(None)["result"], True)):
        message["params"] |= {"requestState": asked["requestState"], "inputResponses": {key: answer}}
        reply = client.once(message)
        assert ("error" not in reply, (server.workspace / "rightly").exists()) == (right, right), reply


@pytest.mark.requirement("EL-1", "MRTR-5", "LIFE-9")
def test_a_client_that_did_not_say_it_can_ask_is_refused(server, run, era):
    """`ask` means deny there: at once, and as an ordinary result."""
    client, result = run(tool("bash", command=f"touch mute-{era}"), says(ONCE), capabilities={})
    assert (client.questions, result["isError"]) == ([], True)
    assert not (server.workspace / f"mute-{era}").exists()


def test_writing_outside_the_usual_folders_asks(server, run, era):
    """What a rule allows by name goes on without a question."""
    client, result = run(tool("write", path=f"src/{era}.txt", content="x"), fails)
    assert (client.questions, result.get("isError", False)) == ([], False)
    client, result = run(tool("write", path=f"other/{era}.txt", content="x"), says(ONCE))
    assert not result.get("isError"), result
    assert f"other/{era}.txt" in params_of(client.questions[0])["message"]
    assert (server.workspace / f"other/{era}.txt").read_text() == "x"


def test_what_asks_for_nothing_is_not_slowed_down(run):
    """The answer of a session stays plain JSON."""
    client, result = run(tool("bash", command="echo hello"), fails)
    assert (text(result), client.questions, client.notes) == ("hello", [], [])


def test_from_now_on_holds_for_exactly_this(server, run, era):
    """In this session, or statelessly for this person in this harness; another command is another question."""
    name = f"always-{era}"
    client, result = run(tool("bash", command=f"touch {name}"), says(ALWAYS))
    assert not result.get("isError"), result
    _, result = run(tool("bash", command=f"touch {name}"), fails, client)
    assert not result.get("isError"), result
    assert len(client.questions) == 1
    _, result = run(tool("bash", command=f"touch {name}2"), does("decline"), client)
    assert result["isError"]
    assert not (server.workspace / f"{name}2").exists()


def test_from_now_on_ends_with_its_session(server, http):
    """Another session of the same person asks again."""
    first = Asked(http, server.url, says(ALWAYS)).begin()
    assert not first.call(tool("bash", command="touch of-a-session"))["result"].get("isError")
    second = Asked(http, server.url, does("decline")).begin()
    assert second.call(tool("bash", command="touch of-a-session"))["result"]["isError"]


def test_a_client_that_takes_no_stream_cannot_be_asked(server, http):
    """There is no other way to reach it in the middle of a call."""
    client = Asked(http, server.url, says(ONCE)).begin()
    client.headers["accept"] = "application/json"
    result = client.call(tool("bash", command="touch unreachable"))["result"]
    assert (result["isError"], (server.workspace / "unreachable").exists()) == (True, False)


def test_a_client_that_fails_to_ask_is_refused(server, http):
    """An error in place of an answer is no yes."""
    client = Asked(http, server.url, fails).begin()
    assert client.call(tool("bash", command="touch failing"))["result"]["isError"]
    assert len(client.questions) == 1
    assert not (server.workspace / "failing").exists()


@pytest.mark.requirement("LIFE-10", "CAN-1")
def test_a_person_who_is_away_is_waited_for_and_then_the_question_is_withdrawn(server, http):
    """LIFE-10: the client is told that it need not answer any more; a late answer is taken and dropped."""
    client = Asked(http, server.url, silence).begin()
    result = client.call(tool("bash", command="touch late"))["result"]
    asked = client.questions[0]["id"]
    withdrawn = [note["params"]["requestId"] for note in client.notes if note["method"] == "notifications/cancelled"]
    assert (result["isError"], withdrawn) == (True, [asked])
    late = {"jsonrpc": "2.0", "id": asked} | says(ONCE)({})
    headers = {"accept": "application/json, text/event-stream", "mcp-session-id": client.session}
    assert http.post(server.url, json=late, headers=headers).status_code == 202
    assert not (server.workspace / "late").exists()


@pytest.mark.requirement("SES-8")
def test_nobody_answers_for_another_session(server, http):
    """SES-8: the id alone is worth nothing."""
    other = Asked(http, server.url).begin()

    def answers_elsewhere(question):
        yes = {"jsonrpc": "2.0", "id": question["id"]} | says(ONCE)(question)
        headers = {"accept": "application/json, text/event-stream", "mcp-session-id": other.session}
        assert http.post(server.url, json=yes, headers=headers).status_code == 202
        return does("decline")(question)

    client = Asked(http, server.url, answers_elsewhere).begin()
    assert client.call(tool("bash", command="touch stolen"))["result"]["isError"]
    assert not (server.workspace / "stolen").exists()


@pytest.mark.requirement("MRTR-7")
def test_an_answer_holds_for_the_request_that_asked(server, http):
    """MRTR-7: a yes to one command is no yes to another."""
    client = Asked(http, server.url, says(ONCE))
    asked = client.once(tool("bash", command="touch harmless"))["result"]
    answers = {key: says(ONCE)(question)["result"] for key, question in asked["inputRequests"].items()}
    other = tool("bash", command="touch harmful")
    other["params"] |= {"requestState": asked["requestState"], "inputResponses": answers}
    assert client.once(other)["error"]["code"] == -32602
    assert not (server.workspace / "harmful").exists()


@pytest.mark.requirement("MRTR-7")
def test_a_yes_that_comes_without_its_state_is_asked_for_again(server, http):
    """It may have been given for other content, or long ago: the key alone says neither."""
    client = Asked(http, server.url, says(ONCE))
    asked = client.once(tool("write", path="other/kept.txt", content="harmless"))["result"]
    answers = {key: says(ONCE)(question)["result"] for key, question in asked["inputRequests"].items()}
    other = tool("write", path="other/kept.txt", content="harmful")
    other["params"] |= {"inputResponses": answers}
    assert client.once(other)["result"]["resultType"] == "input_required"
    assert not (server.workspace / "other/kept.txt").exists()


@pytest.mark.requirement("EL-2", "EL-3", "EL-4", "LG-4")
def test_a_person_is_asked_for_a_choice_and_for_nothing_else(run, era):
    """Nothing that could be a secret is asked for, and what is said to the log holds nothing of the call."""
    command = "touch long-" + "x" * 5000
    client, _ = run(tool("bash", command=command), says(ALWAYS))
    (question,) = client.questions
    (answer,) = question["params"]["requestedSchema"]["properties"].values()
    assert (answer["type"], answer["enum"]) == ("string", [ONCE, ALWAYS, NO])
    logged = [note["params"]["data"] for note in client.notes if note["method"] == "notifications/message"]
    assert len(logged) == (0 if era == "2026-07-28" else 1)
    assert not any("xxx" in data for data in logged)


@pytest.mark.requirement("CAN-1", "CAN-2", "LIFE-10")
def test_a_question_of_a_call_that_was_withdrawn_is_withdrawn_too(server, http):
    """So that nobody has to answer what nothing waits for; an answer on its way is dropped."""

    def withdraws(question):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        headers = {"accept": "application/json, text/event-stream", "mcp-session-id": client.session}
        assert http.post(server.url, json=cancel, headers=headers).status_code == 202
        return says(ONCE)(question)

    client = Asked(http, server.url, withdraws).begin()
    reply = client.call(tool("bash", command="touch withdrawn"))
    withdrawn = [note["params"]["requestId"] for note in client.notes if note["method"] == "notifications/cancelled"]
    assert (reply["error"]["code"], withdrawn) == (-32800, [client.questions[0]["id"]])
    assert not (server.workspace / "withdrawn").exists()
