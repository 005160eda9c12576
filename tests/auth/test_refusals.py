"""A refusal says who refused what and why, in words and as data."""

from __future__ import annotations

from auth.permissions import Deny, Layer, Mode
from auth.refusals import META_KEY, refusal_data, refusal_text

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
