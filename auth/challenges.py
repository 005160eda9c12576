"""What a client that is not let in is told of the way to a token. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from auth.scopes import Scope, text


@dataclass(frozen=True, slots=True)
class Challenges:
    """What a refused client is told of the way to a token (RFC 6750 section 3, RFC 9728 section 5).

    `metadata` is the address of the resource metadata, None where no issuer is configured; `scopes` are those to ask
    for. Without an issuer nothing is said of either, or hosts show a login that leads nowhere.
    """

    metadata: str | None = None
    scopes: tuple[Scope, ...] = ()

    def unauthenticated(self, error: str | None = None) -> str:
        """The value of WWW-Authenticate with a 401; without `error` where no credential was shown."""
        return _bearer(error, text(frozenset(self.scopes)), self.metadata)

    def insufficient(self, needed: str) -> str:
        """The value of WWW-Authenticate with a 403 that this scope would mend."""
        return _bearer("insufficient_scope", needed, self.metadata)


def _bearer(error: str | None, scope: str, metadata: str | None) -> str:
    parts = ['realm="superpi"']
    if error is not None:
        parts.append(f'error="{error}"')
    if metadata is not None:
        parts += [f'scope="{scope}"', f'resource_metadata="{metadata}"']
    return "Bearer " + ", ".join(parts)
