"""What is asked for, as a table: one row is one request that is sent over and over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REVISION: Final = "2025-11-25"
#: The file of the workspace that is read.
FILE: Final = "src/app.py"
_TEXT: Final = "".join(f"line_{number} = {number}\n" for number in range(40))


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `in_session` is whether it belongs to a session; every subject has to answer the same bytes."""

    name: str
    method: str
    params: Mapping[str, Any]
    in_session: bool = True

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
