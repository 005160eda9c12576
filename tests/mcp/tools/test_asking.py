"""What the tools do with a rule that asks: nothing before a yes, and after one exactly what it was given to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auth.permissions import Ask, Deny, Layer, Mode, Rule, granted_policy
from auth.refusals import META_KEY
from mcp.catalogue import standard_catalogue
from mcp.harness.registry import load
from mcp.limits import Limits
from mcp.protocol.content import Text, ToolResult
from mcp.tools.base import ToolContext
from mcp.tools.refusal import Unanswered, ask_of, refusal_of, refusal_result
from mcp.workspace.shell import SandboxStep
from tests.support.files import call, context, refused, said, text_of, tree
from tests.support.policies import allow, ask, deny
from tests.support.shells import Bench, shell, workspace

TOOLS = {tool.spec.name: tool for tool in standard_catalogue(load(None), Limits()).tools}
#: A call of each tool, and the subject that it is asked about.
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "read": ({"path": "./s/k"}, "s/k"),
    "write": ({"path": "s/../new/f", "content": "x"}, "new/f"),
    "edit": ({"path": "s/k", "edits": [{"old_text": "key", "new_text": "x"}]}, "s/k"),
    "bash": ({"command": "echo x > s/k; cat s/k"}, "echo x > s/k; cat s/k"),
    "grep": ({"pattern": "key"}, "."),
    "find": ({"pattern": "k"}, "."),
    "ls": ({"path": "s"}, "s"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with something to ask about."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/k").write_text("key\n")
    (tmp_path / "a").write_text("key too\n")
    return tmp_path


def granted(ctx: ToolContext, tool: str, subject: str) -> ToolContext:
    """The context of the same call after a yes."""
    return replace(ctx, policy=granted_policy(ctx.policy, tool, subject))


@pytest.mark.parametrize("on", ["the tool", "*"])
@pytest.mark.parametrize("name", TOOLS)
async def test_every_tool_asks_before_it_does_anything(root: Path, name: str, on: str) -> None:
    arguments, subject = CALLS[name]
    ctx = context(root, rules=(ask(name if on == "the tool" else "*", "**"),))
    before = tree(root)
    result = await call(TOOLS[name], ctx, **arguments)
    reason = "a rule asks about everything that no rule allows"
    assert ask_of(result) == Ask(reason, Layer.RULE, Mode.FULL, subject)
    assert text_of(result) == (
        f"{name} was refused by the rule: this needs a yes from a person ({reason}), and none was given. "
        "The mode here is full. Nothing was changed."
    )
    assert tree(root) == before


@pytest.mark.parametrize("name", [name for name in TOOLS if name != "bash"])
async def test_after_a_yes_a_tool_does_what_it_does_without_the_rule(root: Path, name: str) -> None:
    arguments, subject = CALLS[name]
    if name != "write":
        (root / "new").mkdir()
    before = tree(root)
    plain = await call(TOOLS[name], context(root), **arguments)
    after = tree(root)
    for path, content in before.items():
        if content != "/":
            (root / path).write_bytes(content)
    (root / "new/f").unlink(missing_ok=True)
    asking = context(root, rules=(ask(name, "**"),))
    assert ask_of(await call(TOOLS[name], asking, **arguments)) is not None
    result = await call(TOOLS[name], granted(asking, name, subject), **arguments)
    # What find keeps back is said wherever a rule may keep something back.
    assert text_of(result).partition("\n\n[What")[0] == text_of(plain)
    assert (result.is_error, result.structured, tree(root)) == (False, plain.structured, after)


async def test_a_yes_to_one_file_is_none_to_another_or_to_another_tool(root: Path) -> None:
    ctx = granted(context(root, rules=(ask("read", "**"),)), "read", "s/k")
    assert await said(TOOLS["read"], ctx, path="s/k") == "key\n"
    assert ask_of(await call(TOOLS["read"], ctx, path="a")) is not None
    assert ask_of(await call(TOOLS["edit"], ctx, **CALLS["edit"][0])) is not None
    assert ask_of(await call(TOOLS["grep"], ctx, pattern="key", path="s/k")) is not None


async def test_a_link_is_asked_about_as_what_it_leads_to(root: Path) -> None:
    (root / "link").symlink_to("s/k")
    found = ask_of(await call(TOOLS["read"], context(root, rules=(ask("read", "s/"),)), path="link"))
    assert found is not None
    assert found.subject == "s/k"


async def test_a_yes_beats_no_denial(root: Path) -> None:
    ctx = granted(context(root, rules=(ask("read", "**"), deny("read", "s/"))), "read", "s/k")
    assert "a rule denies s/" in await refused(TOOLS["read"], ctx, path="s/k")


# -- what is found --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "rule", "arguments", "text"),
    [
        pytest.param(
            "grep",
            ask("read", "s/"),
            {"pattern": "key"},
            "a:1: key too\n\n[1 file was left out by the permission policy.]",
            id="a search leaves out files that need a yes",
        ),
        pytest.param(
            "find",
            ask("find", "s/"),
            {"pattern": "*"},
            "a\n\n[What the permission policy keeps back is not listed.]",
            id="so does a search for names",
        ),
        pytest.param(
            "ls",
            ask("ls", "s"),
            {},
            "a\n\n[1 entry is left out by the permission policy.]",
            id="and the list of a folder",
        ),
        pytest.param("ls", ask("read", "s"), {}, "a\ns/", id="to ask about reading leaves names visible"),
    ],
)
async def test_what_would_need_a_yes_is_left_out_where_it_was_not_named(
    root: Path, tool: str, rule: Rule, arguments: dict[str, Any], text: str
) -> None:
    assert await said(TOOLS[tool], context(root, rules=(rule,)), **arguments) == text


async def test_a_yes_to_a_folder_covers_what_the_same_rule_asks_about_below(root: Path) -> None:
    (root / "s/t.pem").write_text("key\n")
    ctx = granted(context(root, rules=(ask("read", "s/"), ask("read", "*.pem"))), "grep", "s")
    assert await said(TOOLS["grep"], ctx, pattern="key", path="s") == (
        "s/k:1: key\n\n[1 file was left out by the permission policy.]"
    )
    assert await said(TOOLS["grep"], ctx, pattern="key") == (
        "a:1: key too\n\n[2 files were left out by the permission policy.]"
    )


async def test_what_read_denies_is_not_searched_even_after_a_yes(root: Path) -> None:
    ctx = granted(context(root, rules=(allow("read", "a"), ask("grep", "s/k"))), "grep", "s/k")
    assert "no rule allows this path" in await refused(TOOLS["grep"], ctx, pattern="key", path="s/k")


# -- commands ---------------------------------------------------------------------------------------------------


@pytest.fixture
def bench() -> Iterator[Bench]:
    with workspace() as root:
        (root / "s").mkdir()
        (root / "s/k").write_text("key\n")
        yield Bench(shell(SandboxStep.BUBBLEWRAP), root)


@pytest.mark.parametrize(
    "rule",
    [ask("bash", "cat *"), ask("bash", "*"), ask("read", "**"), ask("*", "**")],
    ids=lambda rule: str(rule.match),
)
async def test_after_a_yes_a_command_runs(bench: Bench, rule: Rule) -> None:
    ctx = bench.context(rules=(rule,))
    assert ask_of(await call(TOOLS["bash"], ctx, command="cat s/k")) is not None
    assert await said(TOOLS["bash"], granted(ctx, "bash", "cat s/k"), command="cat s/k") == "key"
    assert ask_of(await call(TOOLS["bash"], granted(ctx, "bash", "cat s/k"), command="cat  s/k")) is not None


async def test_a_path_to_ask_about_is_hidden_from_commands_whatever_was_granted(bench: Bench) -> None:
    ctx = granted(bench.context(rules=(ask("read", "s/k"),)), "read", "s/k")
    text = await refused(TOOLS["bash"], ctx, command="cat s/k")
    assert "key" not in text
    assert "[s/k is masked: commands cannot read, change or move it, since a rule asks about s/k." in text


async def test_a_command_is_asked_about_where_git_shows_what_the_mask_would_hide(bench: Bench) -> None:
    ctx = bench.context(rules=(ask("read", "s/"), allow("bash", "cat *"), allow("bash", "git *")))
    await bench.run("git init -q && git add s/k")
    result = await call(TOOLS["bash"], ctx, command="git show :s/k")
    reason = "a rule asks about s/, which nothing hides from commands here"
    assert ask_of(result) == Ask(reason, Layer.RULE, Mode.WORKSPACE_WRITE, "git show :s/k")
    assert await said(TOOLS["bash"], granted(ctx, "bash", "cat s/k"), command="cat s/k") == "key"
    assert ask_of(await call(TOOLS["bash"], granted(ctx, "bash", "cat s/k"), command="cat s/*")) is not None


@pytest.mark.parametrize("step", [SandboxStep.LANDLOCK, SandboxStep.UNSANDBOXED])
async def test_every_command_is_asked_about_where_nothing_can_be_hidden(bench: Bench, step: SandboxStep) -> None:
    bare = Bench(shell(step), bench.root)
    ctx = bare.context(rules=(ask("read", "s/"),))
    assert ask_of(await call(TOOLS["bash"], ctx, command="ls")) is not None
    assert await said(TOOLS["bash"], granted(ctx, "bash", "ls"), command="ls") == "s"
    assert await said(TOOLS["bash"], bare.context(rules=(ask("write", "s/"),)), command="ls") == "s"


async def test_a_path_whose_writing_is_asked_about_is_read_only_to_commands(bench: Bench) -> None:
    ctx = granted(bench.context(rules=(ask("write", "s/"),)), "write", "s/k")
    assert "Read-only file system" in await refused(TOOLS["bash"], ctx, command="echo x > s/k")
    assert (bench.root / "s/k").read_text() == "key\n"


async def test_a_command_that_could_not_run_is_not_asked_about(root: Path) -> None:
    result = await call(TOOLS["bash"], context(root, rules=(ask("bash", "*"),)), command="echo \0")
    assert (ask_of(result), "NUL" in text_of(result)) == (None, True)


# -- results ----------------------------------------------------------------------------------------------------

ASK = Ask("a rule asks about s", Layer.RULE, Mode.FULL, "s" * 5000)


def test_a_yes_that_is_missing_counts_as_a_refusal_and_carries_the_whole_subject() -> None:
    policy = context(Path("/ws")).policy
    result = refusal_result("read", ASK, "the person said no")
    reason = "this needs a yes from a person (a rule asks about s), and the person said no"
    assert isinstance(result, Unanswered)
    assert (ask_of(result), refusal_of(result, policy)) == (ASK, Deny(reason, Layer.RULE, Mode.FULL))
    assert result.meta is not None
    assert (result.meta[META_KEY]["ask"], len(result.meta[META_KEY]["subject"]) < 1100) == (True, True)


def test_other_results_ask_nothing() -> None:
    denied = refusal_result("read", Deny("r", Layer.RULE, Mode.FULL))
    assert (ask_of(denied), ask_of(ToolResult((Text("x"),), is_error=True))) == (None, None)
