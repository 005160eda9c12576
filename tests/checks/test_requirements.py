"""The lock files are complete, hashed and free of addresses; every dependency has a written reason."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RUN = PROJECT["project"]["dependencies"]
DEV = PROJECT["dependency-groups"]["dev"]

PIN = re.compile(r"[a-z0-9.-]+==[a-z0-9.+!]+( ; [^\\]+)?( \\)?")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def name(requirement: str) -> str:
    """The normalized name of a requirement (PyPA, names and extras)."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def pins(lock: str) -> dict[str, str]:
    """Name and version of everything in a lock file."""
    lines = (ROOT / "requirements" / lock).read_text("utf-8").splitlines()
    return {name(line): line.split("==")[1].split(" ")[0] for line in lines if "==" in line and "--hash" not in line}


@pytest.mark.parametrize("lock", [pytest.param(path, id=path.name) for path in LOCKS])
def test_a_lock_file_holds_pins_and_hashes_and_nothing_else(lock):
    """An option line (an index, a folder to look in), an address or a path would be neither."""
    lines = [line for line in lock.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line) and not HASH.fullmatch(line)] == []
    bare = [line for line, after in zip(lines, [*lines[1:], ""], strict=True) if "==" in line and "--hash" not in after]
    assert bare == []


def test_the_lock_files_hold_every_dependency_of_the_project():
    assert {name(requirement) for requirement in RUN} <= pins("run.txt").keys()
    assert {name(requirement) for requirement in RUN + DEV} <= pins("dev.txt").keys()


@pytest.mark.parametrize("lock", ["run.txt", "build.txt"])
def test_the_development_lock_file_agrees_with(lock):
    assert pins(lock).items() <= pins("dev.txt").items()


def rows(heading: str) -> dict[str, str]:
    """The dependencies and their reasons in one table of the decision page."""
    page = (ROOT / "docs" / "decisions" / "0004-dependencies.md").read_text("utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {match[1]: match[2].strip() for match in re.finditer(r"^\| `([^`]+)` \|(.*)\|$", section, re.MULTILINE)}


@pytest.mark.parametrize(
    ("heading", "requirements"),
    [pytest.param("At run time", RUN, id="run time"), pytest.param("For development", DEV, id="development")],
)
def test_every_dependency_has_a_reason_and_no_reason_lacks_its_dependency(heading, requirements):
    reasons = rows(heading)
    assert reasons.keys() == {name(requirement) for requirement in requirements}
    assert [dependency for dependency, reason in reasons.items() if len(reason.split()) < 4] == []
