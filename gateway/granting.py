"""What the command line and the administrative interface share on grants: as data, and withdrawn with their row.

Knows neither arguments nor HTTP.
"""

from __future__ import annotations

from typing import Any

from gateway.issuing import audited
from mcp.grants import Grant, GrantStore, OfHarness
from mcp.recording import Circumstances


async def withdraw(grants: GrantStore, id: str, by: Circumstances) -> Grant | None:
    """End the grant and answer it; the row of the change says whose it was and of which tool. None: no such grant."""
    return await grants.remove(
        None, id, also=lambda grant: audited("grant.revoke", id, by, reason=f"{grant.tool}, of {grant.principal}")
    )


def grant_fields(grant: Grant) -> dict[str, Any]:
    """Everything about a grant that is for people, as data. A session's id is not: without tokens it lets one in."""
    harness = grant.reach if isinstance(grant.reach, OfHarness) else None
    return {
        "id": grant.id,
        "principal": grant.principal,
        "tool": grant.tool,
        "subject": grant.subject,
        "reach": "session" if harness is None else "harness",
        "harness": None if harness is None else harness.id,
        "expires": None if harness is None else harness.expires,
        "token": grant.token,
        "created": grant.created,
    }
