"""The cases of public trackers about search, each with the right answer; the numbers are those of the report's case."""

from __future__ import annotations

import os
import socket
import subprocess
import tracemalloc
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp.tools.find import TOOL as FIND
from mcp.tools.grep import TOOL as GREP
from tests.support.files import call, context, refused, said, tree

NFC, NFD = (unicodedata.normalize(form, "caf\u00e9.txt") for form in ("NFC", "NFD"))
SCREENSHOT = "Screenshot 2024 at 1.23\u202fPM.png"
CURLY = "it\u2019s.md"


@pytest.fixture(autouse=True)
def someone_elses_git(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own git ignores everything; it must not matter."""
    home = tmp_path_factory.mktemp("home")
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*\n")
    (home / "everything").write_text("*\n")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/everything\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))


def laid(root: Path, files: Mapping[str, str]) -> Path:
    """A workspace with these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


async def grepped(root: Path, pattern: str = "needle", **arguments: object) -> list[str]:
    """The files in which grep finds the pattern."""
    result = await call(GREP, context(root), pattern=pattern, **arguments)
    assert result.structured is not None, result
    return sorted({match["path"] for match in result.structured["matches"]})


async def found(root: Path, pattern: str, **arguments: object) -> list[str]:
    """The files that find finds, without folders."""
    result = await call(FIND, context(root), pattern=pattern, **arguments)
    assert result.structured is not None, result
    return [path for path in result.structured["files"] if not path.endswith("/")]


@pytest.mark.parametrize("pattern", ["-e", "--pre=./x", "-f./x", "--files", "--", "-x", "--hostname-bin=./x", "-zzz"])
@pytest.mark.parametrize("literal", [False, True])
async def test_22_a_pattern_that_looks_like_an_option_is_searched_for(
    tmp_path: Path, pattern: str, literal: bool
) -> None:
    laid(tmp_path, {"with": f"a {pattern} b\n", "without": "nothing\n", "x": "#!/bin/sh\ntouch ran\n"})
    (tmp_path / "x").chmod(0o755)
    before = tree(tmp_path)
    assert await grepped(tmp_path, pattern, literal=literal) == ["with"]
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["-x", "--pre=x", "--files", "-e"])
async def test_22_a_file_name_that_looks_like_an_option_is_found_and_searched(tmp_path: Path, name: str) -> None:
    laid(tmp_path, {name: "needle\n", "other": "nothing\n"})
    assert await found(tmp_path, name) == [name]
    assert await grepped(tmp_path, glob=name) == [name]
    assert await grepped(tmp_path, path=name) == [name]
    assert await found(tmp_path, "--exec=touch ran") == []


APP = (
    "repo/migrations/1.js",
    "repo/migrations/deep/2.js",
    "repo/other/migrations/3.js",
    "src/a.ts",
    "src/b.tsx",
    "src/c.js",
    "src/sub/d.ts",
    "lib/src/e.ts",
    ".github/workflows/ci.yml",
    ".github/ci.yml",
    "ci.yml",
)


@pytest.mark.parametrize(
    ("path", "pattern", "names"),
    [
        pytest.param("repo", "migrations/*.js", {"repo/migrations/1.js"}, id="relative to path"),
        pytest.param(".", "migrations/*.js", set(), id="relative to path, so not deeper"),
        pytest.param(
            "repo", "**/migrations/*.js", {"repo/migrations/1.js", "repo/other/migrations/3.js"}, id="any depth"
        ),
        pytest.param(".", "./src/*.ts", {"src/a.ts"}, id="a leading dot and slash"),
        pytest.param("src", "*.{ts,tsx}", {"src/a.ts", "src/b.tsx", "src/sub/d.ts"}, id="braces"),
        pytest.param(".", "src/*.{ts,tsx}", {"src/a.ts", "src/b.tsx"}, id="braces in a path"),
        pytest.param(".", ".github/**/*.yml", {".github/workflows/ci.yml", ".github/ci.yml"}, id="a folder with a dot"),
        pytest.param(".", "src/**", {"src/a.ts", "src/b.tsx", "src/c.js", "src/sub/d.ts"}, id="all below a folder"),
        pytest.param("src", "src/**", set(), id="the searched folder's own name does not match"),
        pytest.param("lib", "src/**", {"lib/src/e.ts"}, id="all below, relative to path"),
        pytest.param(".", "*.yml", {".github/workflows/ci.yml", ".github/ci.yml", "ci.yml"}, id="a name at any depth"),
    ],
)
async def test_25_globs_are_relative_to_the_searched_folder(
    tmp_path: Path, path: str, pattern: str, names: set[str]
) -> None:
    """The workspace lies below a folder that is called `src` itself."""
    root = laid(tmp_path / "src/app", dict.fromkeys(APP, "needle\n"))
    assert set(await found(root, pattern, path=path)) == names
    assert set(await grepped(root, glob=pattern, path=path)) == names


@pytest.mark.parametrize(
    ("files", "path", "names"),
    [
        pytest.param(
            {"a/.gitignore": "x\n", "a/x": "", "b/x": ""}, ".", ["b/x"], id="one folder's rules hide no other's"
        ),
        pytest.param({".gitignore": "x\n", "a/x": "", "x": ""}, ".", [], id="outside of a repository too"),
        pytest.param({".gitignore": "x\n", ".git/HEAD": "", "a/x": ""}, ".", [], id="inside of a repository"),
        pytest.param({".gitignore": "*\n!a\n", "a/x": "", "a/.gitignore": "!x\n"}, ".", ["a/x"], id="an exception"),
        pytest.param({".gitignore": "/a/x\n", "a/x": "", "a/b/x": ""}, "a", ["a/b/x"], id="the root's rules below it"),
        pytest.param({".gitignore": "x\n", "a/b/x": ""}, "a/b", [], id="and two folders below it"),
        pytest.param({"a/.gitignore": "b/x\n", "a/b/x": ""}, "a/b", [], id="rules of a folder between"),
        pytest.param({".gitignore": "x/\n", "x/x": ""}, "x", ["x/x"], id="an ignored folder that is named"),
        pytest.param({".gitignore": "x/*\n", "x/x": ""}, "x", ["x/x"], id="a folder with all in it ignored"),
        pytest.param(
            {".gitignore": "vendor/\n", "vendor/repo/.git/HEAD": "", "vendor/repo/x": ""},
            "vendor/repo",
            ["vendor/repo/x"],
            id="a repository that the outer one ignores",
        ),
        pytest.param(
            {".gitignore": "x\n", "vendor/repo/.git/HEAD": "", "vendor/repo/x": ""},
            "vendor/repo",
            ["vendor/repo/x"],
            id="a repository whose files the outer one ignores",
        ),
        pytest.param(
            {".git/HEAD": "", ".gitignore": "x\n", "vendor/repo/.git/HEAD": "", "vendor/repo/x": ""},
            ".",
            ["vendor/repo/x"],
            id="the same from the outer one",
        ),
        pytest.param({".git/x": "", "a/.git/x": "", "x": ""}, ".", ["x"], id="the .git folders are left out"),
        pytest.param({".git/hooks/x": ""}, ".git/hooks", [".git/hooks/x"], id="but not when named"),
        pytest.param({".superpi/spool/x": "", "x": ""}, ".", ["x"], id="so is the server's own folder"),
        pytest.param({".hidden/x": ""}, ".", [".hidden/x"], id="hidden files are in"),
        pytest.param({".ignore": "x\n", "x": ""}, ".", [], id="the other ignore file"),
    ],
)
async def test_26_ignore_files_hide_what_they_should_and_no_more(
    tmp_path: Path, files: dict[str, str], path: str, names: list[str]
) -> None:
    root = laid(tmp_path / "ws", {name: text or "needle\n" for name, text in files.items()})
    (tmp_path / ".gitignore").write_text("*\n")
    assert await found(root, "x", path=path) == names
    assert await grepped(root, path=path) == names
    assert await grepped(root, path=path, glob="x") == names


@pytest.mark.parametrize("glob", ["*", "**", "**/*.js", "node_modules/**", "*.{js,ts}", "{node_modules,src}/**"])
async def test_26_a_glob_does_not_bring_ignored_files_back(tmp_path: Path, glob: str) -> None:
    files = ("node_modules/a.js", "src/b.js", "src/gen.min.js")
    laid(tmp_path, {".gitignore": "node_modules\n*.min.js\n", **dict.fromkeys(files, "needle\n")})
    expected = [] if glob == "node_modules/**" else ["src/b.js"]
    assert await grepped(tmp_path, glob=glob) == expected
    assert [name for name in await found(tmp_path, glob) if name.endswith(".js")] == expected


async def test_26_a_file_that_is_ignored_is_searched_when_it_is_named(tmp_path: Path) -> None:
    laid(tmp_path, {".gitignore": "x\n", "x": "needle\n"})
    assert await grepped(tmp_path, path="x") == ["x"]


async def test_13_a_large_file_is_searched_in_little_memory(tmp_path: Path) -> None:
    """50 MB in which every line matches; only what is shown is read into the server."""
    (tmp_path / "log").write_bytes(b"0123456789 needle 0123456789 0123456789 0123456789\n" * 1_000_000)
    await grepped(tmp_path, path="log")
    for path in ("log", "."):
        tracemalloc.start()
        result = await call(GREP, context(tmp_path), pattern="needle", path=path, context=2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert result.structured is not None
        assert (len(result.structured["matches"]), result.structured["truncated"]) == (100, True)
        assert peak < 4 * 1024 * 1024


async def test_14_a_line_of_5_mb_is_shown_around_its_match(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_bytes(b"x=1;" * 600_000 + b"needle" + b"y=2;" * 600_000)
    text = await said(GREP, context(tmp_path), pattern="needle")
    line, _, note = text.partition("\n\n")
    assert "needle" in line
    assert len(line) < 530
    assert note == "[1 line is longer than 500 characters and cut at …; read shows more.]"


async def test_14_a_line_of_20_mb_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_bytes(b"first\n" + b"x=1;" * 5_000_000 + b"needle\n")
    text = await said(GREP, context(tmp_path), pattern="needle")
    assert text.startswith("min.js:2: [a line of more than 8 MB, not shown]")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
async def test_17_a_search_passes_over_what_is_not_a_file(tmp_path: Path) -> None:
    laid(tmp_path, {"real": "needle\n"})
    os.mkfifo(tmp_path / "notes.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert await grepped(tmp_path) == ["real"]
        assert await found(tmp_path, "*") == ["real"]
        assert await refused(GREP, context(tmp_path), pattern="x", path="notes.md") == (
            "notes.md is not a regular file: it is a FIFO."
        )


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        pytest.param(NFD, NFC, id="decomposed, asked composed"),
        pytest.param(NFC, NFD, id="composed, asked decomposed"),
        pytest.param(NFD, f"{NFC[:4]}*", id="decomposed, asked composed with a star"),
        pytest.param(NFD, "caf?.txt", id="decomposed, asked with one character"),
        pytest.param(NFD, "caf[é].txt", id="decomposed, asked with a class"),
        pytest.param(SCREENSHOT, SCREENSHOT.replace("\u202f", " "), id="a narrow space, asked with a plain one"),
        pytest.param(SCREENSHOT, "Screenshot*1.23 PM.*", id="the same with stars"),
        pytest.param(CURLY, "it's.md", id="a curly apostrophe, asked with a straight one"),
    ],
)
@pytest.mark.parametrize("folder", ["", "d/"])
async def test_21_names_are_found_in_either_unicode_form(tmp_path: Path, stored: str, asked: str, folder: str) -> None:
    laid(tmp_path, {folder + stored: "needle\n", "other.txt": "needle\n"})
    assert await found(tmp_path, folder + asked) == [folder + stored]
    assert await grepped(tmp_path, glob=folder + asked) == [folder + stored]


async def test_21_a_folder_in_the_other_form_is_searched(tmp_path: Path) -> None:
    laid(tmp_path, {f"{NFD}/x": "needle\n"})
    assert await grepped(tmp_path, path=NFC) == [f"{NFD}/x"]


async def test_a_repository_made_by_git_is_searched_as_git_sees_it(tmp_path: Path) -> None:
    """The files that find lists are those that git does not ignore."""
    files = ("a/x.c", "a/x.o", "a/gen/y", "b/keep.o", "b/gen/y", "top.o")
    ignores = {".gitignore": "*.o\n/a/gen/\n", "b/.gitignore": "!keep.o\n"}
    laid(tmp_path, dict.fromkeys(files, "") | ignores)
    git = ["git", "-C", str(tmp_path)]
    try:
        subprocess.run([*git, "init", "-q"], check=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    except FileNotFoundError:
        pytest.skip("no git here")
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert sorted(await found(tmp_path, "**")) == sorted(listed.stdout.splitlines())
