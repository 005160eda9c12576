"""A server under fire: requests are sent to it as they are, and whatever answers them is judged."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.fuzz_requests import Message, Request
from tests.support.official import check
from tests.support.raw_http import INITIALIZE, PING

#: The longest that an answer may take, in seconds.
PATIENCE: Final = 5.0
#: Revision of the session that requests name.
REVISION: Final = "2025-06-18"
#: What is refused before a body is looked at, and so without its id.
_BEFORE_THE_BODY: Final = {401, 403, 405, 406, 408, 413, 415, 421}
#: Headers that say for whom a request is, and where its body ends.
_FRAMING: Final = (b"host", b"content-length")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `messages` are those of a JSON body or of as much of an event stream as it took."""

    status: int
    kind: str
    messages: list[Any]


@dataclass(frozen=True, slots=True)
class AnswerError(Exception):
    """An answer that must not be, or none."""

    why: str
    request: Request

    def __str__(self) -> str:
        return f"{self.why}\n{self.request.encode()[:3000]!r}"


# --- sending


def send(url: str, request: Request) -> Answer:
    """Send it on a connection of its own; raises AnswerError when no answer comes in time."""
    address = urlsplit(url)
    deadline = time.monotonic() + PATIENCE
    try:
        with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as sock:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered, and read no further
                sock.sendall(request.encode())
            answer = HTTPResponse(sock, method=request.method.decode("latin-1"))
            answer.begin()
            return Answer(answer.status, answer.getheader("content-type", ""), _messages(answer, deadline))
    except (OSError, HTTPException) as error:
        raise AnswerError(f"no answer: {error!r}", request) from None


def _messages(answer: HTTPResponse, deadline: float) -> list[Any]:
    kind = answer.getheader("content-type", "")
    if kind.startswith("text/event-stream"):
        return _events(answer, deadline)
    body = answer.read()
    return [json.loads(body)] if kind == "application/json" and body else []


def _events(answer: HTTPResponse, deadline: float) -> list[Any]:
    """The messages of a stream up to the reply, or up to the acknowledgement of one that has no end."""
    found: list[Any] = []
    while line := answer.readline():
        if time.monotonic() > deadline:
            raise TimeoutError("the stream goes on")
        if line.startswith(b"data:"):
            found.append(json.loads(line[5:]))
            last = found[-1]
            if isinstance(last, dict) and last.get("method") == "notifications/subscriptions/acknowledged":
                break
    return found


# --- judging


def judge(request: Request, answer: Answer) -> None:
    """Raise AnswerError unless the answer is one that may be given to that request."""
    if answer.status >= 500:
        raise AnswerError(f"status {answer.status}: {answer.messages}", request)
    if request.path.partition(b"?")[0] != b"/mcp":
        return
    sent = _read(request.body)
    try:
        for message in answer.messages if _tells_apart(sent) else []:
            check(message, sent, None)
    except AssertionError as error:
        raise AnswerError(str(error), request) from None
    if request.method == b"POST" and answer.status not in _BEFORE_THE_BODY and _is_request(sent):
        _judge_id(request, answer, sent)


def _judge_id(request: Request, answer: Answer, sent: Message) -> None:
    hosts, lengths = ([value for name, value in request.headers if name.lower() == one] for one in _FRAMING)
    is_whole = [length.strip() for length in lengths] == [str(len(request.body)).encode()]
    if answer.status == 400 and (len(hosts) != 1 or not is_whole or not answer.kind.startswith("application/json")):
        return  # HTTP itself is broken, or its body is another one than was meant
    if answer.status == 200 and not answer.messages:
        raise AnswerError("a request was answered with nothing", request)
    if answer.status == 202:
        raise AnswerError("a request was taken for something that needs no answer", request)
    replies = [message for message in answer.messages if isinstance(message, dict) and "method" not in message]
    listens = any(message.get("method") for message in answer.messages if isinstance(message, dict))
    if not listens and [reply.get("id") for reply in replies] != [sent["id"]]:
        raise AnswerError(f"the answer does not carry the id: {answer}", request)


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_request(sent: Any) -> bool:
    """Whether it is a request with an id that can be given back: half of a surrogate pair cannot."""
    if not isinstance(sent, dict) or not isinstance(sent.get("method"), str):
        return False
    match sent.get("id"):
        case bool():
            return False
        case str(id):
            return not any("\ud800" <= sign <= "\udfff" for sign in id)
        case id:
            return isinstance(id, int)


def _tells_apart(sent: Any) -> bool:
    """Whether answers can be told apart by their ids."""
    ids = [repr(one.get("id")) for one in sent if isinstance(one, dict)] if isinstance(sent, list) else []
    return len(ids) == len(set(ids))


# --- both


@dataclass(slots=True)
class Target:
    """A server, and the session that requests name: begun anew when one of them has ended it."""

    url: str
    ask: Callable[..., Any]
    _session: str = ""

    def session(self) -> str:
        """The id of a session that lives."""
        if not self._session or self._ping(self._session) == 404:
            params = INITIALIZE["params"] | {"protocolVersion": REVISION}
            self._session = self.ask(INITIALIZE | {"params": params}).headers["mcp-session-id"]
        return self._session

    def fire(self, request: Request) -> Answer:
        """Send a request, judge its answer, and see that the server still serves; raises AnswerError."""
        answer = send(self.url, request)
        judge(request, answer)
        status = self._ping(self.session())
        if status == 404:
            # Bytes that follow a DELETE and are no request are refused before the session has ended.
            status = self._ping(self.session())
        if status != 200:
            raise AnswerError(f"afterwards a ping is answered {status}", request)
        return answer

    def _ping(self, session: str) -> int:
        status: int = self.ask(PING, session).status_code
        return status
