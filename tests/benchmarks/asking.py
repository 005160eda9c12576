"""One request over a socket of its own, exactly as the load sends it, and the whole answer with its size."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Shot:
    """A request as the load sends it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `size` counts its bytes with the status line and the headers."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    size: int


def ask(shot: Shot) -> Answer:
    """Send one request and read its answer, which has to say its length."""
    parts = urlsplit(shot.url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", f"Content-Length: {len(shot.body)}"]
    lines += [f"{name}: {value}" for name, value in shot.headers.items()]
    with socket.create_connection((parts.hostname, parts.port), _SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + shot.body)
        with connection.makefile("rb") as stream:
            return _answer(stream)


def _answer(stream) -> Answer:
    first = stream.readline()
    size = len(first)
    headers = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        size += len(line)
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers["content-length"]))
    return Answer(int(first.split()[1]), headers, body, size + len(b"\r\n") + len(body))
