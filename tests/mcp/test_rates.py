"""What a request counts as, and what a budget that is used up says."""

import json

import pytest

from mcp.limits import Rates
from mcp.meter import CHEAPER, Meter
from mcp.protocol.methods import METHODS
from mcp.protocol.wire import parse
from mcp.rates import CHEAP, WORK, WORKS, Budget, Exceeded, costs

RUNS = frozenset({"bash"})


def message(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def cost(sent):
    return dict(costs(parse(json.dumps(sent).encode()), RUNS))


def test_what_works_is_told_from_what_is_cheap():
    """Lists, pings and discovery are answered from what the server has; answers and notifications are not requests."""
    assert METHODS.keys() >= WORK
    assert {method for method in METHODS if cost(message(method)) == WORKS} == WORK
    answer, note = {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    assert [cost(sent) for sent in (answer, note, {}, message("tools/list"))] == [CHEAP] * 4


def test_a_command_counts_twice():
    """As a call, and as a command."""
    assert cost(message("tools/call", name="bash")) == {Budget.CALLS: 1, Budget.RUNS: 1}
    assert cost(message("tools/call", name="read")) == WORKS
    assert cost(message("tools/call", name=["bash"])) == WORKS
    assert cost(message("prompts/get", name="bash")) == WORKS


def test_a_batch_counts_as_what_it_holds():
    sent = [message("ping"), message("tools/call", name="bash"), message("tools/call", name="ls"), message("ping")]
    assert cost(sent) == {Budget.CHEAP: 2, Budget.CALLS: 2, Budget.RUNS: 1}


def test_a_budget_is_of_one_caller_and_moves_on():
    """One that was refused does not count, or whoever asks on and on would never be let in again."""
    meter = Meter(Rates(seconds=1, calls=3))
    assert [meter.take("alice", WORKS) for _ in range(3)] == [None] * 3
    over = meter.take("alice", WORKS)
    assert (over.budget, over.most, over.seconds, over.wait, over.is_news) == (Budget.CALLS, 3, 1, 1, True)
    assert not meter.take("alice", WORKS).is_news
    assert meter.take("bob", WORKS) is None
    assert [meter.take("alice", CHEAP) for _ in range(3 * CHEAPER)] == [None] * 30
    assert meter.take("alice", CHEAP).budget is Budget.CHEAP


def test_a_batch_beyond_the_whole_budget_takes_all_of_it():
    meter = Meter(Rates(calls=3))
    assert meter.take("alice", {Budget.CALLS: 100}) is None
    assert meter.take("alice", WORKS) is not None


@pytest.mark.parametrize("budget", list(Budget))
def test_a_bound_of_nothing_bounds_nothing(budget):
    meter = Meter(Rates(calls=0, runs=0, credentials=0))
    assert not any(meter.take("alice", {budget: 10_000}) for _ in range(10))
    assert meter.guesses_on("alice") is None


def test_one_credential_a_second_is_looked_at_from_an_address_that_guesses():
    """Behind it there may be somebody whose token is good."""
    meter = Meter(Rates(seconds=60, credentials=2))
    meter.guessed("10.0.0.1")
    assert meter.guesses_on("10.0.0.1") is None
    meter.guessed("10.0.0.1")
    looked = [meter.guesses_on("10.0.0.1") for _ in range(20)]
    assert looked[0] is None
    assert {over.budget for over in looked if over} == {Budget.CREDENTIALS}
    assert meter.guesses_on("10.0.0.2") is None


def test_the_answer_says_when_to_come_again():
    """In whole seconds; by what setting an operator changes it."""
    refused = Exceeded(Budget.CALLS, 20, 10, 7, is_news=True).refused(5)
    assert (refused.refusal.status, refused.id, dict(refused.headers)) == (
        (429, 5, {b"retry-after": b"7", b"ratelimit-policy": b'"calls";q=20;w=10', b"ratelimit": b'"calls";r=0;t=7'})
    )
    assert "Up to 20 in 10 s (SUPERPI_RATES__CALLS). Wait 7 s." in refused.message


def test_replicas_share_a_bound():
    """Rounded up, so that nobody is shut out; and it is whole again when the others have gone."""
    meter = Meter(Rates(calls=10))

    def room(who):
        return sum(meter.take(who, WORKS) is None for _ in range(20))

    assert room("alice") == 10
    meter.share(3)
    assert room("bob") == 4
    meter.share(1)
    assert room("carol") == 10
