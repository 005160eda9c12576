"""ls: what is in a folder, in which order and with which marks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auth.permissions import Effect, Rule
from mcp.limits import Limits
from mcp.tools.ls import TOOL as LS
from tests.support.files import call, context, refused, said, text_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with an entry of every kind."""
    root = tmp_path / "ws"
    (root / "Sub/deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / ".git").mkdir()
    (root / ".env").write_text("secret")
    (root / "b.txt").write_text("12345")
    (root / "A.txt").touch()
    (root / "a.txt").touch()
    (root / "to_sub").symlink_to("Sub")
    (root / "broken").symlink_to("nothing")
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(
            {},
            ".env\n.git/\nA.txt\na.txt\nb.txt\nbroken@\nempty/\nfifo\nout@\nSub/\nto_sub@",
            id="the root, by name without regard to case",
        ),
        pytest.param({"path": "Sub"}, "deep/", id="a folder"),
        pytest.param({"path": "./Sub/"}, "deep/", id="however it is written"),
        pytest.param({"path": "to_sub"}, "deep/", id="a folder through a link"),
        pytest.param({"path": "empty"}, "empty is empty.", id="an empty folder"),
        pytest.param(
            {"limit": 2},
            ".env\n.git/\n\n[2 of 11 entries shown. Give a higher limit, or use find with a pattern.]",
            id="more than the limit",
        ),
        pytest.param({"path": "Sub", "limit": 1}, "deep/", id="exactly the limit"),
    ],
)
async def test_ls_lists(root: Path, arguments: dict[str, object], text: str) -> None:
    assert await said(LS, context(root), **arguments) == text


async def test_an_empty_workspace_is_a_sentence(tmp_path: Path) -> None:
    found = await call(LS, context(tmp_path))
    assert (text_of(found), found.structured) == (
        "The workspace is empty.",
        {"entries": [], "total": 0, "truncated": False},
    )


@pytest.mark.requirement("TL-6")
async def test_the_data_has_types_and_sizes(root: Path) -> None:
    found = await call(LS, context(root, limits=Limits(ls_entries=8)))
    assert found.structured == {
        "entries": [
            {"name": ".env", "type": "file", "size": 6},
            {"name": ".git", "type": "directory", "size": None},
            {"name": "A.txt", "type": "file", "size": 0},
            {"name": "a.txt", "type": "file", "size": 0},
            {"name": "b.txt", "type": "file", "size": 5},
            {"name": "broken", "type": "symlink", "size": None},
            {"name": "empty", "type": "directory", "size": None},
            {"name": "fifo", "type": "other", "size": None},
        ],
        "total": 11,
        "truncated": True,
    }


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("b.txt", "b.txt is a file, not a folder.", id="a file"),
        pytest.param("fifo", "fifo is not a regular file: it is a FIFO.", id="a FIFO"),
        pytest.param("none", "none does not exist.", id="nothing"),
        pytest.param("broken", "broken is a broken link", id="a broken link"),
        pytest.param("out", "out is outside the workspace.", id="a link out"),
        pytest.param("..", ".. is outside the workspace.", id="the parent"),
    ],
)
async def test_what_cannot_be_listed_is_said(root: Path, path: str, words: str) -> None:
    text = await refused(LS, context(root), path=path)
    assert words in text
    assert str(root.parent) not in text


async def test_what_a_rule_denies_is_not_listed(root: Path) -> None:
    ctx = context(root, rules=(Rule("ls", "Sub/**", Effect.DENY), Rule("ls", "*.txt", Effect.DENY)))
    assert await said(LS, ctx) == (
        ".env\n.git/\nbroken@\nempty/\nfifo\nout@\nto_sub@\n\n[4 entries are left out by the permission policy.]"
    )
    assert "ls was refused by the rule" in await refused(LS, ctx, path="to_sub")


async def test_a_folder_with_only_denied_entries_is_not_called_empty(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    ctx = context(tmp_path, rules=(Rule("ls", "x", Effect.DENY),))
    assert await said(LS, ctx) == (
        "The workspace has no entry to show.\n\n[1 entry is left out by the permission policy.]"
    )


async def test_output_stops_at_the_limit_of_bytes(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:02}{'é' * 50}").touch()
    found = await call(LS, context(tmp_path, limits=Limits(output_bytes=2048)))
    assert len(text_of(found).encode()) <= 2048
    assert "[14 of 100 entries shown." in text_of(found)
    assert found.structured is not None
    assert (len(found.structured["entries"]), found.structured["truncated"]) == (14, True)


async def test_an_extra_root_is_listed_by_its_absolute_path(tmp_path: Path) -> None:
    for name in ("ws", "extra/sub", "extra/secret"):
        (tmp_path / name).mkdir(parents=True)
    ctx = context(tmp_path / "ws", tmp_path / "extra", rules=(Rule("ls", f"{tmp_path}/extra/secret", Effect.DENY),))
    assert await said(LS, ctx, path=str(tmp_path / "extra")) == (
        "sub/\n\n[1 entry is left out by the permission policy.]"
    )


NAMES = st.text("aAbB.~é\n\u202e ", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(NAMES, max_size=8))
async def test_every_entry_is_one_line_in_order(tmp_path_factory: pytest.TempPathFactory, names: set[str]) -> None:
    folder = tmp_path_factory.mktemp("ls")
    for name in names:
        (folder / name).touch()
    found = await call(LS, context(folder))
    assert found.structured is not None
    listed = [entry["name"] for entry in found.structured["entries"]]
    assert listed == sorted(names, key=lambda name: (name.casefold(), name))
    assert len(text_of(found).split("\n")) == max(1, len(names))
