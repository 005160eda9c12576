"""The tool bash: what it takes, what it answers, and what it keeps commands from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auth.permissions import Effect, Mode, Rule
from mcp.arguments import argument_check
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.protocol.offer import Accepted, Rejected
from mcp.tools.bash import MOST_COMMAND_BYTES, TOOL
from mcp.workspace.shell import Command, CommandResult, SandboxStep, Shell, unavailable
from tests.support.files import call, context, refused, said, text_of
from tests.support.shells import Bench, shell, workspace


@pytest.fixture
def bench() -> Iterator[Bench]:
    with workspace() as root:
        yield Bench(shell(SandboxStep.BUBBLEWRAP), root)


# What it takes

CHECK = argument_check(TOOL)


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        pytest.param({"command": "ls"}, {"command": "ls"}, id="a command alone"),
        pytest.param({"command": "ls", "timeout": 1.5}, {"command": "ls", "timeout": 1.5}, id="a fraction of seconds"),
        pytest.param({"command": "ls", "timeout": 600}, {"command": "ls", "timeout": 600}, id="the longest timeout"),
        pytest.param({"command": "ls", "timeout": None}, {"command": "ls"}, id="null for no timeout"),
        pytest.param({"command": "ls", "timeout": "30"}, {"command": "ls", "timeout": 30}, id="a number as a string"),
    ],
)
def test_arguments_that_are_taken(arguments: dict[str, Any], accepted: dict[str, Any]):
    assert CHECK(arguments) == Accepted(accepted)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="no command"),
        pytest.param({"command": ""}, id="an empty command"),
        pytest.param({"command": ["ls"]}, id="a list"),
        pytest.param({"command": "ls", "timeout": 0}, id="no time"),
        pytest.param({"command": "ls", "timeout": -1}, id="negative time"),
        pytest.param({"command": "ls", "timeout": 601}, id="more than the longest"),
        pytest.param({"command": "ls", "timeout": 120_000}, id="milliseconds"),
        pytest.param({"command": "ls", "timeout": float("inf")}, id="for ever"),
        pytest.param({"command": "ls", "timeout": True}, id="a boolean"),
        pytest.param({"command": "ls", "timeout": "soon"}, id="a word"),
        pytest.param({"command": "ls", "cwd": "/"}, id="an argument that does not exist"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any]):
    assert isinstance(CHECK(arguments), Rejected)


NEVER_RUNS = unavailable("tests", "it came to the shell")


@pytest.mark.parametrize(
    ("script", "timeout", "limits", "words"),
    [
        pytest.param("ls", 500, Limits(shell_seconds_max=300), "at most 300 seconds", id="a timeout over the setting"),
        pytest.param("ls", float("nan"), Limits(), "more than 0", id="no number"),
        pytest.param("é" * MOST_COMMAND_BYTES, 1, Limits(), "240,000 bytes", id="more bytes than the kernel takes"),
        pytest.param("echo \0", 1, Limits(), "NUL", id="a NUL character"),
        pytest.param("echo \ud800", 1, Limits(), "surrogate", id="half a character"),
        pytest.param("ls", 1, Limits(), "it came to the shell", id="nothing is wrong"),
    ],
)
async def test_calls_beyond_the_schema(tmp_path: Path, script: str, timeout: float, limits: Limits, words: str):
    ctx = replace(context(tmp_path, limits=limits), shell=NEVER_RUNS)
    result = await TOOL.run(ctx, {"command": script, "timeout": timeout})
    assert result.is_error
    assert words in text_of(result)


# What it answers


async def answer(result: CommandResult, **arguments: Any) -> ToolResult:
    """The answer to a command that came to that result."""

    async def run(_command: Command) -> CommandResult | Fault:
        return result

    ctx = replace(context(Path("/")), shell=Shell(SandboxStep.LANDLOCK, "tests", run))
    return await call(TOOL, ctx, command="true", **arguments)


WHOLE = CommandResult(0, "a\nb\n", 0.12345, False, False, 2, 4, 1, 2)
TAIL = replace(WHOLE, truncated=True, total_lines=1234, first_line=1233, last_line=1234)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        pytest.param(WHOLE, "a\nb", id="all of it, and no word about it"),
        pytest.param(replace(WHOLE, output=""), "(no output)", id="nothing is said"),
        pytest.param(replace(WHOLE, output="a\n\n\n"), "a\n\n", id="only the last newline is taken off"),
        pytest.param(
            replace(TAIL, spool=".superpi/spool/x.log"),
            "a\nb\n\n[Only lines 1,233 to 1,234 of 1,234 are shown. All output is in .superpi/spool/x.log: use read or "
            "grep on it.]",
            id="the end, and where all of it is",
        ),
        pytest.param(
            replace(TAIL, spool=".superpi/spool/x.log", spool_capped=True),
            "a\nb\n\n[Only lines 1,233 to 1,234 of 1,234 are shown. The first 16,777,216 bytes are in "
            ".superpi/spool/x.log: use read or grep on it.]",
            id="the end, and where its beginning is",
        ),
        pytest.param(
            TAIL,
            "a\nb\n\n[Only lines 1,233 to 1,234 of 1,234 are shown. The rest was not kept; send the output to a file "
            "to keep it.]",
            id="the end, and nothing else",
        ),
    ],
)
async def test_the_text_of_a_success(result: CommandResult, text: str):
    told = await answer(result)
    assert text_of(told) == text
    assert told.structured == {
        "output": result.output,
        "exit_code": 0,
        "duration": 0.123,
        "truncated": result.truncated,
        "timed_out": False,
        "spool": result.spool,
    }


async def test_a_timeout_names_what_cannot_be_waited_for():
    told = await answer(replace(WHOLE, exit_code=137, timed_out=True), timeout=2)
    assert text_of(told) == (
        "a\nb\n\n[Timed out after 2 s: the command and everything it started was killed, and its output until then is "
        "above. A longer timeout can be given, up to 600 s. A command that waits for a terminal (an editor, a pager, a "
        "password) cannot be used here.]"
    )


async def test_a_failure_is_an_error_with_its_data_beside_it():
    told = await answer(replace(WHOLE, exit_code=3))
    assert text_of(told) == "a\nb\n\n[exit code 3]"
    assert (told.is_error, told.structured) == (True, None)
    assert told.meta == {
        "io.superpi/command": {
            "exit_code": 3,
            "duration": 0.123,
            "truncated": False,
            "timed_out": False,
            "spool": None,
        }
    }


# What it passes on


async def passed_on(root: Path, mode: Mode, **arguments: Any) -> Command:
    """The command that a call makes of its arguments and context."""
    commands: list[Command] = []

    async def run(command: Command) -> CommandResult | Fault:
        commands.append(command)
        return WHOLE

    ctx = context(root, mode=mode)
    await call(TOOL, replace(ctx, shell=Shell(SandboxStep.BUBBLEWRAP, "tests", run), principal="p"), **arguments)
    return commands[0]


async def test_a_command_gets_the_workspace_the_mode_and_the_default_timeout(tmp_path: Path):
    assert await passed_on(tmp_path, Mode.READ_ONLY, command="ls -l") == Command(
        ("bash", "-c", "ls -l"), tmp_path, Mode.READ_ONLY, 120.0, "p"
    )
    assert (await passed_on(tmp_path, Mode.FULL, command="ls", timeout=1.5)).timeout == 1.5


async def test_what_others_would_run_later_is_frozen(bench: Bench):
    bench.put({".git/config": "", ".git/hooks/x": "", ".superpi/.gitignore": "*\n", ".git/HEAD": ""})
    command = await passed_on(bench.root, Mode.WORKSPACE_WRITE, command="ls")
    assert (command.frozen, command.pinned) == ((".superpi", ".git/hooks", ".git/config"), (".git",))


async def test_a_worktrees_git_file_is_frozen(bench: Bench):
    bench.put({".git": "gitdir: ../main/.git/worktrees/w\n"})
    command = await passed_on(bench.root, Mode.WORKSPACE_WRITE, command="ls")
    assert (command.frozen, command.pinned) == ((".git",), ())


# What it keeps commands from


async def test_a_command_can_commit_but_not_plant_what_git_runs(bench: Bench):
    await said(TOOL, bench.context(), command="git init -q . && git config user.name somebody")
    bench.put({"a": "a\n", ".superpi/locks/x": ""})
    hooks = {path.name for path in (bench.root / ".git/hooks").iterdir()}
    config = (bench.root / ".git/config").read_text()
    script = """
    git add a && git commit -qm first && git log --format=%an
    echo evil >.git/hooks/pre-commit; git config core.fsmonitor evil; echo evil >>.git/config
    mv .git g; mv .git/hooks h; rm -rf .git/config; echo evil >.superpi/locks/x; rm -rf .superpi; mv .superpi s
    """
    text = await said(TOOL, bench.context(), command=script + "true")
    assert text.startswith("somebody\n")
    assert {path.name for path in (bench.root / ".git/hooks").iterdir()} == hooks
    assert (bench.root / ".git/config").read_text() == config
    assert (bench.root / ".superpi/locks/x").read_text() == ""


NO_MIGRATIONS = (Rule("write", "migrations/**", Effect.DENY),)


async def test_what_rules_keep_from_being_written_stays_as_it_is(bench: Bench):
    bench.put({"migrations/1": "kept", "other": "old"})
    script = "echo x >migrations/1; echo x >migrations/2; rm -rf migrations; echo new >other; cat migrations/1"
    text = await said(TOOL, bench.context(rules=NO_MIGRATIONS), command=script)
    assert text.endswith("kept")
    assert sorted(path.name for path in bench.root.rglob("*")) == ["1", "migrations", "other"]
    assert (bench.root / "other").read_text() == "new\n"


async def test_a_rule_on_commands_refuses_before_anything_runs(bench: Bench):
    ctx = bench.context(rules=(Rule("bash", "rm *", Effect.DENY),))
    text = await refused(TOOL, ctx, command="touch made && rm -rf x")
    assert "bash was refused by the rule" in text
    assert list(bench.root.iterdir()) == []


async def test_a_rule_that_denies_all_reading_refuses_commands(bench: Bench):
    ctx = bench.context(rules=(Rule("read", "**", Effect.DENY),))
    assert "denies reading the whole workspace" in await refused(TOOL, ctx, command="ls")


@pytest.mark.parametrize("step", [SandboxStep.BUBBLEWRAP, SandboxStep.LANDLOCK, SandboxStep.UNSANDBOXED])
async def test_a_workspace_that_is_gone_is_named_as_the_reason(tmp_path: Path, step: SandboxStep):
    ctx = Bench(shell(step), tmp_path / "gone").context()
    assert "the workspace folder is gone" in await refused(TOOL, ctx, command="ls")


async def test_without_a_sandbox_read_only_commands_are_refused():
    with workspace() as root:
        ctx = Bench(shell(SandboxStep.UNSANDBOXED), root).context(Mode.READ_ONLY)
        assert "nothing keeps a command from changing files" in await refused(TOOL, ctx, command="touch made")
        assert list(root.iterdir()) == []


async def test_where_nothing_is_available_the_reason_is_given(tmp_path: Path):
    ctx = replace(context(tmp_path), shell=unavailable("no sandbox"))
    assert "SUPERPI_SANDBOX=off" in await refused(TOOL, ctx, command="ls")


async def test_output_that_is_left_off_can_be_read_later(bench: Bench):
    result = await call(TOOL, bench.context(), command="seq 1 3000")
    assert result.structured is not None
    spool = result.structured["spool"]
    assert text_of(result).startswith("1001\n1002\n")
    assert text_of(result).endswith(
        f"3000\n\n[Only lines 1,001 to 3,000 of 3,000 are shown. All output is in {spool}: use read or grep on it.]"
    )
    assert (bench.root / spool).read_text() == "".join(f"{number}\n" for number in range(1, 3001))
    assert (await said(TOOL, bench.context(), command=f"wc -l <{spool}")).strip() == "3000"


async def test_a_planted_spool_folder_gets_nothing_and_the_end_is_still_shown(bench: Bench):
    outside = bench.root.parent / "outside"
    outside.mkdir()
    ctx = bench.context()
    await said(TOOL, ctx, command=f"ln -s {outside} .superpi")
    text = await said(TOOL, ctx, command="seq 1 3000")
    assert text.endswith("The rest was not kept; send the output to a file to keep it.]")
    assert list(outside.iterdir()) == []
