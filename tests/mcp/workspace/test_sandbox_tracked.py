"""Files that git would show anyway need no mask; everything else keeps its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auth.permissions import Effect, Mode, Rule
from mcp.tools.bash import TOOL
from mcp.workspace.sandbox_masks import Masks
from mcp.workspace.sandbox_tracked import MOST_FILE_BYTES, blob_id, still_hidden, without_tracked
from mcp.workspace.shell import SandboxStep
from tests.support.files import call, refused, said, text_of
from tests.support.shells import Bench, shell, workspace


@pytest.fixture
def bench() -> Iterator[Bench]:
    with workspace() as root:
        yield Bench(shell(SandboxStep.BUBBLEWRAP), root)


async def repository(bench: Bench, files: dict[str, str], init: str = "git init -q .") -> None:
    """A repository with these files in its only commit."""
    bench.put(files)
    result = await bench.run(f"{init} && git add -A -f && git commit -qm first && git branch -q other")
    assert result.exit_code == 0, result.output


# What is a blob


@pytest.mark.parametrize(
    ("content", "length", "id"),
    [
        pytest.param(b"", 40, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", id="nothing, by SHA-1"),
        pytest.param(b"hello\n", 40, "ce013625030ba8dba906f756967f9e9ca394464a", id="a line, by SHA-1"),
        pytest.param(b"", 64, hashlib.sha256(b"blob 0\0").hexdigest(), id="nothing, by SHA-256"),
    ],
)
def test_the_id_of_a_blob_is_gits(content: bytes, length: int, id: str):
    assert blob_id(content, length) == id


def lay(root: Path) -> None:
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    (root / "folder/deep").mkdir(parents=True)
    (root / "folder/a").write_text("a")
    (root / "folder/deep/a").write_text("a")
    (root / "mixed").mkdir()
    (root / "mixed/a").write_text("a")
    (root / "mixed/b").write_text("b")
    (root / "linked").mkdir()
    (root / "linked/a").symlink_to("../a")
    (root / "link").symlink_to("a")
    (root / "big").write_bytes(bytes(MOST_FILE_BYTES + 1))
    os.mkfifo(root / "pipe")


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        pytest.param("a", False, id="content of the index"),
        pytest.param("b", True, id="other content"),
        pytest.param("folder", False, id="a folder of nothing but such content"),
        pytest.param("mixed", True, id="a folder with other content too"),
        pytest.param("linked", True, id="a folder with a link"),
        pytest.param("link", True, id="a link to such content"),
        pytest.param("big", True, id="a file that is too large to be read"),
        pytest.param("pipe", True, id="a pipe"),
        pytest.param("gone", True, id="nothing at all"),
    ],
)
def test_only_blobs_lose_their_mask(tmp_path: Path, name: str, hidden: bool):
    lay(tmp_path)
    ids = frozenset({blob_id(b"a", 40), blob_id(bytes(MOST_FILE_BYTES + 1), 40), "0" * 64})
    assert still_hidden(tmp_path, (name,), ids) == ((name,) if hidden else ())


@settings(max_examples=40)
@given(st.binary(max_size=20), st.sets(st.binary(max_size=20), max_size=4))
def test_content_is_shown_just_when_it_is_among_the_blobs(content: bytes, blobs: set[bytes]):
    with workspace() as root:
        (root / "f").write_bytes(content)
        ids = frozenset(blob_id(blob, 40) for blob in blobs)
        assert (still_hidden(root, ("f",), ids) == ()) is (content in blobs)


# What git says

FILES = {".env": "tracked\n", "sub/.env.test": "tracked too\n", ".envs/a": "1", "wéird\n[x]/.env": "w", "a": "a\n"}
HIDDEN = (".env", ".envs", "sub/.env.test", "wéird\n[x]/.env")


@pytest.mark.parametrize("init", ["git init -q .", "git init -q --object-format=sha256 ."], ids=["SHA-1", "SHA-256"])
async def test_files_as_they_are_in_the_index_lose_their_masks(bench: Bench, init: str):
    await repository(bench, FILES, init)
    bench.put({".env.local": "mine", "sub/.env.test": "changed\n"})
    masks = Masks((*HIDDEN, ".env.local"), ("x",), ("y",))
    found = await without_tracked(bench.shell, bench.root, masks, "p")
    assert found == Masks(("sub/.env.test", ".env.local"), ("x",), ("y",))


def no_repository(bench: Bench) -> None:
    """Nothing is made."""


def file_for_a_repository(bench: Bench) -> None:
    bench.put({".git": "gitdir: /nowhere\n"})


def nested_repository(bench: Bench) -> None:
    bench.put({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/x": "", ".git/objects/x": ""})


@pytest.mark.parametrize("make", [no_repository, file_for_a_repository, nested_repository])
async def test_without_an_index_of_the_workspace_every_mask_stays(bench: Bench, make: Callable[[Bench], None]):
    bench.put({".env": "x", "sub/.env": "tracked"})
    assert (await bench.run("cd sub && git init -q . && git add -f .env")).exit_code == 0
    make(bench)
    masks = Masks((".env", "sub/.env"))
    assert await without_tracked(bench.shell, bench.root, masks, "p") == masks


async def test_an_index_that_a_command_forges_shows_nothing(bench: Bench):
    """It can name any path and any id, but not the id of what it cannot read."""
    await repository(bench, {"a": "a\n"})
    bench.put({".env": "canary\n", "envs/.env.d/k": "canary\n"})
    script = """
    id=$(git hash-object -w a)
    git update-index --add --cacheinfo 100644,$id,.env --cacheinfo 100644,$id,envs/.env.d/k
    git update-index --assume-unchanged .env; git hash-object -w .env; cp a .git/objects; git config alias.ls-files x
    true
    """
    ctx = bench.context()
    await said(TOOL, ctx, command=script)
    text = text_of(await call(TOOL, ctx, command="cat .env; cat envs/.env.d/k; git show :.env"))
    assert "canary" not in text


async def test_content_of_another_file_of_the_history_does_not_unmask(bench: Bench):
    await repository(bench, {"a": "same\n", ".env.test": "t\n"})
    bench.put({".env": "same\n"})
    assert await without_tracked(bench.shell, bench.root, Masks((".env",)), "p") == Masks((".env",))


# What commands then can do


async def test_git_works_on_env_files_that_are_committed(bench: Bench):
    await repository(bench, FILES)
    ctx = bench.context()
    assert await said(TOOL, ctx, command="git status --porcelain; cat .env") == "tracked"
    script = """
    set -e
    echo more >>a; git commit -qam second; git checkout -q other; git checkout -q -
    echo x >>a; echo y >.env; git stash -q; git stash pop -q; git commit -qam third; git status --porcelain
    """
    assert await said(TOOL, ctx, command=script) == "(no output)"
    assert (bench.root / ".env").read_text() == "y\n"
    assert await said(TOOL, bench.context(Mode.READ_ONLY), command="git status --porcelain; cat .env") == "y"


async def test_what_a_rule_denies_is_shown_when_git_has_it_and_only_then(bench: Bench):
    await repository(bench, {"secrets/k": "tracked\n"})
    ctx = bench.context(rules=(Rule("read", "secrets/**", Effect.DENY),))
    assert await said(TOOL, ctx, command="cat secrets/k") == "tracked"
    bench.put({"secrets/new": "canary"})
    assert "canary" not in text_of(await call(TOOL, ctx, command="cat secrets/*"))


ODD = ["[a]*?", "#b", "!c", "d ", "e\\", "wéird"]


async def test_everything_is_added_but_what_is_masked(bench: Bench):
    await repository(bench, {"a": "a\n"})
    masked = [".env", "sub/.env.local", ".env.d/x", *(f"{name}/.envrc" for name in ODD), *(f".env{odd}" for odd in ODD)]
    bench.put(dict.fromkeys(masked, "canary") | {"new": "new\n", "sub/new": "new\n", "esub/.env.example": "e"})
    ctx = bench.context()
    assert await said(TOOL, ctx, command="git add -A && git commit -qm x && git show --stat --format= --name-only") == (
        "esub/.env.example\nnew\nsub/new"
    )
    assert await said(TOOL, ctx, command="git status --porcelain; git stash -u; git clean -fdq") == (
        "No local changes to save"
    )
    assert all((bench.root / name).read_text() == "canary" for name in masked)


# What is said when a mask is in the way


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param(
            "cat .env", "[.env is masked: commands cannot read, change or move it, since .env files", id="cat"
        ),
        pytest.param("cd sub && cat .env.local", "[sub/.env.local is masked", id="from another folder"),
        pytest.param("cd secrets", "since a rule denies secrets/**. Where git tracks it", id="a rule's folder"),
        pytest.param("rm .env", "[.env is masked", id="removing it"),
        pytest.param("git commit -am x", "name the other files to add, commit or stash them.]", id="committing it"),
        pytest.param("git stash", "[.env is masked", id="stashing it"),
        pytest.param("git config a.b c", "[.git/config is read-only to commands: what they could plant", id="config"),
        pytest.param("echo >.git/hooks/x", "[.git/hooks is read-only to commands", id="a hook"),
        pytest.param(
            "echo >kept/x", "[kept is read-only to commands, since a rule denies kept/**.]", id="a write rule"
        ),
    ],
)
async def test_a_command_that_a_mask_stopped_is_told_the_rule(bench: Bench, command: str, words: str):
    await repository(bench, {".env": "old\n", "a": "a\n", "kept/a": "a\n"})
    bench.put({".env": "changed\n", "sub/.env.local": "x", "secrets/k": "x"})
    rules = (Rule("read", "secrets/**", Effect.DENY), Rule("write", "kept/**", Effect.DENY))
    assert words in await refused(TOOL, bench.context(rules=rules), command=command)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("cat .env; true", id="a success"),
        pytest.param("echo .env; exit 1", id="no complaint"),
        pytest.param("echo .env.locale x.env: Permission denied; exit 1", id="other names"),
        pytest.param("echo app/config: Permission denied; exit 1", id="another file of that name"),
    ],
)
async def test_nothing_is_said_of_masks_that_were_not_in_the_way(bench: Bench, command: str):
    bench.put({".env": "x", ".git/config": "", ".git/HEAD": ""})
    assert "[.env" not in (text := text_of(await call(TOOL, bench.context(), command=command)))
    assert "[.git" not in text
