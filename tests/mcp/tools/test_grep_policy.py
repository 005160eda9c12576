"""grep: what it never shows, and what cannot be learnt from its answers."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from auth.permissions import Effect, Policy, Rule
from mcp.tools.grep import TOOL as GREP
from mcp.workspace.search_confine import can_confine
from tests.support.files import call, context, refused, said, text_of


def laid(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A workspace with these files."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


class TestPolicy:
    """What may not be read is not searched, and nothing can be learnt about it."""

    SECRET = "KEY=5ecret\n"

    async def test_the_content_of_env_files_is_never_shown(self, tmp_path: Path) -> None:
        laid(tmp_path, {".env": self.SECRET, "sub/.env.local": self.SECRET, ".env.example": "KEY=x\n", "a": "KEY\n"})
        found = await call(GREP, context(tmp_path), pattern="KEY", context=2)
        assert text_of(found) == (
            ".env.example:1: KEY=x\n--\na:1: KEY\n\n[2 files were left out by the permission policy.]"
        )
        assert found.structured is not None
        assert found.structured["files_left_out"] == 2

    @pytest.mark.parametrize("pattern", ["KEY=5", "KEY=4", "^.{10}$", "."])
    @pytest.mark.parametrize("glob", [None, ".env", "*"])
    async def test_the_answer_does_not_depend_on_what_is_in_them(
        self, tmp_path: Path, pattern: str, glob: str | None
    ) -> None:
        arguments = {"pattern": pattern} | ({"glob": glob} if glob else {})
        laid(tmp_path, {"ws/.env": self.SECRET, "other/.env": "nothing"})
        answers = [await said(GREP, context(tmp_path / folder), **arguments) for folder in ("ws", "other")]
        assert answers[0] == answers[1]
        assert "[1 file was left out by the permission policy.]" in answers[0]

    async def test_they_take_no_room_from_the_limit(self, tmp_path: Path) -> None:
        laid(tmp_path, {".env": "x\n" * 500, "z": "x\n"})
        assert await said(GREP, context(tmp_path), pattern="x", limit=1) == (
            "z:1: x\n\n[1 file was left out by the permission policy.]"
        )

    async def test_files_that_the_glob_does_not_take_are_not_counted(self, tmp_path: Path) -> None:
        laid(tmp_path, {".env": "x\n", "z.py": "x\n"})
        assert await said(GREP, context(tmp_path), pattern="x", glob="*.py") == "z.py:1: x"

    async def test_ignored_files_are_not_counted(self, tmp_path: Path) -> None:
        laid(tmp_path, {".gitignore": ".env\n", ".env": "x\n", "sub/.env": "x\n", "sub/z": "x\n"})
        assert await said(GREP, context(tmp_path), pattern="x") == "sub/z:1: x"
        assert await said(GREP, context(tmp_path), pattern="x", path="sub") == "sub/z:1: x"

    @pytest.mark.parametrize("tool", ["grep", "read", "*"])
    async def test_a_rule_keeps_a_folder_from_being_searched(self, tmp_path: Path, tool: str) -> None:
        laid(tmp_path, {"secrets/deep/a": "x\n", "b/Secrets": "x\n", "b/c": "x\n"})
        ctx = context(tmp_path, rules=(Rule(tool, "secrets/**", Effect.DENY), Rule(tool, "b/secrets", Effect.DENY)))
        assert await said(GREP, ctx, pattern="x") == "b/c:1: x\n\n[2 files were left out by the permission policy.]"
        assert await said(GREP, ctx, pattern="x", path="b") == (
            "b/c:1: x\n\n[1 file was left out by the permission policy.]"
        )

    @pytest.mark.parametrize("path", [".env", "secrets", "secrets/deep/a", "link"])
    async def test_naming_it_is_refused(self, tmp_path: Path, path: str) -> None:
        laid(tmp_path, {".env": "x\n", "secrets/deep/a": "x\n"})
        (tmp_path / "link").symlink_to(".env")
        found = await call(
            GREP, context(tmp_path, rules=(Rule("read", "secrets/**", Effect.DENY),)), pattern="x", path=path
        )
        assert (found.is_error, found.structured) == (True, None)
        assert "grep was refused by the" in text_of(found)
        assert "x\n" not in text_of(found)

    async def test_only_what_read_may_show_is_shown(self, tmp_path: Path) -> None:
        """A rule lets grep into docs, but read only into src; the stricter one counts."""
        laid(tmp_path, {"src/a": "x\n", "docs/b": "x\n"})
        rules = (Rule("read", "src/**", Effect.ALLOW), Rule("grep", "docs/**", Effect.ALLOW))
        ctx = context(tmp_path, rules=rules)
        assert await said(GREP, ctx, pattern="x", path="src") == "src/a:1: x"
        assert "allowed is src/**" in await refused(GREP, ctx, pattern="x", path="docs/b")

    async def test_a_harness_with_grep_alone_can_search(self, tmp_path: Path) -> None:
        laid(tmp_path, {"a": "x\n"})
        ctx = context(tmp_path)
        policy = Policy("alone", frozenset({"grep"}), ctx.policy.caps)
        alone = type(ctx)(ctx.workspace, policy, ctx.limits, ctx.shell, ctx.principal)
        assert await said(GREP, alone, pattern="x") == "a:1: x"


async def test_files_of_an_extra_root_have_absolute_paths(tmp_path: Path) -> None:
    laid(
        tmp_path,
        {"ws/a": "x\n", "extra/sub/b": "x\n", "extra/.env": "x\n", "extra/.gitignore": "c\n", "extra/sub/c": "x\n"},
    )
    ctx = context(tmp_path / "ws", tmp_path / "extra")
    assert await said(GREP, ctx, pattern="x") == "a:1: x"
    assert await said(GREP, ctx, pattern="x", path=str(tmp_path / "extra")) == (
        f"{tmp_path}/extra/sub/b:1: x\n\n[1 file was left out by the permission policy.]"
    )
    assert await said(GREP, ctx, pattern="x", path=f"{tmp_path}/extra/sub") == f"{tmp_path}/extra/sub/b:1: x"


async def test_links_are_not_followed_but_may_be_named(tmp_path: Path) -> None:
    laid(tmp_path, {"outside/canary": "canary\n", "ws/real/a": "canary\n"})
    for name, aim in (("out", "../outside"), ("file", "../outside/canary"), ("in", "real")):
        (tmp_path / "ws" / name).symlink_to(aim)
    ctx = context(tmp_path / "ws")
    assert await said(GREP, ctx, pattern="canary") == "real/a:1: canary"
    assert await said(GREP, ctx, pattern="canary", path="in") == "real/a:1: canary"
    for name in ("out", "file"):
        assert f"{name} is outside the workspace" in await refused(GREP, ctx, pattern="canary", path=name)


@contextmanager
def exchanging(first: Path, second: Path) -> Iterator[None]:
    """While this is open the two names are exchanged all the time (renameat2 with RENAME_EXCHANGE)."""
    done = threading.Event()
    library = ctypes.CDLL(None)
    names = (-100, bytes(first), -100, bytes(second), 2)

    def exchange() -> None:
        while not done.is_set():
            library.renameat2(*names)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(not can_confine(), reason="the kernel has no Landlock")
async def test_a_folder_that_becomes_a_link_while_it_is_searched_leads_nowhere(tmp_path: Path) -> None:
    """Without the kernel's access rules about every second of these searches reads the canaries."""
    for number in range(400):
        laid(tmp_path, {f"outside/{number}": "canary\n", f"ws/folder/{number}": "plain\n"})
    (tmp_path / "ws/link").symlink_to(tmp_path / "outside")
    ctx = context(tmp_path / "ws")
    with exchanging(tmp_path / "ws/folder", tmp_path / "ws/link"):
        answers = [text_of(await call(GREP, ctx, pattern="canary")) for _ in range(15)]
    assert [answer for answer in answers if re.search(r"\d: canary", answer)] == []
