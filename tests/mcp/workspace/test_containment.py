"""Containment as a property: random trees and paths, and a tree that changes under the very call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp.workspace import kernel
from mcp.workspace.paths import Located, Target, Workspace
from tests.support.files import allow, tree

CANARY = "canary"


@pytest.fixture(params=["openat2", "portable"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to open: what this kernel offers, and what a system without `openat2` does."""
    if request.param == "portable":
        monkeypatch.setattr(kernel, "has_openat2", lambda: False)
    yield request.param
    monkeypatch.undo()


PARTS = st.sampled_from(
    ["..", ".", "", "a", "b", "f", "ws", "ws-evil", "secret", "l1", "l2", "l3", "{top}", "{top}/ws", "{top}/ws-evil"]
)
PATHS = st.lists(PARTS, min_size=1, max_size=6).map("/".join)


@pytest.mark.usefixtures("system")
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links=st.lists(PATHS, min_size=3, max_size=3), path=PATHS)
def test_no_path_ever_opens_anything_outside(
    tmp_path_factory: pytest.TempPathFactory, links: list[str], path: str
) -> None:
    """Whatever links there are and whatever is asked: what opens is inside, and what is written would be too."""
    top = tmp_path_factory.mktemp("top")
    root = top / "ws"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "f").touch()
    (top / "ws-evil" / "a").mkdir(parents=True)
    (top / "ws-evil" / "secret").write_text(CANARY)
    for name, aim in zip(("l1", "l2", "a/l3"), links, strict=True):
        (root / name).symlink_to(aim.format(top=top) or ".")
    before = tree(top)
    workspace = Workspace(root)
    found = workspace.locate(path.format(top=top), allow)
    if isinstance(found, Located):
        with found:
            assert Path(os.readlink(f"/proc/self/fd/{found.fd}")).is_relative_to(root)
            assert found.real == root / found.path
    target = workspace.target(path.format(top=top), allow)
    if isinstance(target, Target):
        with target:
            assert Path(os.readlink(f"/proc/self/fd/{target.parent_fd}")).is_relative_to(root)
            assert target.real == root / target.path
            assert ".." not in (*target.missing, target.name)
    assert tree(top) == before


SWAPPER = """
import ctypes, os, sys
door, link = (path.encode() for path in sys.argv[1:])
exchange = ctypes.CDLL(None).renameat2
print("ready", flush=True)
while os.getppid() == int(os.environ["TESTS_PID"]):
    for _ in range(1000):
        assert exchange(-100, door, -100, link, 2) == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges a folder and a link in one step, as only Linux can")
@pytest.mark.usefixtures("system")
def test_a_folder_that_turns_into_a_link_meanwhile_never_leads_out(tmp_path: Path) -> None:
    """Check and use are one: another process keeps exchanging a folder and a link that leads out."""
    root = tmp_path / "ws"
    for folder, content in (("ws/door", "inside"), ("ws-evil", CANARY)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "secret").write_text(content)
    (root / "link").symlink_to(tmp_path / "ws-evil")
    swapper = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, root / "door", root / "link"],
        stdout=subprocess.PIPE,
        env={"TESTS_PID": str(os.getpid())},
    )
    contents = set()
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        for _ in range(1000):
            found = Workspace(root).locate("door/secret", allow)
            if isinstance(found, Located):
                with found:
                    contents.add(os.read(found.fd, 100))
            target = Workspace(root).target("door/new", allow)
            if isinstance(target, Target):
                with target:
                    assert Path(os.readlink(f"/proc/self/fd/{target.parent_fd}")).is_relative_to(root)
    finally:
        swapper.kill()
        swapper.communicate()
    assert contents == {b"inside"}
