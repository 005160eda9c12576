"""A conversation as JSON Lines: one complete object a line, LF, UTF-8. Pure.

It writes what it is given; keeping secrets out is the business of whoever stores the entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from mcp.conversations import Entry

MIME_TYPE: Final = "application/jsonl"

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def transcript_line(entry: Entry) -> str:
    """One line with its LF: `seq`, `ts` (UTC, milliseconds) and `kind` first, then the fields of the body.

    A body cannot take the place of these three. U+2028 and the like stay characters of a string, so readers
    split on LF only; a lone surrogate, which UTF-8 cannot hold, is written as an escape.
    """
    head = {"seq": entry.seq, "ts": timestamp(entry.ts), "kind": entry.kind}
    body = {name: value for name, value in entry.body.items() if name not in head}
    text = json.dumps(head | body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def transcript(entries: Iterable[Entry]) -> str:
    """The lines of all entries; no entries are the empty text."""
    return "".join(map(transcript_line, entries))


def timestamp(moment: datetime) -> str:
    """An aware time as ISO 8601 in UTC with milliseconds: `2026-11-30T21:38:00.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
