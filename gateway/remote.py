"""The administrative interface of a server, as the commands use it: requests, pages, and refusals as sentences."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx

from gateway.origins import is_loopback
from gateway.reach import TOKEN_VARIABLE
from gateway.routes import ADMIN
from gateway.token_output import Fields, say

_SECONDS: Final = 30.0
_PAGE: Final = 200
#: Fields of answers that hold a time.
_TIMES: Final = frozenset({"created", "disabled", "expires", "last_seen", "last_used", "revoked"})


class RemoteError(Exception):
    """The server did not do it; the message says why and what to do."""


class Remote:
    """A server's administrative interface."""

    def __init__(self, http: httpx.Client, base: str) -> None:
        self._http = http
        self._base = base

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """What is answered, as JSON; None for nothing. Raises RemoteError."""
        try:
            answer = self._http.request(method, self._base + path, **options)
        except httpx.HTTPError as error:
            raise RemoteError(f"{self._base} cannot be asked: {error}.") from None
        if answer.status_code >= 400:
            raise RemoteError(_words(answer))
        return _json(answer) if answer.content else None

    def get(self, path: str) -> Fields | None:
        """One thing, or None where there is none."""
        try:
            found: Fields = moments(self.ask("GET", path))
        except RemoteError as error:
            if isinstance(error, _MissingError):
                return None
            raise
        return found

    def items(self, path: str, most: int | None = None, **query: Any) -> list[Fields]:
        """Every item of a list, at most so many."""
        found: list[Fields] = []
        asked = {name: value for name, value in query.items() if value is not None}
        while True:
            page = self.ask("GET", path, params=asked | {"limit": _PAGE})
            found += map(moments, page["items"])
            if page["after"] is None or (most is not None and len(found) >= most):
                return found[:most]
            asked["after"] = page["after"]

    def lines(self, path: str, **query: Any) -> Iterator[str]:
        """An export, as it comes."""
        asked = {name: value for name, value in query.items() if value is not None}
        try:
            with self._http.stream("GET", self._base + path, params=asked) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise RemoteError(_words(answer))
                yield from answer.iter_text()
        except httpx.HTTPError as error:
            raise RemoteError(f"{self._base} cannot be asked: {error}.") from None


class _MissingError(RemoteError):
    """There is no such thing."""


@contextmanager
def connected(url: str, token_file: str | None) -> Iterator[Remote]:
    """The interface of the server at that address, with or without `/mcp` at its end. Raises RemoteError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RemoteError(f"{url!r} is no address of a server: write one like https://superpi.example.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        say("the token goes over the network unencrypted: use https where the network is not yours")
    token = _token(token_file)
    base = url.rstrip("/").removesuffix("/mcp").removesuffix(ADMIN).rstrip("/")
    with httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=_SECONDS) as http:
        yield Remote(http, base)


def step(text: str) -> str:
    """A text as one step of a path."""
    return quote(text, safe=":")


def moments(found: Fields) -> Fields:
    """The same with times as such."""
    return {
        name: datetime.fromisoformat(value) if name in _TIMES and isinstance(value, str) else value
        for name, value in found.items()
    }


def _token(file: str | None) -> str:
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RemoteError(f"The token cannot be read from {file}: {error}.") from None
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise RemoteError(f"A token is needed: put an administrator's into {TOKEN_VARIABLE}, or use --token-file.")
    return token


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, UnicodeDecodeError):
        raise RemoteError(f"{answer.url.host} does not answer as Super-Pi does. Is the address right?") from None


def _words(answer: httpx.Response) -> str:
    try:
        problem = json.loads(answer.content)
        words = problem["detail"]
        for fault in problem.get("errors", ()):
            words += f" {fault.get('pointer') or fault.get('parameter')}: {fault['detail']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RemoteError(f"{answer.url.host} answered {answer.status_code}. Is the address right?") from None
    if answer.status_code == 404 and problem.get("code") != "not_found":
        raise _MissingError(words)
    return str(words)
