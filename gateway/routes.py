"""The paths that are served, by name: what metrics and spans are labelled with. A caller's path never becomes one."""

from __future__ import annotations

import re
from typing import Final

MCP: Final = "/mcp"
#: Asked by load balancers, kubelets and scrapers, who use whatever address they have and show no token.
PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
#: Documents of how to log in, which nobody could read who would have to log in first (RFC 8615, RFC 9728).
WELL_KNOWN: Final = "/.well-known/"
RESOURCE_METADATA_ROOT: Final = f"{WELL_KNOWN}oauth-protected-resource"
RESOURCE_METADATA: Final = f"{RESOURCE_METADATA_ROOT}{MCP}"
#: The administrative interface: everything below it needs the scope admin.
ADMIN: Final = "/admin/v1"
OPENAPI: Final = f"{ADMIN}/openapi.json"
TOKENS: Final = f"{ADMIN}/tokens"
TOKEN: Final = f"{TOKENS}/{{id}}"
REVOKE_TOKEN: Final = f"{TOKEN}/revoke"
ROTATE_TOKEN: Final = f"{TOKEN}/rotate"
PRINCIPALS: Final = f"{ADMIN}/principals"
PRINCIPAL: Final = f"{PRINCIPALS}/{{key}}"
DISABLE_PRINCIPAL: Final = f"{PRINCIPAL}/disable"
ENABLE_PRINCIPAL: Final = f"{PRINCIPAL}/enable"
PERMISSIONS: Final = f"{PRINCIPAL}/permissions"
SESSIONS: Final = f"{ADMIN}/sessions"
SESSION: Final = f"{SESSIONS}/{{label}}"
AUDIT: Final = f"{ADMIN}/audit"
EXPORT_AUDIT: Final = f"{AUDIT}/export"
HARNESSES: Final = f"{ADMIN}/harnesses"
HARNESS: Final = f"{HARNESSES}/{{id}}"
GRANTS: Final = f"{ADMIN}/grants"
GRANT: Final = f"{GRANTS}/{{id}}"

_TEMPLATES: Final = (
    TOKEN,
    REVOKE_TOKEN,
    ROTATE_TOKEN,
    PRINCIPAL,
    DISABLE_PRINCIPAL,
    ENABLE_PRINCIPAL,
    PERMISSIONS,
    SESSION,
    GRANT,
    HARNESS,
)
_LISTS: Final = (TOKENS, PRINCIPALS, SESSIONS, GRANTS, AUDIT, EXPORT_AUDIT, HARNESSES)
ROUTES: Final = frozenset({MCP, *PROBES, RESOURCE_METADATA, RESOURCE_METADATA_ROOT, OPENAPI, *_LISTS, *_TEMPLATES})
#: Results of judging a credential.
RESULTS: Final = ("anonymous", "token", "refused", "unavailable")
#: Stands for every other path.
OTHER: Final = "other"


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", template))))


_PATTERNS: Final = tuple((_pattern(template), template) for template in _TEMPLATES)


def label(path: str) -> str:
    """The route that serves the path, as its template."""
    if path in ROUTES:
        return path
    return next((template for pattern, template in _PATTERNS if pattern.fullmatch(path)), OTHER)


def is_admin(path: str) -> bool:
    """Whether the path belongs to the administrative interface, of whatever version, served or not."""
    return path.startswith("/admin/")
