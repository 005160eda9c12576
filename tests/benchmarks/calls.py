"""What is asked for, as a table: one row is one request that is sent over and over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REVISION: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
_CLAIM: Final = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    }
}
#: The file of the workspace that is read.
FILE: Final = "src/app.py"
_TEXT: Final = "".join(f"line_{number} = {number}\n" for number in range(40))


@dataclass(frozen=True, slots=True)
class Call:
    """One request, in a session, or for itself as 2026-07-28 has it; every subject has to answer the same bytes."""

    name: str
    method: str
    params: Mapping[str, Any]
    in_session: bool = True

    @property
    def headers(self) -> dict[str, str]:
        """What a stateless request repeats of its body; nothing for the others."""
        if "_meta" not in self.params:
            return {}
        repeated = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": self.method}
        return repeated | ({"Mcp-Name": self.params["name"]} if "name" in self.params else {})

    @property
    def body(self) -> bytes:
        """The request's body."""
        return _json({"jsonrpc": "2.0", "id": 1, "method": self.method, "params": self.params})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


CALLS: Final = (
    Call("ping", "ping", {}),
    Call("tools/list", "tools/list", {}),
    Call("tools/call read", "tools/call", {"name": "read", "arguments": {"path": FILE}}),
    Call("tools/list, stateless", "tools/list", _CLAIM, in_session=False),
    Call(
        "tools/call read, stateless",
        "tools/call",
        {"name": "read", "arguments": {"path": FILE}} | _CLAIM,
        in_session=False,
    ),
    Call(
        "initialize",
        "initialize",
        {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
        in_session=False,
    ),
)


def fill(workspace: Path) -> None:
    """Put into a workspace what the calls need."""
    file = workspace / FILE
    file.parent.mkdir(parents=True)
    file.write_text(_TEXT)
