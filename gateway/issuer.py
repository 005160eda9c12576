"""An OIDC issuer over the network: where its keys are, and the keys. Answers with values or KeysAway, whatever comes.

Only addresses of the configured issuer are asked: its discovery document, and the place for keys that this names
(OpenID Connect Discovery section 4). Nothing that a token says is ever an address.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

import httpx

from auth.jwks import KeySet, key_set
from auth.keyring import KeysAway
from auth.strict import StrictError, read_object
from gateway.origins import is_loopback

#: Seconds for one answer, from the first byte sent to the last one read.
SECONDS: Final = 3.0
MOST_BYTES: Final = 256 * 1024
_OIDC: Final = "/.well-known/openid-configuration"


def address_fault(url: str) -> str | None:
    """Why keys cannot be fetched from that address, in words that follow it, if so."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "must be https://, a host and at most a path"
    if not host or parts.query or parts.fragment or parts.username is not None:
        return "must be https://, a host and at most a path"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return None
    return "must begin with https://, as whoever changes keys on their way could make tokens"


class Issuer:
    """One issuer. `keys_url` is where its keys are; without it the issuer's own metadata says so."""

    def __init__(self, url: str, keys_url: str | None = None) -> None:
        self.url = url
        self._keys_url = keys_url

    async def fetch(self) -> KeySet:
        """The keys that it has now. Raises KeysAway."""
        try:
            async with asyncio.timeout(SECONDS), _client() as client:
                return key_set(await _get(client, await self._where(client)))
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, StrictError, OSError) as error:
            raise KeysAway(f"{type(error).__name__}: {error}"[:200]) from None

    async def _where(self, client: httpx.AsyncClient) -> str:
        if self._keys_url is not None:
            return self._keys_url
        metadata = read_object(await _get(client, self.url.rstrip("/") + _OIDC))
        found = metadata.get("jwks_uri")
        if metadata.get("issuer") != self.url:
            raise KeysAway("the issuer's metadata names another issuer: set SUPERPI_OIDC_ISSUER to what it says")
        if not isinstance(found, str) or address_fault(found.partition("?")[0]) is not None:
            raise KeysAway("the issuer's metadata has no address of keys that can be trusted")
        return found


def _client() -> httpx.AsyncClient:
    # Compressed, a small answer could become a large one.
    return httpx.AsyncClient(timeout=SECONDS, follow_redirects=False, headers={"accept-encoding": "identity"})


async def _get(client: httpx.AsyncClient, url: str) -> bytes:
    """What is at that address: status 200, no redirect, no compression, and not too much of it."""
    async with client.stream("GET", url, headers={"accept": "application/json"}) as answer:
        if answer.status_code != httpx.codes.OK:
            raise KeysAway(f"the issuer answered {answer.status_code}")
        if "content-encoding" in answer.headers:
            raise KeysAway("the issuer's answer is compressed")
        found = bytearray()
        async for chunk in answer.aiter_raw():
            found += chunk
            if len(found) > MOST_BYTES:
                raise KeysAway(f"the issuer's answer is longer than {MOST_BYTES} bytes")
        return bytes(found)
