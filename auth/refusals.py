"""A refusal, and a question that would lift it, in words for a person or a model, and as data for a program. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from auth.permissions import WHOLE, Ask, Refusal
from auth.showing import show

#: The key of the machine-readable part in a result's `_meta`.
META_KEY: Final = "io.superpi/refusal"
#: Why a yes is missing where nobody could be asked, as the end of a sentence.
NO_YES: Final = "none was given"

#: What a yes to a tool lets it do.
_WOULD: Final = {
    "read": "show the content of this file",
    "write": "create or replace this file",
    "edit": "change this file and show what it changes",
    "bash": "run this command",
    "grep": "search here and show what it finds",
    "find": "list what is below this folder",
    "ls": "list this folder",
}


def refusal_text(tool: str, refusal: Refusal, why: str = NO_YES) -> str:
    """Three sentences: who refused what and why, in which mode, and that nothing happened.

    `why` says what became of the question, for an `Ask`.
    """
    return (
        f"{tool} was refused by the {refusal.layer.value}: {_reason(refusal, why)}. "
        f"The mode here is {refusal.mode.label}. Nothing was changed."
    )


def refusal_data(tool: str, refusal: Refusal, why: str = NO_YES) -> Mapping[str, Any]:
    """The same as data: `tool`, `mode`, `layer` and `reason`; for an `Ask` also `ask`, and the `subject` as shown."""
    data = {
        "tool": tool,
        "mode": refusal.mode.label,
        "layer": refusal.layer.value,
        "reason": _reason(refusal, why),
    }
    return data | {"ask": True, "subject": show(refusal.subject).line} if isinstance(refusal, Ask) else data


def question_text(tool: str, ask: Ask) -> str:
    """The question to a person, in plain text: what would happen to what, and why it is asked.

    What the caller wrote stands on indented lines of its own, which it cannot leave (`auth.showing`).
    """
    if ask.subject == WHOLE:
        parts = [f"May {tool} be used on everything?"]
    else:
        parts = [f"May {tool} {_WOULD.get(tool, 'do this')}?", *_about(tool, ask.subject)]
    reason = f"    {show(ask.reason).line}"
    return "\n\n".join([*parts, "A yes is needed for this reason:", reason, f"The mode here is {ask.mode.label}."])


def _about(tool: str, subject: str) -> Iterator[str]:
    """The subject and what has to be known about it."""
    text = show(subject)
    yield f"    {text.head}"
    if text.left_out:
        yield f"[{text.left_out:,} characters are left out here]"
        yield f"    {text.tail}"
    if text.escaped:
        yield r"Here \n is the end of a line, \x.., \u.. and \U.. are characters by their code, and \\ is a backslash."
    if tool != "bash" and subject == ".":
        yield "This is the whole workspace."
    if tool != "bash" and subject.startswith("/"):
        yield "This is outside the workspace."


def _reason(refusal: Refusal, why: str) -> str:
    if isinstance(refusal, Ask):
        return f"this needs a yes from a person ({refusal.reason}), and {why}"
    return refusal.reason
