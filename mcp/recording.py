"""What is told of a tool call: its audit row, and its place in the metrics. Pure but for the two it tells.

Arguments and results are never part of it, only their digest and their size.
"""

from __future__ import annotations

from dataclasses import dataclass

from auth.permissions import Deny
from mcp.protocol.content import Audio, Image, Text, ToolResult
from mcp.protocol.effects import CallRejected, CallTool
from mcp.rates import Exceeded
from telemetry import tracing
from telemetry.audit import AuditRecord, AuditTrail, Decision, digest
from telemetry.metrics import OTHER, Metrics
from telemetry.tracing import Attribute

ACTION = "tools/call"
#: The action of a request that was refused before anybody looked what it holds; its object is the method and the path.
ENDPOINT_ACTION = "mcp"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What surrounds a call: whose it is and the request that it came in."""

    principal: str
    token: str | None
    request_id: str
    address: str | None
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class Recorder:
    """Tells the audit trail and the metrics of calls."""

    trail: AuditTrail
    metrics: Metrics

    def refused(self, effect: CallTool, around: Circumstances, deny: Deny, seconds: float, *, changes: bool) -> None:
        """The policy said no."""
        self.metrics.refusal(deny.layer.value)
        span = tracing.current()
        span.set(Attribute.LAYER, deny.layer.value)
        span.fail("refused")
        self.metrics.tool_call(effect.name, "refused", seconds)
        self._tell(effect, around, Decision.REFUSED, f"{deny.layer.value}: {deny.reason}", seconds, None, changes)

    def ended(
        self,
        effect: CallTool,
        around: Circumstances,
        result: ToolResult | None,
        seconds: float,
        *,
        changes: bool,
        consent: str | None = None,
    ) -> None:
        """The call ran; `result` is None when it was cancelled or broke, `consent` how a person allowed it."""
        failed = result is None or result.is_error
        if failed:
            tracing.current().fail("tool_error")
        self.metrics.tool_call(effect.name, "cancelled" if result is None else "error" if failed else "ok", seconds)
        reason = "cancelled or broken" if result is None else None if consent is None else f"a person: {consent}"
        size = None if result is None else _size(result)
        decision = Decision.FAILED if failed else Decision.ALLOWED
        self._tell(effect, around, decision, reason, seconds, size, changes)

    def rejected(self, call: CallRejected, around: Circumstances) -> None:
        """The call came to no tool. The name is the caller's own where no tool has it, so no metric bears it."""
        self.metrics.tool_call(call.name if call.known else OTHER, "invalid", 0.0)
        decision, reason = (
            (Decision.FAILED, "the arguments are not valid") if call.known else (Decision.REFUSED, "no such tool")
        )
        self._tell(call, around, decision, reason, 0.0, None, changes=False)

    def limited(self, request: str, around: Circumstances, exceeded: Exceeded) -> None:
        """The request came too fast. A row for each would be one more thing that grows with them."""
        self.metrics.limited(exceeded.budget)
        if exceeded.is_news:
            self.shut_out(request, around, f"rate: {exceeded.budget}")

    def shut_out(self, request: str, around: Circumstances, reason: str) -> None:
        """The request (its method and path) was not looked at, and why."""
        self.trail.record(
            AuditRecord(
                around.request_id,
                around.principal,
                ENDPOINT_ACTION,
                request,
                Decision.REFUSED.value,
                reason,
                around.trace_id,
                around.token,
                around.address,
            ),
            changes=False,
        )

    def _tell(
        self,
        effect: CallTool | CallRejected,
        around: Circumstances,
        decision: Decision,
        reason: str | None,
        seconds: float,
        size: int | None,
        changes: bool,  # noqa: FBT001 - private, and named at each call
    ) -> None:
        tracing.current().set(Attribute.DECISION, decision.value)
        arguments_sha256, arguments_bytes = digest(effect.arguments)
        record = AuditRecord(
            request_id=around.request_id,
            principal=around.principal,
            action=ACTION,
            object=effect.name,
            decision=decision.value,
            reason=reason,
            trace_id=around.trace_id,
            token=around.token,
            address=around.address,
            duration_ms=round(seconds * 1000),
            arguments_sha256=arguments_sha256,
            arguments_bytes=arguments_bytes,
            result_bytes=size,
        )
        self.trail.record(record, changes=changes)


def _size(result: ToolResult) -> int:
    """The characters of a result's text and pictures."""
    size = 0
    for block in result.content:
        match block:
            case Text():
                size += len(block.text)
            case Image() | Audio():
                size += len(block.data)
    return size
