"""The import name `mcp` is shared with the official SDK: ours is told apart, and the SDK is never in the process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Distributions that bring the SDK, and with it its `mcp`, into an environment.
CARRIERS = ("mcp", "fastmcp", "openai-agents", "claude-agent-sdk", "pydantic-ai")


def last_line(folder: Path, program: str) -> str:
    """The last line on stderr of a program whose import path has that folder before the project."""
    argv = [sys.executable, "-P", "-B", "-c", program]
    path = f"{folder}:{ROOT}"
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=folder, env={"PYTHONPATH": path})
    return ran.stderr.strip().rpartition("\n")[2]


def test_gateway_refuses_a_foreign_mcp_with_a_sentence_that_says_what_to_do(tmp_path):
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("class ClientSession: ...\n")
    assert last_line(tmp_path, "import gateway") == (
        "ImportError: the imported 'mcp' package is not Super-Pi's own (the official MCP SDK uses the same name). "
        "Install superpi into an environment of its own: 'pipx install superpi' or 'uv tool install superpi'."
    )


def test_gateway_loads_beside_its_own_mcp(tmp_path):
    assert last_line(tmp_path, "import gateway") == ""


@pytest.mark.parametrize("lock", ["run.txt", "build.txt", "dev.txt"])
def test_no_environment_of_the_server_holds_the_sdk(lock):
    pinned = re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements" / lock).read_text("utf-8"), re.MULTILINE)
    assert len(pinned) >= 5
    assert [name for name in pinned if name in CARRIERS] == []
