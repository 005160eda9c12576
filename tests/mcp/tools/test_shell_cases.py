"""The shell cases of public trackers, each through the tool and through every sandbox that works here."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator

import psutil
import pytest

from auth.permissions import Effect, Rule
from mcp.limits import Limits
from mcp.protocol.content import ToolResult
from mcp.tools.bash import TOOL
from mcp.workspace.shell import SandboxStep
from tests.support.files import call, text_of
from tests.support.shells import SANDBOXES, Bench, shell, workspace

STEPS = (*SANDBOXES, SandboxStep.UNSANDBOXED)


@pytest.fixture(params=STEPS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with workspace() as root:
        yield Bench(shell(request.param), root)


async def bash(bench: Bench, command: str, **arguments: object) -> ToolResult:
    return await call(TOOL, bench.context(), command=command, **arguments)


def living(mark: str) -> list[str]:
    """The processes with that word on their command line, zombies included."""
    running = psutil.process_iter(["cmdline", "status"])
    return [f"{found.pid} {found.info['status']}" for found in running if mark in " ".join(found.info["cmdline"] or [])]


def mark() -> str:
    """A number of seconds to sleep that nobody else sleeps."""
    return f"{300 + int.from_bytes(os.urandom(3)) / 2**24:.9f}"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep {0} & echo hi", id="a background job"),
        pytest.param("setsid sleep {0} & echo hi", id="a job in a session of its own"),
        pytest.param("(setsid nohup sleep {0} >/dev/null 2>&1 &); echo hi", id="a daemon without the pipe"),
        pytest.param("(setsid bash -c 'sleep {0} & sleep {0}' &) ; echo hi", id="a daemon with children of its own"),
    ],
)
async def test_28_a_command_returns_when_it_ends_and_leaves_nobody_behind(bench: Bench, script: str):
    seconds = mark()
    begun = time.monotonic()
    result = await bash(bench, script.format(seconds))
    assert time.monotonic() - begun < 1
    assert (text_of(result), result.is_error) == ("hi", False)
    assert living(seconds) == []


@pytest.mark.parametrize("bench", SANDBOXES, indirect=True)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param('trap "" TERM; echo go; (sleep {0}); echo no', id="a shell that ignores SIGTERM"),
        pytest.param("echo go; setsid bash -c 'trap \"\" TERM HUP; sleep {0}'", id="a child in its own session"),
        pytest.param("echo go; (setsid setsid sleep {0} &); sleep {0}", id="a daemon beside the shell"),
        pytest.param("echo go; exec 1>&- 2>&-; sleep {0}", id="a shell that closed its output"),
    ],
)
async def test_30_a_timeout_ends_the_whole_tree_and_keeps_the_output(bench: Bench, script: str):
    seconds = mark()
    begun = time.monotonic()
    result = await bash(bench, script.format(seconds), timeout=0.8)
    assert time.monotonic() - begun < 2.5
    assert living(seconds) == []
    assert result.is_error
    assert text_of(result) == (
        "go\n\n[Timed out after 0.8 s: the command and everything it started was killed, and its output until then is "
        "above. A longer timeout can be given, up to 600 s. A command that waits for a terminal (an editor, a pager, a "
        "password) cannot be used here.]"
    )
    assert result.meta is not None
    assert result.meta["io.superpi/command"]["timed_out"] is True


async def test_32_a_flood_leaves_memory_flat_and_ends_with_its_tail(bench: Bench):
    limits = Limits(spool_bytes=1024 * 1024)
    flooded = Bench(shell(bench.shell.step, limits), bench.root, limits)
    before = psutil.Process().memory_info().rss
    result = await bash(flooded, "yes", timeout=0.7)
    assert psutil.Process().memory_info().rss - before < 32 * 1024 * 1024
    assert text_of(result).splitlines()[:2000] == ["y"] * 2000
    [spooled] = (bench.root / ".superpi/spool").iterdir()
    assert 1024 * 1024 - 70_000 < spooled.stat().st_size < 1024 * 1024 + 200
    assert spooled.read_text().endswith("y\n\n[The output goes on; only its first 1048576 bytes are kept.]\n")
    assert f"The first 1,048,576 bytes are in .superpi/spool/{spooled.name}" in text_of(result)


async def test_14_the_end_of_a_giant_line_is_shown_with_sane_numbers(bench: Bench):
    result = await bash(bench, "head -c 5000000 /dev/zero | tr '\\0' x; echo end")
    assert result.structured is not None
    spool = result.structured["spool"]
    shown = "x" * 51_196 + "end"
    assert text_of(result) == (
        f"{shown}\n\n[Only the end of line 1 of 1 is shown: 51,200 of 5,000,003 bytes. "
        f"All output is in {spool}: use read or grep on it.]"
    )
    assert (bench.root / spool).read_text() == "x" * 5_000_000 + "end\n"


@pytest.mark.requirement("TL-15")
@pytest.mark.parametrize(
    ("script", "text"),
    [
        pytest.param("printf 'a\\0b'", "a\ufffdb", id="NUL is replaced"),
        pytest.param("printf '\\e[31mred\\e[0m'", "red", id="colours are removed"),
        pytest.param("printf '\\e['; sleep 0.05; printf '31mred'", "red", id="a colour split across writes too"),
        pytest.param(
            "printf '\\xe2\\x82'; sleep 0.05; printf '\\xac'", "€", id="a character split across writes is whole"
        ),
        pytest.param("echo out; echo err >&2; echo out", "out\nerr\nout", id="both streams come in order"),
        pytest.param("true", "(no output)", id="silence is said"),
    ],
)
async def test_34_output_is_clean_text(bench: Bench, script: str, text: str):
    assert text_of(await bash(bench, script)) == text


async def test_34_random_bytes_are_valid_json(bench: Bench):
    result = await bash(bench, "head -c 1000 /dev/urandom")
    told = json.dumps(result.structured, ensure_ascii=False).encode("utf-8")
    assert "\\u0000" not in told.decode()
    assert "\x1b" not in text_of(result)


OF_GIT = ("GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT")
OF_BASH = ("PWD", "SHLVL", "_")
NAMES = {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "TERM", "PAGER", "TZ", *OF_GIT, *OF_BASH}


async def test_35_the_environment_is_an_allow_list(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUPERPI_DATABASE_URL", "postgresql://canary")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    result = await bash(bench, "env -0 | tr '\\0' '\\n'; cat /proc/self/environ | tr '\\0' '\\n'")
    assert {line.partition("=")[0] for line in text_of(result).splitlines()} <= NAMES
    assert "canary" not in text_of(result)


DENY_SECRETS = (Rule("read", "secrets/**", Effect.DENY),)


@pytest.mark.parametrize("bench", [SandboxStep.BUBBLEWRAP], indirect=True)
async def test_37_what_may_not_be_read_may_not_be_read_by_a_command_either(bench: Bench):
    bench.put({"secrets/k": "canary", "src/.env": "canary", "src/.env.example": "shown", "src/a": "shown"})
    script = (
        "cat secrets/k; cat src/.env; cat src/.env.example; mv secrets s2; cp -r secrets t; cat s2/k t/k; chmod 700 t"
    )
    result = await call(TOOL, bench.context(rules=DENY_SECRETS), command=script)
    assert "canary" not in text_of(result)
    assert "shown" in text_of(result)


def test_37_a_step_that_cannot_hold_deny_rules_says_so():
    assert "deny rules on paths do not bind them" in shell(SandboxStep.LANDLOCK).why


@pytest.mark.parametrize("again", [False, True], ids=["once", "and again at once"])
async def test_39_a_cancelled_call_ends_every_process(bench: Bench, again: bool):
    seconds = mark()
    os.mkfifo(bench.root / "started")
    bench.put({})
    running = asyncio.create_task(
        bash(bench, f"trap '' TERM; setsid sleep {seconds} & echo go >started; sleep {seconds}; touch late")
    )
    assert await asyncio.to_thread((bench.root / "started").read_text) == "go\n"
    begun = time.monotonic()
    running.cancel()
    if again:
        await asyncio.sleep(0)
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - begun < 2
    assert living(seconds) == []
    assert [path.name for path in bench.root.iterdir()] == ["started"]


@pytest.mark.parametrize(
    ("script", "text", "code"),
    [
        pytest.param("cat", "(no output)", 0, id="stdin is empty"),
        pytest.param("echo a; exit 3", "a\n\n[exit code 3]", 3, id="an exit code"),
        pytest.param("kill -SEGV $$", "(no output)\n\n[exit code 139, killed by SIGSEGV]", 139, id="death by a signal"),
        pytest.param("kill -9 $$", "(no output)\n\n[exit code 137, killed by SIGKILL]", 137, id="death by SIGKILL"),
        pytest.param("exit 255", "(no output)\n\n[exit code 255]", 255, id="a code beyond signals"),
        pytest.param("trap 'exit 5' TERM; kill 0", "(no output)\n\n[exit code 5]", 5, id="a signal to its own group"),
    ],
)
async def test_how_a_command_ends_is_said(bench: Bench, script: str, text: str, code: int):
    result = await bash(bench, script)
    fields = result.structured or (result.meta or {})["io.superpi/command"]
    assert (text_of(result), fields["exit_code"], result.is_error) == (text, code, code != 0)
