"""The workspace context: instructions, outline and git state, and what the policy keeps out of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import Effect, Mode, Rule
from mcp.context import workspace_context
from mcp.context_files import MOST_BYTES, MOST_FILE_BYTES, MOST_FILES, Instruction, candidates, instruction_lines
from mcp.context_git import ARGV, MOST_CHANGES, git_lines
from mcp.context_tree import MOST_LINES, outline
from mcp.faults import Fault
from mcp.harness.registry import load
from mcp.limits import Limits
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import Command, CommandResult, SandboxStep, Shell, probe_shell, unavailable
from tests.support.unprivileged import folder, own

CODE = load(None).get("super-pi-code")
NO_SHELL = unavailable("Tested without one.")


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


async def context(root: Path, *rules: Rule, shell: Shell = NO_SHELL, harness=CODE) -> dict[str, str]:
    """The page's sections by title."""
    text = await workspace_context(Workspace(root), harness.policy(rules=rules), shell, Limits(), "local:alice")
    assert text.startswith("# Workspace\n\n## ")
    return dict(part.rstrip("\n").split("\n\n", 1) for part in text.removeprefix("# Workspace\n\n## ").split("\n\n## "))


# -- instructions -------------------------------------------------------------------------------------------


def test_instruction_files_come_outermost_first_and_those_of_the_root_are_always_looked_for():
    assert candidates(["b/AGENTS.md", "a/b/CLAUDE.md", "a/CLAUDE.md", "a/agents.md", "x/AGENTS.md.bak"]) == (
        "AGENTS.md",
        "CLAUDE.md",
        "a/CLAUDE.md",
        "b/AGENTS.md",
        "a/b/CLAUDE.md",
    )


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        pytest.param([], ["There are none."], id="none"),
        pytest.param(
            [Instruction("AGENTS.md", b"\xef\xbb\xbfBe\r\nkind.\n", True)],
            ["### AGENTS.md", "", "```markdown", "Be\nkind.", "```"],
            id="one, saved on Windows",
        ),
        pytest.param(
            [Instruction("AGENTS.md", b"A", True), Instruction("CLAUDE.md", b"A", True)],
            ["### AGENTS.md", "", "```markdown", "A", "```", "", "### CLAUDE.md", "", "The same as AGENTS.md."],
            id="the same twice",
        ),
        pytest.param(
            [Instruction("AGENTS.md", b"````py\nx\n````", True)],
            ["### AGENTS.md", "", "`````markdown", "````py\nx\n````", "`````"],
            id="with fences in it",
        ),
        pytest.param(
            [Instruction("AGENTS.md", b"a\nb", False)],
            [
                "### AGENTS.md",
                "",
                "```markdown",
                "a\nb",
                "```",
                "",
                "Only the beginning is shown; read AGENTS.md for the rest.",
            ],
            id="only the beginning",
        ),
    ],
)
def test_how_instructions_are_shown(files, lines):
    assert list(instruction_lines(files)) == lines


def test_instructions_take_a_bounded_number_of_bytes_in_whole_lines():
    files = [Instruction(f"{n}/AGENTS.md", (b"%d" % n + b"x" * 98 + b"\n") * 320, True) for n in range(5)]
    lines = instruction_lines(files)
    shown = [line for block in lines for line in block.split("\n") if "xxx" in line]
    assert MOST_BYTES - 2 * 100 <= sum(len(line) + 1 for line in shown) <= MOST_BYTES
    assert {len(line) for line in shown} == {99}
    assert sum(line.startswith("Only the beginning") for line in lines) == 3


async def test_a_large_file_and_many_files_are_cut_and_said_to_be(tmp_path):
    put(tmp_path, {"AGENTS.md": "line\n" * 20_000} | {f"{n:02}/AGENTS.md": str(n) for n in range(MOST_FILES)})
    text = (await context(tmp_path))["Instructions"]
    assert "Only the beginning is shown; read AGENTS.md for the rest." in text
    assert text.count("line\n") <= MOST_FILE_BYTES // 5
    assert text.endswith("\n\n2 more instruction files are not shown; find them by name (AGENTS.md, CLAUDE.md).")


async def test_ignored_folders_have_no_say_and_links_of_the_root_do(tmp_path):
    put(
        tmp_path,
        {".gitignore": "vendor/\n", "vendor/AGENTS.md": "No.", "docs/agents.txt": "Linked.", "a/CLAUDE.md": "A."},
    )
    (tmp_path / "AGENTS.md").symlink_to("docs/agents.txt")
    text = (await context(tmp_path))["Instructions"]
    assert [line for line in text.split("\n") if line.endswith(".")] == ["Linked.", "A."]


async def test_a_link_out_of_the_workspace_is_not_followed(tmp_path):
    outside = put(tmp_path / "outside", {"canary": "CANARY"})
    workspace = put(tmp_path / "ws", {"a": ""})
    (workspace / "AGENTS.md").symlink_to(outside / "canary")
    assert "CANARY" not in str(await context(workspace))


async def test_what_the_policy_denies_to_read_is_left_out(tmp_path):
    put(tmp_path, {"AGENTS.md": "Open.", "secret/AGENTS.md": "CANARY"})
    text = (await context(tmp_path, Rule("read", "secret/", Effect.DENY)))["Instructions"]
    assert ("Open." in text, "CANARY" in text) == (True, False)


async def test_what_is_asked_about_is_left_out_since_nobody_is_asked(tmp_path):
    put(tmp_path, {"AGENTS.md": "Open.", "secret/AGENTS.md": "CANARY"})
    sections = await context(tmp_path, Rule("read", "secret/", Effect.ASK), Rule("ls", "secret", Effect.ASK))
    assert "Open." in sections["Instructions"]
    assert ("CANARY" in str(sections), "secret" in sections["Files"]) == (False, False)


async def test_where_everything_is_asked_about_each_section_says_so(repository):
    put(repository, {"AGENTS.md": "CANARY"})
    asked = "is refused here: a rule asks about everything that no rule allows."
    assert await context(repository, Rule("*", "**", Effect.ASK), shell=LOCAL) == {
        "Instructions": f"Not shown: read {asked}",
        "Files": f"Not shown: listing {asked}",
        "Git": f"Not shown: read {asked}",
    }


async def test_what_is_allowed_is_shown_where_the_rest_is_asked_about(tmp_path):
    put(tmp_path, {"AGENTS.md": "Open.", "secret/AGENTS.md": "CANARY"})
    rules = [Rule("read", "/AGENTS.md", Effect.ALLOW), Rule("read", "**", Effect.ASK)]
    text = (await context(tmp_path, *rules))["Instructions"]
    assert ("Open." in text, "CANARY" in text) == (True, False)


async def test_a_harness_without_a_file_system_sees_nothing_of_it(tmp_path):
    put(tmp_path, {"AGENTS.md": "CANARY", "canary": ""})
    sections = await context(tmp_path, harness=load(None).get("super-pi-assistant"))
    lacks = "is refused here: the harness super-pi-assistant does not have this tool; it has no tools."
    assert sections == {
        "Instructions": f"Not shown: read {lacks}",
        "Files": f"Not shown: listing {lacks}",
        "Git": f"Not shown: read {lacks}",
    }


# -- files --------------------------------------------------------------------------------------------------


def test_an_outline_counts_the_files_of_folders_and_shows_three_levels():
    assert outline(["b.py", "A/y/z/w/deep.py", "A/y/z/x.py", "A/n", "a.py"]) == (
        "A/ (3 files)",
        "  y/ (2 files)",
        "    z/ (2 files)",
        "  n",
        "a.py",
        "b.py",
    )


def test_an_outline_shows_fewer_levels_rather_than_fewer_folders():
    assert outline([f"{folder}/{n}" for folder in "ab" for n in range(MOST_LINES)]) == (
        "a/ (200 files)",
        "b/ (200 files)",
    )


def test_an_outline_says_how_much_it_leaves_off():
    assert outline([f"{n:04}" for n in range(MOST_LINES + 7)])[-2:] == ("0199", "... and 7 more")


def test_a_name_stays_on_its_line():
    assert outline(["a\n# b", "c\udcff", "d\u202f\u200de"]) == (
        "a\N{REPLACEMENT CHARACTER}# b",
        "c\N{REPLACEMENT CHARACTER}",
        "d\u202f\u200de",
    )


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6).map("/".join), max_size=400))
def test_an_outline_is_bounded(paths):
    assert len(outline(paths)) <= MOST_LINES + 1


async def test_files_are_counted_without_those_that_are_ignored(tmp_path):
    put(tmp_path, {".gitignore": "*.log\n", "a.log": "", "src/a.py": "", "src/b.py": "", "b.txt": ""})
    assert (await context(tmp_path))["Files"] == (
        "4 files, without those that .gitignore leaves out:\n\n    src/ (2 files)\n      a.py\n      b.py\n"
        "    .gitignore\n    b.txt"
    )


async def test_names_that_the_policy_denies_are_left_out(tmp_path):
    put(tmp_path, {"a": "", "secret/canary": ""})
    sections = await context(tmp_path, Rule("ls", "secret", Effect.DENY))
    assert sections["Files"] == "1 file, without those that .gitignore leaves out:\n\n    a"


async def test_an_empty_workspace_says_so(tmp_path):
    assert await context(tmp_path) == {
        "Instructions": "There are none.",
        "Files": "There are none that are not ignored.",
        "Git": "Not shown: a repository can make git run programs, and there is no sandbox here to run them in.",
    }


# -- git ----------------------------------------------------------------------------------------------------

GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments], cwd=root, env=GIT_ENVIRONMENT, check=True, capture_output=True
    )


async def outside_any_sandbox(command: Command) -> CommandResult | Fault:
    """Runs a command in a repository that the test has made itself."""
    ran = subprocess.run(
        command.argv, cwd=command.root, env=GIT_ENVIRONMENT, capture_output=True, text=True, timeout=20
    )
    output = ran.stdout + ran.stderr
    return CommandResult(ran.returncode, output, 0.0, False, False, output.count("\n"), len(output), 1, 1)


LOCAL = Shell(SandboxStep.BUBBLEWRAP, "Stands for one.", outside_any_sandbox)


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    return root


def commit(root: Path, subject: str) -> None:
    git(root, "commit", "-q", "--allow-empty", "-m", subject)


async def git_section(root: Path) -> list[str]:
    return (await context(root, shell=LOCAL))["Git"].split("\n")


async def test_the_branch_changes_and_last_commits_are_shown(repository):
    put(repository, {"a": "1", "b": "1"})
    git(repository, "add", "a", "b")
    for subject in ["one", "two", "three", "four", "five", "-- six"]:
        commit(repository, subject)
    put(repository, {"a": "2", "café": "", "new\nname": ""})
    lines = await git_section(repository)
    assert lines[:9] == [
        "Branch: main",
        "Uncommitted changes (3):",
        "",
        "     M a",
        "    ?? café",
        '    ?? "new\\nname"',
        "",
        "Last commits:",
        "",
    ]
    assert [line.split(" ", 5)[5] for line in lines[9:]] == ["-- six", "five", "four", "three", "two"]


async def test_ahead_and_behind_are_shown_and_no_password_of_a_remote(repository, tmp_path):
    commit(repository, "one")
    git(tmp_path, "clone", "-q", str(repository), "copy")
    copy = tmp_path / "copy"
    commit(repository, "theirs")
    commit(copy, "see https://user:CANARY@host/x")
    git(copy, "fetch", "-q")
    git(copy, "remote", "set-url", "origin", "https://user:CANARY@host/x")
    lines = await git_section(copy)
    assert lines[0] == "Branch: main...origin/main [ahead 1, behind 1]"
    assert "CANARY" not in str(lines)


async def test_a_repository_without_commits(repository):
    assert await git_section(repository) == [
        "Branch: No commits yet on main",
        "No uncommitted changes.",
        "No commits yet.",
    ]


async def test_many_changes_are_counted_and_cut(repository):
    put(repository, {f"{n:03}": "" for n in range(MOST_CHANGES + 10)})
    lines = await git_section(repository)
    assert lines[1] == f"Uncommitted changes ({MOST_CHANGES + 10}):"
    assert lines[3 : 3 + MOST_CHANGES + 1] == [*(f"    ?? {n:03}" for n in range(MOST_CHANGES)), "    ... and 10 more"]


async def test_a_folder_that_is_no_repository_says_so(tmp_path):
    assert await git_section(tmp_path) == ["The workspace is not a git repository."]


async def test_programs_that_a_repository_names_for_monitors_hooks_pagers_and_signatures_do_not_run(
    repository, tmp_path
):
    commit(repository, "one")
    planted = tmp_path / "planted"
    planted.write_text(f"#!/bin/sh\necho ran >> {tmp_path / 'canary'}\n")
    planted.chmod(0o755)
    hooks = put(repository / ".git" / "hooks", {"post-index-change": planted.read_text()})
    (hooks / "post-index-change").chmod(0o755)
    for option in ["core.fsmonitor", "core.pager", "pager.log", "pager.status", "gpg.program"]:
        git(repository, "config", option, str(planted))
    for option in ["log.showSignature", "core.untrackedCache"]:
        git(repository, "config", option, "true")
    put(repository, {"a": ""})
    assert (await git_section(repository))[0] == "Branch: main"
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ({"exit_code": 127}, "git is not installed on the server."),
        ({"timed_out": True, "exit_code": 137}, "The git state could not be read in time."),
        ({"exit_code": 1}, "The git state could not be read in time."),
        ({"output": ""}, "The workspace is not a git repository."),
        ({"output": "--\n"}, "The workspace is not a git repository."),
    ],
)
def test_when_git_says_nothing_a_sentence_does(result, sentence):
    assert git_lines(replace(CommandResult(0, "", 0.0, False, False, 0, 0, 0, 0), **result)) == (sentence,)


async def test_a_shell_that_cannot_run_is_quoted(tmp_path):
    async def broken(command: Command) -> CommandResult | Fault:
        assert (command.argv, command.mode, command.spool) == (ARGV, Mode.READ_ONLY, False)
        return Fault("All places are taken. Try again.")

    shell = Shell(SandboxStep.LANDLOCK, "Tested.", broken)
    assert (await context(tmp_path, shell=shell))["Git"] == "Not shown: All places are taken. Try again."


@pytest.mark.parametrize("step", [SandboxStep.UNSANDBOXED, SandboxStep.UNAVAILABLE])
async def test_git_does_not_run_where_there_is_no_sandbox(repository, step):
    async def never(command: Command) -> CommandResult | Fault:
        raise AssertionError(command)

    text = (await context(repository, shell=Shell(step, "Tested.", never)))["Git"]
    assert text.startswith("Not shown: a repository can make git run programs")


async def test_git_runs_in_the_sandbox_of_this_machine():
    shell = probe_shell(Limits(), allow_unsandboxed=False, local=False)
    if shell.step is SandboxStep.UNAVAILABLE:
        pytest.skip(shell.why)
    with folder() as root:
        git(root, "init", "-q", "-b", "main")
        commit(root, "one")
        put(root, {"a": ""})
        own(root)
        lines = (await context(root, shell=shell))["Git"].split("\n")
    assert (lines[:2], lines[-1][-3:]) == (["Branch: main", "Uncommitted changes (1):"], "one")
