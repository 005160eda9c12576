"""Ignore files above the searched folder: the same files are found from there as from the top."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mcp.workspace.search_ignores import IgnoreFile, inherited_rules, translated
from mcp.workspace.search_process import Program, program


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        pytest.param("*.log", ["*.log"], id="a name at any depth stays"),
        pytest.param("build/", ["build/"], id="so does a folder"),
        pytest.param("!keep.log", ["!keep.log"], id="and an exception"),
        pytest.param("/a/b/x.c", ["/x.c"], id="a path loses the folders that lead here"),
        pytest.param("a/b/gen/", ["/gen/"], id="a folder stays one"),
        pytest.param("!/a/b/x", ["!/x"], id="an exception stays one"),
        pytest.param("a/*/x", ["/x"], id="a star stands for a folder on the way"),
        pytest.param("*/[ab]/x", ["/x"], id="a class does too"),
        pytest.param("**/x/y", ["/**/x/y"], id="two stars first go on"),
        pytest.param("a/**/x", ["/**/x"], id="two stars in the middle go on"),
        pytest.param("**/b/x", ["/**/b/x", "/x"], id="two stars can end on the way"),
        pytest.param("a/b", [], id="a rule on the folder itself is dropped"),
        pytest.param("a/b/", [], id="with a slash too"),
        pytest.param("a/b/*", [], id="and on all that is in it"),
        pytest.param("a/**", [], id="and on all below a folder above it"),
        pytest.param("/a", [], id="and on a folder above it"),
        pytest.param("other/x", [], id="a path elsewhere is dropped"),
        pytest.param("/x", [], id="a name at the top is dropped"),
        pytest.param("# a/b/x", [], id="a comment"),
        pytest.param("   ", [], id="a blank line"),
        pytest.param("a/b/x  ", ["/x"], id="blanks at the end"),
        pytest.param("a/b/x\\ ", ["/x\\ "], id="an escaped blank at the end"),
        pytest.param("a/b/\\*x", ["/\\*x"], id="an escaped star stays escaped"),
        pytest.param("a/b/[z-a]", [], id="a pattern that is none"),
    ],
)
def test_a_rule_is_rewritten_for_a_folder_below(line: str, rules: list[str]) -> None:
    assert sorted(translated(IgnoreFile(line + "\n", ("a", "b")))) == sorted(rules)


FILES = ("a/b/x", "a/b/y", "a/b/x.log", "a/b/gen/x", "a/b/gen/deep/x", "a/b/c/gen/x", "a/b/c/y.log", "a/x")
IGNORES = {
    "nothing ignored": {},
    "a name": {".gitignore": "x\n"},
    "a suffix with an exception": {".gitignore": "*.log\n!y.log\n"},
    "a path": {".gitignore": "/a/b/gen\n"},
    "a path with stars": {".gitignore": "a/*/gen/\na/**/c/*.log\n"},
    "two stars first": {".gitignore": "**/gen/deep\n"},
    "a file between": {"a/.gitignore": "/b/gen/\n/x\n"},
    "the lower file wins": {".gitignore": "*.log\n", "a/.gitignore": "!*.log\n"},
    "the other kinds of file": {".ignore": "gen/\n", ".rgignore": "/a/b/y\n", ".gitignore": "!y\n"},
    "the folder's own file wins": {".gitignore": "*.log\n", "a/b/.gitignore": "!x.log\n"},
    "lines of Windows and a BOM": {".gitignore": "\ufeff/a/b/y\r\n*.log\r\n"},
    "what the repository excludes": {".git/info/exclude": "/a/b/y\n"},
}


def listed(folder: Path, *rules: str) -> set[str]:
    """The files that ripgrep lists, with the rules as an ignore file."""
    rg = program()
    assert isinstance(rg, Program)
    kept = os.memfd_create("rules")
    os.write(kept, "\n".join([*rules, ""]).encode())
    options = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--no-ignore-global")
    done = subprocess.run(
        [rg.path, *options, "--glob=!.*", f"--ignore-file=/proc/self/fd/{kept}", "--files", "./"],
        cwd=folder,
        pass_fds=(kept,),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    os.close(kept)
    return {name.removeprefix("./") for name in done.stdout.splitlines()}


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the rules are handed over in memory")
@pytest.mark.parametrize("ignores", IGNORES.values(), ids=IGNORES)
def test_a_folder_has_the_same_files_as_from_the_top(tmp_path: Path, ignores: dict[str, str]) -> None:
    for name, text in {**dict.fromkeys(FILES, ""), **ignores}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    from_top = {name.removeprefix("a/b/") for name in listed(tmp_path) if name.startswith("a/b/")}
    assert listed(tmp_path / "a/b", *inherited_rules(str(tmp_path), "a/b")) == from_top


def test_the_files_of_an_outer_repository_do_not_reach_into_an_inner_one(tmp_path: Path) -> None:
    """git's own ignore files count within one repository; the others count everywhere."""
    (tmp_path / "inner/.git").mkdir(parents=True)
    (tmp_path / "inner/sub").mkdir()
    (tmp_path / ".gitignore").write_text("outer\n")
    (tmp_path / ".ignore").write_text("everywhere\n")
    (tmp_path / "inner/.gitignore").write_text("inner\n")
    assert inherited_rules(str(tmp_path), "inner") == ("everywhere",)
    assert inherited_rules(str(tmp_path), "inner/sub") == ("inner", "everywhere")


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_an_ignore_file_that_is_no_file_is_passed_over(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rules").write_text("x\n")
    (tmp_path / "sub").mkdir()
    ignore = tmp_path / ".gitignore"
    match kind:
        case "link":
            ignore.symlink_to("rules")
        case "folder":
            ignore.mkdir()
        case _:
            os.mkfifo(ignore)
    assert inherited_rules(str(tmp_path), "sub") == ()


def test_the_root_inherits_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("x\n")
    assert inherited_rules(str(tmp_path), ".") == ()
