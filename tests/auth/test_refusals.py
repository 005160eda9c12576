"""A refusal says who refused what and why, in words and as data, and a question what a yes would let happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import WHOLE, Ask, Deny, Layer, Mode
from auth.refusals import META_KEY, question_text, refusal_data, refusal_text

DENY = Deny("it changes files, and the mode read_only only reads", Layer.REMOTE, Mode.READ_ONLY)


def test_the_text_names_the_tool_the_layer_the_reason_and_the_mode_and_that_nothing_was_changed():
    assert refusal_text("edit", DENY) == (
        "edit was refused by the remote cap: it changes files, and the mode read_only only reads. "
        "The mode here is read_only. Nothing was changed."
    )


def test_the_data_says_the_same():
    assert (META_KEY, refusal_data("edit", DENY)) == (
        "io.superpi/refusal",
        {
            "tool": "edit",
            "mode": "read_only",
            "layer": "remote cap",
            "reason": "it changes files, and the mode read_only only reads",
        },
    )


ASK = Ask("a rule asks about git push*", Layer.RULE, Mode.FULL, "git push\n")


def test_a_yes_that_is_missing_is_a_refusal_that_says_what_it_waits_for():
    assert refusal_text("bash", ASK) == (
        "bash was refused by the rule: this needs a yes from a person (a rule asks about git push*), and none was "
        "given. The mode here is full. Nothing was changed."
    )
    assert refusal_data("bash", ASK) == {
        "tool": "bash",
        "mode": "full",
        "layer": "rule",
        "reason": "this needs a yes from a person (a rule asks about git push*), and none was given",
        "ask": True,
        "subject": r"git push\n",
    }


def test_what_became_of_the_question_is_said():
    assert "git push*), and the person said no. The mode" in refusal_text("bash", ASK, "the person said no")


def test_the_subject_in_the_data_is_bounded():
    long = Ask("r", Layer.RULE, Mode.FULL, "x" * 100_000)
    assert len(refusal_data("bash", long)["subject"]) < 1100


def test_a_question_about_a_command():
    assert question_text("bash", ASK).split("\n\n") == [
        "May bash run this command?",
        r"    git push\n",
        r"Here \n is the end of a line, \x.., \u.. and \U.. are characters by their code, and \\ is a backslash.",
        "A yes is needed for this reason:",
        "    a rule asks about git push*",
        "The mode here is full.",
    ]


@pytest.mark.parametrize(
    ("tool", "subject", "parts"),
    [
        pytest.param("write", "src/a.py", ["May write create or replace this file?", "    src/a.py"], id="a file"),
        pytest.param(
            "ls", ".", ["May ls list this folder?", "    .", "This is the whole workspace."], id="the workspace"
        ),
        pytest.param(
            "read",
            "/extra/a",
            ["May read show the content of this file?", "    /extra/a", "This is outside the workspace."],
            id="an extra root",
        ),
        pytest.param("bash", "/bin/ls", ["May bash run this command?", "    /bin/ls"], id="a program by its path"),
        pytest.param("read", WHOLE, ["May read be used on everything?"], id="no subject"),
        pytest.param("other", "a", ["May other do this?", "    a"], id="another tool"),
        pytest.param(
            "bash",
            "x" * 2000,
            [
                "May bash run this command?",
                "    " + "x" * 600,
                "[1,000 characters are left out here]",
                "    " + "x" * 400,
            ],
            id="a long command, cut in the middle",
        ),
    ],
)
def test_a_question_says_what_would_happen_to_what(tool, subject, parts):
    asked = question_text(tool, Ask("a rule asks about x", Layer.RULE, Mode.FULL, subject)).split("\n\n")
    assert asked == [*parts, "A yes is needed for this reason:", "    a rule asks about x", "The mode here is full."]


@given(st.text(min_size=1, max_size=1500), st.sampled_from(["bash", "write"]))
def test_whatever_the_subject_it_adds_no_line_of_its_own(subject, tool):
    lines = question_text(tool, Ask("why", Layer.RULE, Mode.FULL, subject)).splitlines()
    own = [line for line in lines if line and not line.startswith("    ")]
    assert own[0].startswith(f"May {tool} ")
    assert own[-2:] == ["A yes is needed for this reason:", "The mode here is full."]
    assert all(line.startswith(("[", "Here ", "This is ")) for line in own[1:-2])
