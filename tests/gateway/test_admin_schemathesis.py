"""schemathesis over the administrative interface: it finds no answer that the OpenAPI document rules out."""

import json
import subprocess

import pytest

from gateway.routes import OPENAPI
from tests.support.administration import administered
from tests.support.balancers import ROOT

SCHEMATHESIS = ROOT / ".venvs" / "client-judges" / "bin" / "schemathesis"
#: What it is to judge; all but nothing is not to be left out.
OPTIONS = ("--checks", "all", "--continue-on-failure", "--phases", "examples,coverage,fuzzing,stateful")
BOUNDS = ("--max-examples", "30", "--seed", "1", "--generation-database", "none", "--no-color")


@pytest.mark.xdist_group("judges")
def test_schemathesis_finds_nothing(tmp_path):
    """On a real server, with the token of an administrator; some of what it sends ends tokens, its own perhaps."""
    unbound = {f"SUPERPI_RATES__{name}": "0" for name in ("CALLS", "CREDENTIALS")}
    assert SCHEMATHESIS.exists(), "make test installs it: make .venvs/client-judges/.ready"
    with administered(**unbound) as office:
        document = tmp_path / "openapi.json"
        document.write_text(json.dumps(office.ask("GET", OPENAPI).json()), "utf-8")
        shown = ("--header", f"Authorization: Bearer {office.admin}")
        ran = subprocess.run(
            [SCHEMATHESIS, "run", str(document), "--url", office.base, *shown, *OPTIONS, *BOUNDS],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
        assert "Traceback" not in office.server.said
    tested = next(line for line in ran.stdout.splitlines() if "Tested:" in line)
    assert int(tested.rpartition(":")[2]) >= 20, ran.stdout[-2000:]
