"""Finding what deny rules match in a workspace, and what the mounts then hold."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auth import globs
from auth.permissions import Cap, Layer, Mode, Need, Policy, denied_globs
from mcp.faults import Fault
from mcp.workspace.sandbox_masks import MOST_MASKS, Masks, find_masks
from mcp.workspace.shell import SandboxStep
from tests.support.shells import Bench, shell, workspace
from tests.support.unprivileged import own


@pytest.fixture
def root() -> Iterator[Path]:
    """A workspace that commands can enter: what they cannot reach gets no mask."""
    with workspace() as root:
        yield root


@pytest.fixture
def bench() -> Iterator[Bench]:
    with workspace() as root:
        yield Bench(shell(SandboxStep.BUBBLEWRAP), root)


FILES = [
    "a",
    "b.key",
    "secrets/k",
    "secrets/deep/l",
    "src/b.KEY",
    "src/secrets/k",
    "café/x",
    ".hidden/y.key",
    "we[ird",
    "straße/y",
]


@pytest.mark.parametrize(
    ("hidden", "masks"),
    [
        pytest.param((), Masks(), id="no rules need no masks"),
        pytest.param(("nothing/**",), Masks(), id="a rule that matches nothing needs none"),
        pytest.param(("secrets/**",), Masks(hidden=("secrets",)), id="a folder is one mask"),
        pytest.param(("b.key/**",), Masks(hidden=("b.key",)), id="a file where a folder was meant"),
        pytest.param(("secrets",), Masks(hidden=("secrets",)), id="a folder's name covers what is in it"),
        pytest.param(("**/secrets",), Masks(hidden=("secrets", "src/secrets")), id="at any depth"),
        pytest.param(("**/secr**",), Masks(hidden=("secrets", "src/secrets")), id="with stars at the end of a name"),
        pytest.param(
            ("**/*.key",), Masks(hidden=(".hidden/y.key", "b.key", "src/b.KEY")), id="case and dots do not matter"
        ),
        pytest.param(
            ("src/*.key",), Masks(hidden=("src/b.KEY",), pinned=("src",)), id="a rule by place pins the place"
        ),
        pytest.param(
            ("secrets/deep/l",), Masks(hidden=("secrets/deep/l",), pinned=("secrets", "secrets/deep")), id="all of it"
        ),
        pytest.param(("cafe\u0301/**",), Masks(hidden=("café",)), id="another composition of a letter matches"),
        pytest.param(("strasse/**",), Masks(hidden=("straße",)), id="another case that has more letters matches"),
        pytest.param(("**/[bc].key",), Masks(hidden=("b.key", "src/b.KEY")), id="a class of characters"),
        pytest.param(("**/[!b]*.key",), Masks(hidden=(".hidden/y.key",)), id="a negated class"),
        pytest.param(("**/we[[]ird",), Masks(hidden=("we[ird",)), id="a literal bracket"),
        pytest.param(("/secrets/**",), Masks(), id="an absolute rule is about other roots"),
    ],
)
def test_masks_are_the_outermost_paths_that_rules_match(root: Path, hidden: tuple[str, ...], masks: Masks):
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert find_masks(root, hidden, ()) == masks
    assert find_masks(root, (), hidden) == Masks(frozen=masks.hidden, pinned=masks.pinned)


PARTS = st.sampled_from(["a", "B", "é", "e\u0301", "x y", ".e", "a.key", "we[rd", "b{1,2}", "-n", "ß", "!x", "q'"])
PATTERN_PARTS = st.one_of(PARTS, st.sampled_from(["*", "**", "?", "[ab]", "[!a]*", "*.KEY", "ss", "a*"]))
NAMES = st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8)


@settings(max_examples=40)
@example(["a"], "a/**")
@given(NAMES, st.lists(PATTERN_PARTS, min_size=1, max_size=3).map("/".join))
def test_every_file_that_a_rule_covers_lies_at_or_below_a_mask(names: list[str], pattern: str):
    rule = globs.rooted(pattern) or ()
    with workspace() as root:
        files = []
        for name in names:
            with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).touch()
                files.append(name)
        own(root)
        masks = find_masks(root, rule, ())
        if isinstance(masks, Fault):
            assert any(globs.covers(glob, ".") for glob in rule)
            return
        masked = {name for name in files if any(Path(name).is_relative_to(mask) for mask in masks.hidden)}
        assert masked == {name for name in files if any(globs.covers(glob, name) for glob in rule)}


def test_the_built_in_rules_hide_env_files_but_the_example(root: Path):
    for name in (".env", ".env.example", ".env.local", "sub/.env.prod", ".environment", ".envrc", "x.env"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    (root / "link.env").symlink_to(".env")
    policy = Policy("test", frozenset({"bash"}), (Cap(Layer.HARNESS, Mode.FULL),))
    masks = find_masks(root, denied_globs(policy, Need.READ), ())
    assert masks == Masks(hidden=(".env", ".env.local", ".environment", ".envrc", "sub/.env.prod"))


def test_a_name_that_is_no_utf8_is_masked(root: Path):
    (root / os.fsdecode(b"\xff.key")).touch()
    assert find_masks(root, ("**/*.key",), ()) == Masks(hidden=(os.fsdecode(b"\xff.key"),))


@pytest.mark.parametrize(
    ("folder", "glob", "seconds", "files", "words"),
    [
        pytest.param(".", "**", 5, 0, "denies reading the whole workspace", id="all is denied"),
        pytest.param(".", "**/*.key", 0, 0, "could not be searched", id="it takes too long"),
        pytest.param(".", "**/*.key", 5, MOST_MASKS + 1, "too many to mask", id="too many files"),
        pytest.param("gone", "**/*.key", 5, 0, "the workspace folder is gone", id="the workspace is gone"),
    ],
)
def test_a_command_is_refused_when_not_everything_can_be_masked(
    root: Path, folder: str, glob: str, seconds: float, files: int, words: str
):
    for number in range(files):
        (root / f"{number}.key").touch()
    fault = find_masks(root / folder, (glob,), (), seconds)
    assert isinstance(fault, Fault)
    assert "The command was not run" in fault.message
    assert words in fault.message
    assert str(root) not in fault.message


async def test_hidden_paths_cannot_be_read_moved_or_uncovered(bench: Bench):
    bench.put({"secrets/k": "canary", "top/.env": "canary", "top/ok": "shown"})
    script = """
    cat secrets/k top/.env top/ok
    mv secrets s; mv top/.env e; ln top/.env h; cp -a top copy; rm -rf secrets top/.env
    chmod -R 777 secrets top; umount secrets top/.env; mv top t
    cat s/k e h copy/.env secrets/k t/.env
    """
    result = await bench.run(script, hidden=("secrets", "top/.env"))
    assert "shown" in result.output
    assert "canary" not in result.output
    assert (bench.root / "secrets/k").read_text() == "canary"
    assert (bench.root / "t/.env").read_text() == "canary"


async def test_frozen_paths_are_readable_and_stay_as_they_are(bench: Bench):
    bench.put({"a/f": "kept", "b": "kept", "c": "old"})
    result = await bench.run(
        "echo x >a/f; echo x >a/new; rm -rf a; mv a z; echo x >b; mv b z; echo new >c; cat a/f b c", frozen=("a", "b")
    )
    assert result.output.endswith("keptkeptnew\n")
    assert sorted(path.name for path in bench.root.rglob("*")) == ["a", "b", "c", "f"]


async def test_pinned_folders_can_be_written_but_not_renamed(bench: Bench):
    bench.put({"a/b/f": "old"})
    result = await bench.run("mv a z; mv a/b a/z; echo new >a/b/f; echo more >a/g; cat a/b/f", pinned=("a", "a/b"))
    assert result.output.endswith("new\n")
    assert sorted(path.name for path in bench.root.rglob("*")) == ["a", "b", "f", "g"]


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        pytest.param({"hidden": ("a",), "frozen": ("a/f",), "pinned": ("a",)}, "no\n", id="hidden wins"),
        pytest.param({"frozen": ("a",), "pinned": ("a/b",)}, "in a\n", id="what is frozen stays so below a pin"),
        pytest.param({"frozen": (".",), "pinned": ("a",)}, "in a\n", id="also when it is everything"),
        pytest.param({"frozen": ("a",), "hidden": ("a/f",)}, "no\n", id="a hidden file in a frozen folder"),
        pytest.param({"hidden": ("gone/f", "gone")}, "in a\nwritten\n", id="what is gone needs no mask"),
    ],
)
async def test_masks_over_masks(bench: Bench, fields: dict[str, tuple[str, ...]], output: str):
    bench.put({"a/f": "in a\n", "a/b/g": ""})
    script = "(cat a/f || echo no) 2>/dev/null; (echo x >a/b/g && echo written) 2>/dev/null"
    result = await bench.run(script, **fields)
    assert result.output.replace("no\nwritten\n", "no\n") == output


async def test_a_closed_folder_does_not_keep_its_contents_from_being_masked(bench: Bench):
    """A command could close a folder, so that the next one's listing does not see into it, and open it then."""
    bench.put({"secrets/k": "canary", "a": "shown"})
    assert (await bench.run("chmod 000 secrets")).exit_code == 0
    masks = find_masks(bench.root, ("**/k",), ())
    assert masks == Masks(hidden=("secrets",))
    result = await bench.run("chmod 700 secrets; cat secrets/k a", hidden=("secrets",))
    assert "shown" in result.output
    assert "canary" not in result.output
    (bench.root / "secrets").chmod(0o700)


async def test_a_folder_that_commands_could_not_open_needs_no_mask(bench: Bench):
    if os.geteuid() != 0:
        pytest.skip("needs a folder of another user")
    bench.put({"a": "shown"})
    own(bench.root)
    (bench.root / "roots").mkdir(mode=0o700)
    (bench.root / "roots/.env").write_text("canary")
    masks = find_masks(bench.root, ("**/.env",), ())
    assert masks == Masks()
    result = await bench.run("cat a roots/.env", hidden=("roots/.env",))
    assert "shown" in result.output
    assert "canary" not in result.output
