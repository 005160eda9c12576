"""An OIDC issuer from its settings: what judges its tokens, keeps its keys and tells clients of it. Asks nobody."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from auth.challenges import Challenges
from auth.issued import IssuedTokens
from auth.jwks import ALGORITHMS
from auth.jwt import Expected
from auth.keyring import Keyring
from auth.ports import Also, PrincipalStore
from auth.scopes import NotScopes, parse, text
from gateway.issuer import Issuer, address_fault
from gateway.issuing import audited
from gateway.routes import MCP, RESOURCE_METADATA
from gateway.settings import Settings, SettingsError
from mcp.recording import Circumstances

_DEFAULT_CLAIMS: Final = ("scope", "scp")


@dataclass(frozen=True, slots=True)
class Oidc:
    """What comes of an issuer's settings. `metadata` is the document of RFC 9728."""

    judge: IssuedTokens
    keyring: Keyring
    challenges: Challenges
    metadata: dict[str, Any]


def configured(settings: Settings, issuer: str, principals: PrincipalStore) -> Oidc:
    """What comes of an issuer that the settings name. Raises SettingsError."""
    resource = _resource(settings)
    _require(address_fault(issuer), "SUPERPI_OIDC_ISSUER")
    if settings.oidc_keys_url is not None:
        _require(address_fault(settings.oidc_keys_url), "SUPERPI_OIDC_KEYS_URL")
    algorithms = frozenset(settings.oidc_algorithms)
    if not algorithms or not algorithms <= ALGORITHMS.keys():
        raise SettingsError(f"SUPERPI_OIDC_ALGORITHMS: must be some of {', '.join(ALGORITHMS)}")
    scopes = parse(settings.oidc_scopes)
    if isinstance(scopes, NotScopes):
        raise SettingsError(f"SUPERPI_OIDC_SCOPES: {scopes.why}")
    expected = Expected(
        issuer,
        frozenset(settings.oidc_audience or (resource,)),
        algorithms,
        (settings.oidc_scope_claim,) if settings.oidc_scope_claim else _DEFAULT_CLAIMS,
    )
    keyring = Keyring(Issuer(issuer, settings.oidc_keys_url).fetch, time.monotonic)
    return Oidc(
        IssuedTokens(expected, keyring, principals, _on_record),
        keyring,
        Challenges(resource.removesuffix(MCP) + RESOURCE_METADATA, tuple(sorted(scopes))),
        {
            "resource": resource,
            "authorization_servers": [issuer],
            "scopes_supported": text(scopes).split(),
            "bearer_methods_supported": ["header"],
            "resource_name": "Super-Pi",
        },
    )


def _on_record(id: str) -> Also:
    """A principal that is made on first sight is a change like any other; nobody asked for it but its own token."""
    return audited("principal.create", id, Circumstances(id, None, "", None, None))


def _resource(settings: Settings) -> str:
    """The address that hosts connect to, which tokens have to name (RFC 8707). Raises SettingsError."""
    if settings.public_url is None:
        raise SettingsError(
            "SUPERPI_PUBLIC_URL: an issuer's tokens must be made for this server, so it has to know its own address. "
            "Set it to what hosts connect to, without /mcp, like https://superpi.example"
        )
    _require(address_fault(settings.public_url), "SUPERPI_PUBLIC_URL")
    return settings.public_url.rstrip("/").removesuffix(MCP) + MCP


def _require(why: str | None, variable: str) -> None:
    if why is not None:
        raise SettingsError(f"{variable}: {why}")
