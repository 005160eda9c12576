"""No tracked file names a machine, a registry, or a place outside the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Each pattern has a class of one character in it, so that this file is not its own finding.
LEAKS = {
    "a lock file's download address": r'"[r]esolved": *"http|registry *= *"[h]ttp',
    "an index or a folder of packages": r"--(extra-)?[i]ndex-url|\b[i]ndex-url *=|--[f]ind-links|\b[f]ind-links *=",
    "a registry's host": r"\b[p]ypi\.org|files\.[p]ythonhosted|registry\.[n]pmjs",
    "an interpreter under a home": r"/\.[p]yenv/|/\.[l]ocal/share/uv/",
    "a home folder": r"(?<![\w.])(/[r]oot/\.|/[U]sers/[a-z]\w*/|/[h]ome/(?!you\b|alice\b|bob\b|of\b)[a-z]\w*/)",
    "a mounted work folder": r"(?<![\w.}/-])/(work|farm)/[a-z.]",
}

#: A link in Markdown that leads to a file.
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def tracked() -> list[Path]:
    """The files that git tracks and that are still there, or every file of an unpacked archive."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for folder in ("docs", "tests", "requirements") for path in (ROOT / folder).rglob("*")]
    return [path for path in paths if path.is_file()]


def leaks(text: str) -> list[str]:
    """What a text names that it must not, with the line."""
    return [
        f"line {number}: {what}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in LEAKS.items()
        if re.search(pattern, line)
    ]


def test_no_tracked_file_names_a_machine_or_a_registry():
    paths = tracked()
    assert ROOT / "pyproject.toml" in paths or ROOT / "requirements" / "run.txt" in paths
    found = {path.relative_to(ROOT).as_posix(): leaks(path.read_text("utf-8", errors="replace")) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param('"' + 'resolved": "https://x"', ["line 1: a lock file's download address"], id="npm"),
        pytest.param("--index" + "-url https://x", ["line 1: an index or a folder of packages"], id="an index"),
        pytest.param("see pypi" + ".org/project/x", ["line 1: a registry's host"], id="a host"),
        pytest.param("cd /home" + "/carol/src", ["line 1: a home folder"], id="a home"),
        pytest.param("cd /work" + "/main", ["line 1: a mounted work folder"], id="a work folder"),
        pytest.param("cd /home" + "/alice/src", [], id="a name that documentation uses"),
        pytest.param("{tmp}/work" + "/main and ./work/x", [], id="a folder below another"),
    ],
)
def test_the_check_sees(line, expected):
    assert leaks(line) == expected


def test_every_relative_link_in_the_documentation_leads_to_a_file_of_the_repository():
    pages = [path for path in tracked() if path.suffix == ".md"]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / target).resolve().is_relative_to(ROOT) or not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_decision_page_is_in_the_list_of_decisions():
    folder = ROOT / "docs" / "decisions"
    listed = set(LINK.findall((folder / "README.md").read_text("utf-8")))
    assert {page.name for page in folder.glob("[0-9]*.md")} == {name for name in listed if name[0].isdigit()}
