"""Where something stands within JSON, in words for whoever sent it."""

from __future__ import annotations

from collections.abc import Iterable


def place(steps: Iterable[str | int]) -> str:
    """`("edits", 0, "old_text")` as `edits[0].old_text`; empty for the whole."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
