"""What the command line and the administrative interface share on sessions: one as data."""

from __future__ import annotations

from typing import Any

from mcp.sessions import Session


def session_fields(session: Session) -> dict[str, Any]:
    """Everything about a session that is for people, as data. Its id is not: without tokens it lets one in."""
    state = session.state
    return {
        "label": session.label,
        "principal": session.principal,
        "harness": state.harness or None,
        "revision": state.revision and state.revision.value,
        "client": dict(state.client),
        "created": session.created,
        "last_seen": session.last_seen,
    }
