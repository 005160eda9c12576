"""A refusal as a tool result. The words and the data come from `auth.refusals`."""

from __future__ import annotations

from auth.permissions import Deny, Layer, Policy
from auth.refusals import META_KEY, refusal_data, refusal_text
from mcp.protocol.content import Text, ToolResult


def refusal_result(tool: str, deny: Deny) -> ToolResult:
    """The result of a call that the policy refused: `is_error`, words as text, data under `META_KEY`."""
    return ToolResult(
        content=(Text(refusal_text(tool, deny)),), is_error=True, meta={META_KEY: dict(refusal_data(tool, deny))}
    )


def refusal_of(result: ToolResult, policy: Policy) -> Deny | None:
    """The refusal that a result tells of, if it is one: a tool may find out only at the path that it opens."""
    data = (result.meta or {}).get(META_KEY)
    if not isinstance(data, dict):
        return None
    return Deny(str(data["reason"]), Layer(data["layer"]), policy.mode)
