"""Multi round-trip requests: what the client has to answer first, and the state that comes back with the answers.

`requestState` is in the client's hands, so it is signed, for the principal and harness it was made for, the request it
belongs to, and until when (MRTR-6, MRTR-7). It holds the answers of earlier rounds, so that any replica can go on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.protocol import codec
from mcp.protocol.errors import Reason, Refusal
from mcp.protocol.state import State
from mcp.protocol.wire import Request

#: Bytes of answers that all rounds of a request may hold together.
MOST_BYTES: Final = 65_536
_MAC_BYTES: Final = 16
#: The parameters that are about the round, not about the request.
_OF_THE_ROUND: Final = frozenset({"_meta", "requestState", "inputResponses"})


@dataclass(frozen=True, slots=True)
class Rounds:
    """What earlier rounds of a request brought: the client's results by key, and what the last round asked.

    `volunteered` are results that came without a state: nothing says for which call they were given, or when.
    """

    answers: Mapping[str, Any]
    asked: tuple[str, ...] = ()
    volunteered: Mapping[str, Any] = field(default_factory=dict)


NONE: Final = Rounds({})


def begin(request: Request, state: State, keys: tuple[bytes, ...], now: float) -> Rounds | Refusal:
    """What a request brings from earlier rounds; a refusal for a state that is not ours, or too old.

    Answers may come without a state, before anybody asked: what they are worth is for whoever asks to say. With a
    state, answers to anything but its questions are passed over (MRTR-10).
    """
    token, responses = request.params.get("requestState"), request.params.get("inputResponses")
    if responses is None:
        responses = {}
    if not isinstance(responses, dict):
        return _invalid('"inputResponses" is an object')
    if token is None:
        return _within_bounds(Rounds({}, volunteered=responses)) if responses else NONE
    if not isinstance(token, str):
        return _invalid('"requestState" is a string')
    held = _verify(token, request, state, keys)
    if held is None:
        return _invalid("the requestState is not one that was given for this request")
    if held["until"] < now:
        return _invalid("the requestState has expired; send the request without it")
    asked = tuple(held["asked"])
    answers = held["answers"] | {key: value for key, value in responses.items() if key in asked}
    return _within_bounds(Rounds(answers, asked))


def _within_bounds(brought: Rounds) -> Rounds | Refusal:
    if len(codec.encode([brought.answers, brought.volunteered])) > MOST_BYTES:
        return _invalid(f"the answers are longer than {MOST_BYTES} bytes together")
    return brought


def state_token(
    request: Request,
    state: State,
    keys: tuple[bytes, ...],
    *,
    answers: Mapping[str, Any],
    asked: tuple[str, ...],
    until: float,
) -> str:
    """The `requestState` of a round that asks for `asked`, good until that second of the epoch."""
    body = codec.encode({"until": until, "asked": asked, "answers": answers})
    return _text(_mac(keys[0], request, state, body) + body)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _verify(token: str, request: Request, state: State, keys: tuple[bytes, ...]) -> Any:
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if _text(raw) != token:
        # Another spelling of the same bytes.
        return None
    mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not any(hmac.compare_digest(mac, _mac(key, request, state, body)) for key in keys):
        return None
    return codec.decode(body)


def _mac(key: bytes, request: Request, state: State, body: bytes) -> bytes:
    salient = {name: value for name, value in request.params.items() if name not in _OF_THE_ROUND}
    digest = hashlib.sha256(codec.canonical([request.method, salient])).digest()
    parts = (b"requestState", state.principal.encode(), state.harness.encode(), digest, body)
    return hmac.digest(key, b"\x00".join(parts), hashlib.sha256)[:_MAC_BYTES]


def _invalid(why: str) -> Refusal:
    return Refusal(Reason.INVALID_PARAMS, f"Invalid params: {why}")
