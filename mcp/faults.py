"""What could not be done, as a value: for the person or model that asked, never for a debugger."""

from __future__ import annotations

from dataclasses import dataclass

from auth.permissions import Refusal


@dataclass(frozen=True, slots=True)
class Fault:
    """An expected failure in words that say what to do next.

    `message` names things as the caller gave them and never a directory of the server. `deny` is set
    when the permission policy, not the world, said no, or wants a person to say yes.
    """

    message: str
    deny: Refusal | None = None
