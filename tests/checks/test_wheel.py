"""The wheel, built and installed alone into an environment of nothing but its pinned dependencies, is the product."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.environments import ROOT, environment
from tests.support.mcp_http import McpHttp
from tests.support.server import serving
from tests.support.unprivileged import Launcher

PACKAGES = ("auth", "gateway", "mcp", "migrations", "telemetry")
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "dist", "build")


def run(argv: list[str | Path], folder: Path) -> str:
    """Run a command to its end in a folder; answers stdout."""
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=110)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the tree so that nothing is written into it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=IGNORED)
    run([sys.executable, "-P", "-m", "hatchling", "build", "-t", "wheel", "-d", folder], source)
    (built,) = folder.glob("superpi-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel):
    """The `bin` folder of an environment with the wheel and what it depends on, and nothing else."""
    target = environment("run")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", target / "bin" / "python"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", wheel], wheel.parent)
    return target / "bin"


def test_the_wheel_holds_the_five_packages_and_its_licence_and_no_test(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")] != []


def test_the_wheel_holds_every_tracked_file_of_its_packages(wheel):
    """Front matter, templates and migrations are files too, and are missed only at run time."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git work tree")
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert tracked - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_installed_command_prints_its_help(installed, tmp_path):
    text = run([installed / "superpi", "--help"], tmp_path)
    assert "serve" in text
    assert "stdio" in text


def test_the_installed_wheel_serves_and_reads(installed, tmp_path):
    """Without the project on its path: what answers is the wheel."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "hello.txt").write_text("hello\n")
    launcher = Launcher((str(installed / "python"),), {"PATH": f"{installed}:/usr/bin:/bin"})
    with serving(launcher, workspace, tmp_path) as server, McpHttp(server.url) as client:
        assert client.initialize()["serverInfo"]["name"] == "superpi"
        assert client.text("read", path="hello.txt") == "hello\n"
