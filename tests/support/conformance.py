"""The official conformance suite: one run of it against a URL, and what came of each scenario."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.clients import run_in
from tests.support.environments import ROOT, environment, node

FOLDER: Final = ROOT / "tests" / "conformance"
_ENVIRONMENT: Final = "client-conformance"
#: A run takes a quarter of a minute; a busy machine is no failure.
_SECONDS: Final = 300.0

Check = Mapping[str, Any]


def _suite() -> Path:
    return environment(_ENVIRONMENT) / "node_modules" / "@modelcontextprotocol" / "conformance"


def required(revision: str) -> list[str]:
    """The scenarios that a server has to pass to conform to a revision, as the suite lists them."""
    listed = yaml.safe_load((_suite() / "requirements" / f"{revision}.yaml").read_text("utf-8"))["server"]
    assert isinstance(listed, list)
    return listed


@dataclass(frozen=True, slots=True)
class Report:
    """What the suite said of a server: its status, its words, and the checks of each scenario that it ran."""

    status: int
    said: str
    checks: Mapping[str, list[Check]]

    def complaints(self, scenarios: list[str]) -> list[str]:
        """A line for each check that did not pass, or could not be made, with what the suite says of it."""
        return [
            f"{scenario}: {check['id']}: {check['status']}: {check.get('errorMessage')} {_shown(check)}"
            for scenario in scenarios
            for check in self.checks[scenario]
            if check["status"] not in {"SUCCESS", "INFO"}
        ]

    def detail(self, scenario: str, check: str) -> Any:
        """What the suite noted of one check."""
        (found,) = [one for one in self.checks[scenario] if one["id"] == check]
        return found["details"]


def judge(url: str, *options: str, token: str | None = None) -> Report:
    """Run the suite against a server, with a bearer token on each of its requests if there is one."""
    variables = {"NODE_OPTIONS": f"--import={(FOLDER / 'auth.mjs').as_uri()}", "CONFORMANCE_TOKEN": token or ""}
    with tempfile.TemporaryDirectory(prefix="superpi-conformance-") as results:
        argv = [str(node()), str(_suite() / "dist" / "index.js"), "server", "--url", url, "--output-dir", results]
        allowed = ["--expected-failures", str(FOLDER / "expected-failures.yaml")]
        ran = run_in(
            environment(_ENVIRONMENT), [*argv, *allowed, *options], seconds=_SECONDS, **(variables if token else {})
        )
        return Report(ran.returncode, _words(ran), _checks(Path(results)))


def _checks(results: Path) -> dict[str, list[Check]]:
    """The checks by scenario; the suite keeps them in `server-<scenario>-<time>/checks.json`."""
    found = {}
    for file in results.glob("server-*/checks.json"):
        scenario = file.parent.name.removeprefix("server-").rpartition("T")[0].rsplit("-", 3)[0]
        found[scenario] = json.loads(file.read_text("utf-8"))
    return found


def _words(ran: subprocess.CompletedProcess[str]) -> str:
    return (ran.stdout + ran.stderr)[-4000:]


def _shown(check: Check) -> str:
    return json.dumps(check.get("details"))[:2000]
