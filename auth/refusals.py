"""A refusal in words for a person or a model, and as data for a program. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from auth.permissions import Deny

#: The key of the machine-readable part in a result's `_meta`.
META_KEY: Final = "io.superpi/refusal"


def refusal_text(tool: str, deny: Deny) -> str:
    """Three sentences: who refused what and why, in which mode, and that nothing happened."""
    return (
        f"{tool} was refused by the {deny.layer.value}: {deny.reason}. "
        f"The mode here is {deny.mode.label}. Nothing was changed."
    )


def refusal_data(tool: str, deny: Deny) -> Mapping[str, str]:
    """The same as data: `tool`, `mode`, `layer` and `reason`."""
    return {"tool": tool, "mode": deny.mode.label, "layer": deny.layer.value, "reason": deny.reason}
