"""A refusal as a tool result. The words and the data come from `auth.refusals`."""

from __future__ import annotations

from dataclasses import dataclass

from auth.permissions import Ask, Deny, Layer, Policy, Refusal
from auth.refusals import META_KEY, NO_YES, refusal_data, refusal_text
from mcp.protocol.content import Text, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered(ToolResult):
    """A call that waits for a yes: as it stands a refusal, so that it is one where nobody asks."""

    ask: Ask


def refusal_result(tool: str, refusal: Refusal, why: str = NO_YES) -> ToolResult:
    """The result of a call that the policy refused: `is_error`, words as text, data under `META_KEY`.

    `why` ends the sentence about a yes that is missing: `none was given`, `the person said no`.
    """
    content = (Text(refusal_text(tool, refusal, why)),)
    meta = {META_KEY: dict(refusal_data(tool, refusal, why))}
    if isinstance(refusal, Ask):
        return Unanswered(content, is_error=True, meta=meta, ask=refusal)
    return ToolResult(content, is_error=True, meta=meta)


def refusal_of(result: ToolResult, policy: Policy) -> Deny | None:
    """The refusal that a result tells of, if it is one: a tool may find out only at the path that it opens.

    A yes that is missing counts as a refusal too.
    """
    data = (result.meta or {}).get(META_KEY)
    if not isinstance(data, dict):
        return None
    return Deny(str(data["reason"]), Layer(data["layer"]), policy.mode)


def ask_of(result: ToolResult) -> Ask | None:
    """What a person has to say yes to before the call can go on, if that is what stopped it: nothing was changed."""
    return result.ask if isinstance(result, Unanswered) else None
