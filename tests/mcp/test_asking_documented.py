"""What docs/permissions.md says of asking, held against the code: the forms on the wire, and the bounds."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from mcp import calls
from mcp.consent import ALWAYS, LASTING, NO, ONCE
from mcp.grants import MOST_GRANTS, MOST_SUBJECT
from mcp.protocol.questions import Elicit, Elicited, read

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "permissions.md").read_text("utf-8")
ASKING = PAGE[PAGE.index("### Asking") : PAGE.index("### Paths and commands")]
BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", ASKING, re.DOTALL)]
(QUESTION,) = (block["params"] for block in BLOCKS if block.get("method") == "elicitation/create")
ANSWERS = [block["result"] for block in BLOCKS if "result" in block] + [
    answer for block in BLOCKS for answer in block.get("params", {}).get("inputResponses", {}).values()
]


def test_the_answers_are_those_that_are_offered():
    assert QUESTION["requestedSchema"]["properties"]["answer"]["enum"] == [ONCE, ALWAYS, NO]
    for answer in (ONCE, ALWAYS, NO):
        assert f"| `{answer}` |" in ASKING


@pytest.mark.parametrize("answer", ANSWERS, ids=["in a session", "without one"])
def test_the_answer_of_each_era_is_a_yes(answer):
    question = Elicit(QUESTION["message"], QUESTION["requestedSchema"])
    assert read(question, answer) == Elicited("accept", {"answer": ONCE})


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        ("for {} hours", LASTING // timedelta(hours=1)),
        ("has {} at most", MOST_GRANTS),
        ("more than {} characters is allowed once", MOST_SUBJECT),
        ("good for {} minutes", int(calls._ROUND_SECONDS // 60)),
    ],
)
def test_the_bounds_are_those_of_the_code(words, bound):
    assert words.format(bound) in ASKING.replace("\n  ", " ").replace("\n", " ")
