"""What every database must give back as it was put in: times, JSON, text, positions in a list. Pure.

The tables and the in-memory twin both use these functions, so that neither accepts what the other refuses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mcp.conversations import Conversation, ConversationPage

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def utc(moment: datetime) -> datetime:
    """The same moment in UTC. Raises ValueError for a naive time: nobody knows which moment that is."""
    if moment.utcoffset() is None:
        raise ValueError("a stored time must have a time zone")
    return moment.astimezone(UTC)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def dump(value: Any) -> str:
    """JSON text of a value, compact, keys in their order; ValueError for NaN and infinity.

    U+0000 and lone surrogates become escapes (`backslashreplace` writes them as JSON does), because
    PostgreSQL refuses the first in text and UTF-8 has no form for the second.
    """
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace").decode("utf-8")


def load(text: str) -> Any:
    """The value that `dump` was given, as JSON knows it: tuples come back as lists."""
    return json.loads(text)


def storable(*texts: str | None) -> bool:
    """Whether every database takes these texts: no U+0000, no lone surrogate."""
    together = "".join(text for text in texts if text is not None)
    return "\0" not in together and (together.isascii() or _encodes(together))


def require_storable(*texts: str | None) -> None:
    """Raise ValueError unless `storable`."""
    if not storable(*texts):
        raise ValueError("text must not contain U+0000 or lone surrogates")


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def position(created: datetime, id: str) -> str:
    """A place in a list ordered by time and id, as text: microseconds since 1970, a dot, the id."""
    return f"{(created - _EPOCH) // _MICROSECOND}.{id}"


def parse_position(text: str) -> tuple[datetime, str]:
    """Time and id of a `position`; ValueError for text that `position` never writes."""
    digits, _, id = text.partition(".")
    try:
        created = _EPOCH + int(digits) * _MICROSECOND
    except (ValueError, OverflowError):
        raise ValueError("not a position in this list") from None
    if not id or not storable(id) or position(created, id) != text:
        raise ValueError("not a position in this list")
    return created, id


def page(found: Sequence[Conversation], limit: int) -> ConversationPage:
    """The first `limit` of what was found, newest first; `after` is set when more was found than that."""
    items = tuple(found[:limit])
    more = len(found) > limit and items
    return ConversationPage(items, position(items[-1].created, items[-1].id) if more else None)
