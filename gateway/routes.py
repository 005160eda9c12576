"""The paths that are served, by name: what metrics may be labelled with. A caller's path never becomes a label."""

from __future__ import annotations

from typing import Final

MCP: Final = "/mcp"
#: Asked by load balancers, kubelets and scrapers, who use whatever address they have and show no token.
PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
ROUTES: Final = frozenset({MCP, *PROBES})
#: Results of judging a credential.
RESULTS: Final = ("anonymous", "token", "refused", "unavailable")
#: Stands for every other path.
OTHER: Final = "other"
