"""Taking secrets out of text before it leaves the process. Pure; knows no logger and no setting.

What is masked: the values it is told, `spi_` tokens, `Bearer` and `Basic` credentials, JSON Web Tokens, passwords,
credentials in URLs, and query strings. Too much masked is a nuisance, too little is an incident, so in doubt a rule
masks. Time is linear in the text: no rule can scan the same stretch from more than one start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"

#: Shorter values are words of the language: masking them would hide the log and tell the value.
SHORTEST: Final = 4

#: Words that name a secret when they are a key, or the end of one (`x_api_key`).
_SECRET_KEY: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:authorization|cookie|passw(?:or)?d|secret|token|credentials?|(?:api|private|access)[_-]?key)$"
)

#: Characters of RFC 6750 tokens, and the mask itself, so that a masked text stays as it is.
_CREDENTIAL: Final = re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)(spi_[a-z]{2,8}_)?[\w.~+/=*-]+")
_TOKEN: Final = re.compile(r"(?i)(spi_[a-z]{2,8}_)[\w*-]+")
_DOTTED: Final = re.compile(r"[\w.*-]+")
#: The start of a JSON object in Base64, as long as the shortest header of a JWT's name.
_JWT_HEAD: Final = re.compile(r"eyJ[\w-]{9}")
_PASSWORD: Final = re.compile(
    r"""(?i)(passw(?:or)?d\\?["']?[ \t]*[=:][ \t]*)(?=[^\s,;&])(?:\\?"[^"]*"?|\\?'[^']*'?)?[^\s,;&"']*"""
)
_USER_AND_PASSWORD: Final = re.compile(r"(://[^\s/?#:@]*:)[^\s/?#]*@")
_USER_ALONE: Final = re.compile(r"(://)[^\s/?#:@]+@")
_WORD: Final = re.compile(r"""[^\s"'<>]+""")


class Redactor:
    """`redact` for a fixed set of secret values, prepared once."""

    __slots__ = ("_values",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        long_enough = {secret for secret in secrets if len(secret) >= SHORTEST}
        self._values = tuple(sorted({form for secret in long_enough for form in _forms(secret)}))

    def __call__(self, text: str) -> str:
        """The text with every secret masked; applying it again changes nothing.

        Only secrets that themselves contain the mask's character can make a second pass mask more.
        """
        return _patterns(_without(text, self._values))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with those values, and everything that has the form of a secret, masked."""
    return _redactor(tuple(secrets))(text)


def names_a_secret(key: str) -> bool:
    """Whether a key says that its value is a secret (`password`, `x-api-key`, `Authorization`)."""
    return _SECRET_KEY.search(key) is not None


@lru_cache(maxsize=16)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


def _forms(secret: str) -> frozenset[str]:
    """How a value looks in text that was written by a program: as it is, in a URL, in JSON, in a `repr`."""
    encodable = secret.encode("utf-8", "replace")
    written = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    return frozenset({secret, quote(encodable, safe=""), quote_plus(encodable), *written})


def _without(text: str, values: tuple[str, ...]) -> str:
    """Mask every occurrence of every value; what overlaps becomes one mask."""
    present = [value for value in values if value in text]
    if not present:
        return text
    kept: list[str] = []
    end = 0
    for start, stop in sorted(span for value in present for span in _spans(text, value)):
        if start >= end:
            kept += (text[end:start], MASK)
        end = max(end, stop)
    return "".join((*kept, text[end:]))


def _spans(text: str, value: str) -> list[tuple[int, int]]:
    spans = []
    at = text.find(value)
    while at >= 0:
        spans.append((at, at + len(value)))
        at = text.find(value, at + 1)
    return spans


def _patterns(text: str) -> str:
    """The rules about forms; each is tried only where its mark is, so that ordinary text costs little."""
    lower = text.lower()
    if "bearer" in lower or "basic" in lower:
        text = _CREDENTIAL.sub(rf"\1\g<2>{MASK}", text)
    if "spi_" in lower:
        text = _TOKEN.sub(rf"\1{MASK}", text)
    if "passw" in lower:
        text = _PASSWORD.sub(rf"\1{MASK}", text)
    if "eyJ" in text:
        text = _DOTTED.sub(_mask_jwt, text)
    if "://" in text:
        text = _USER_ALONE.sub(rf"\1{MASK}@", _USER_AND_PASSWORD.sub(rf"\1{MASK}@", text))
    if "?" in text:
        text = _WORD.sub(_mask_query, text)
    return text


def _mask_jwt(found: re.Match[str]) -> str:
    word = found[0]
    # The header must be followed by another segment, so it is never looked for in the last one.
    head = _JWT_HEAD.search(word, 0, max(word.rfind("."), 0))
    return word if head is None else f"{word[: head.start()]}{MASK}"


def _mask_query(found: re.Match[str]) -> str:
    before, mark, query = found[0].partition("?")
    is_query = query and ("/" in before or "=" in query)
    return f"{before}{mark}{MASK}" if is_query else found[0]
