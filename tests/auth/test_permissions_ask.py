"""What is asked about: which rules ask, what a yes covers, and what neither can open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import (
    WHOLE,
    Allow,
    Ask,
    Cap,
    Deny,
    Effect,
    Layer,
    Mode,
    Need,
    bound_tools,
    decide_exposing,
    decide_found,
    decide_tool,
    decide_whole,
    denied_globs,
    granted_policy,
)
from tests.support.policies import (
    CALLS,
    CAPS,
    FILE_TOOLS,
    NEEDS,
    PATHS,
    POLICIES,
    RULES,
    allow,
    ask,
    decide,
    deny,
    policy,
    width,
)

SRC_ELSE_ASK = [allow("write", "src/**"), ask("write", "**")]
GIT_BUT_PUSH = [allow("bash", "git *"), ask("bash", "git push*")]
LONG = "echo " + "x" * 70_000


@pytest.mark.parametrize(
    ("rules", "tool", "subject", "expected"),
    [
        pytest.param([ask("write", "docs/**")], "write", "docs/a", Ask, id="what a rule names is asked about"),
        pytest.param([ask("write", "docs/**")], "write", "Docs/A", Ask, id="in any case, as a denial would be"),
        pytest.param([ask("write", "docs/")], "write", "docs/a/b", Ask, id="with all that is below"),
        pytest.param([ask("write", "docs/**")], "write", "src/a", Allow, id="and the rest stays allowed"),
        pytest.param([ask("write", "docs/**")], "edit", "docs/a", Ask, id="ask write binds edit"),
        pytest.param([ask("write", "docs/**")], "read", "docs/a", Allow, id="ask write leaves read alone"),
        pytest.param([ask("read", "k")], "grep", "k", Ask, id="ask read binds grep"),
        pytest.param([ask("read", "k")], "edit", "k", Ask, id="ask read binds edit, which shows content"),
        pytest.param([ask("read", "k")], "write", "k", Allow, id="ask read leaves write alone"),
        pytest.param([ask("read", "k")], "ls", "k", Allow, id="ask read leaves names visible"),
        pytest.param([ask("read", "k")], "bash", "cat k", Allow, id="ask read leaves commands to the masks"),
        pytest.param([ask("*", "k")], "ls", "k", Ask, id="ask on * binds every tool"),
        pytest.param([ask("write", "k"), deny("write", "k")], "write", "k", Deny, id="any deny wins"),
        pytest.param([ask("read", "**")], "read", ".env", Deny, id="what is built in wins"),
        pytest.param([allow("write", "**"), ask("write", "k")], "write", "k", Ask, id="a named ask wins over an allow"),
        pytest.param(SRC_ELSE_ASK, "write", "src/a", Allow, id="an allow wins over an ask about everything"),
        pytest.param(SRC_ELSE_ASK, "edit", "src/a", Allow, id="for edit too"),
        pytest.param(SRC_ELSE_ASK, "write", "lib/a", Ask, id="what is not allowed is asked about instead of denied"),
        pytest.param([ask("write", "**")], "write", "a", Ask, id="everything alone asks about everything"),
        pytest.param([allow("write", "src/**"), ask("write", "k")], "write", "k", Ask, id="a named ask joins the list"),
        pytest.param([allow("write", "src/**"), ask("write", "k")], "write", "z", Deny, id="and the rest stays denied"),
        pytest.param(
            [allow("write", "src/"), ask("read", "k")], "edit", "k", Deny, id="to ask about reading opens no edit"
        ),
        pytest.param([allow("write", "src/"), ask("read", "*")], "edit", "k", Deny, id="not even about all reading"),
        pytest.param(
            [allow("edit", "k"), ask("read", "**")], "edit", "k", Ask, id="an allowed edit may not show unasked"
        ),
        pytest.param([allow("grep", "k"), ask("read", "**")], "grep", "k", Ask, id="nor an allowed search"),
        pytest.param([allow("edit", "k"), ask("*", "**")], "edit", "k", Ask, id="nor where every tool asks"),
        pytest.param([allow("read", "k"), allow("edit", "k"), ask("*", "**")], "edit", "k", Allow, id="but with both"),
        pytest.param([allow("read", "k"), ask("read", "**")], "edit", "k", Allow, id="what may be read may be edited"),
        pytest.param([allow("read", "k"), ask("read", "**")], "grep", "k", Allow, id="and searched"),
        pytest.param([ask("write", "./**/*")], "write", "a", Ask, id="everything can be written in other ways"),
        pytest.param([allow("write", "a"), ask("write", "**/*")], "write", "a", Allow, id="and means the same"),
    ],
)
def test_paths(rules, tool, subject, expected):
    assert type(decide(policy(Mode.FULL, *rules), tool, subject)) is expected


@pytest.mark.parametrize(
    ("rules", "command", "expected"),
    [
        pytest.param(GIT_BUT_PUSH, "git status", Allow, id="what is allowed runs"),
        pytest.param(GIT_BUT_PUSH, "git push origin main", Ask, id="the exception is asked about"),
        pytest.param(GIT_BUT_PUSH, "git add . && git push", Ask, id="wherever it stands"),
        pytest.param(GIT_BUT_PUSH, "sudo git push", Ask, id="and behind wrappers"),
        pytest.param(GIT_BUT_PUSH, "git push && rm x", Deny, id="it opens nothing else"),
        pytest.param(GIT_BUT_PUSH, "git push > out", Deny, id="no redirection either"),
        pytest.param(GIT_BUT_PUSH, "git push $(rm x)", Deny, id="nor what cannot be read"),
        pytest.param(GIT_BUT_PUSH, LONG, Deny, id="nor what is too long to read"),
        pytest.param(
            [allow("bash", "ls *"), ask("bash", "npm publish")], "npm publish --tag x", Ask, id="with arguments"
        ),
        pytest.param([ask("bash", "git push")], "ls", Allow, id="the rest stays allowed"),
        pytest.param([ask("bash", "git push")], "ls $(x)", Ask, id="nobody can tell what a substitution runs"),
        pytest.param([ask("bash", "git push")], LONG, Ask, id="nor what is in a very long command"),
        pytest.param([ask("bash", "git push"), deny("bash", "rm")], LONG, Deny, id="which could be denied too"),
        pytest.param([ask("bash", "git push"), deny("bash", "rm")], "git push; rm x", Deny, id="any deny wins"),
        pytest.param([allow("bash", "ls *"), ask("bash", "*")], "ls -l", Allow, id="an allow wins over everything"),
        pytest.param([allow("bash", "ls *"), ask("bash", "*")], "ls -l; rm x", Ask, id="if it names every command"),
        pytest.param([allow("bash", "ls *"), ask("bash", "*")], "ls > x", Ask, id="and there is no redirection"),
        pytest.param([allow("bash", "ls *"), ask("bash", "*")], LONG, Ask, id="and it can be read"),
        pytest.param([ask("read", "**")], "ls", Ask, id="a command can read anything"),
        pytest.param(
            [allow("bash", "ls"), allow("read", "**"), ask("read", "**")], "ls", Ask, id="whatever is allowed"
        ),
        pytest.param([allow("bash", "ls"), ask("read", "**")], "rm x", Deny, id="which opens no command"),
        pytest.param([allow("bash", "ls"), ask("*", "**")], "ls", Allow, id="every tool asks but for allowed commands"),
        pytest.param([ask("write", "**")], "touch x", Allow, id="to ask about writing leaves commands alone"),
    ],
)
def test_commands(rules, command, expected):
    assert type(decide(policy(Mode.FULL, *rules), "bash", command)) is expected


@pytest.mark.parametrize(
    ("rules", "tool", "subject", "reason"),
    [
        pytest.param([ask("read", "k")], "read", "a/k", "a rule asks about k", id="a named path"),
        pytest.param([ask("read", "**"), ask("read", "k")], "read", "k", "a rule asks about k", id="the name first"),
        pytest.param(SRC_ELSE_ASK, "write", "a", "a rule asks about everything that no rule allows", id="the rest"),
        pytest.param([ask("bash", "rm")], "bash", "rm x", "a rule asks about rm", id="a named command"),
        pytest.param(
            [ask("bash", "rm")],
            "bash",
            "ls $(x)",
            "a rule asks about rm, and there is a part of the command that only the shell can tell (a substitution, "
            "eval, bash -c or the like)",
            id="a command that cannot be read",
        ),
        pytest.param(
            [ask("read", "*")],
            "bash",
            "ls",
            "a rule asks about all reading, and a command can read anything",
            id="any command",
        ),
    ],
)
def test_a_question_says_why_and_about_what(rules, tool, subject, reason):
    assert decide(policy(Mode.FULL, *rules), tool, subject) == Ask(reason, Layer.RULE, Mode.FULL, subject)


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_a_mode_cannot_be_asked_away(tool):
    refused = Deny("it changes files, and the mode read_only only reads", Layer.HARNESS, Mode.READ_ONLY)
    asking = granted_policy(policy(Mode.READ_ONLY, ask(tool, "**")), tool, "a")
    assert (decide_tool(asking, tool, Need.WRITE), decide(asking, tool, "a")) == (refused, refused)


def test_a_tool_set_cannot_be_asked_away():
    without = policy(Mode.FULL, ask("*", "**"), tools=frozenset({"ls"}))
    assert isinstance(decide(granted_policy(without, "read", "a"), "read", "a"), Deny)


@pytest.mark.parametrize("tool", NEEDS)
def test_a_tool_is_asked_about_as_a_whole_where_there_is_no_subject(tool):
    asking = policy(Mode.FULL, ask(tool, "**"))
    question = Ask("a rule asks about everything that no rule allows", Layer.RULE, Mode.FULL, WHOLE)
    assert (decide_tool(asking, tool, NEEDS[tool]), decide_whole(asking, tool, NEEDS[tool])) == (Allow(), question)
    assert decide_whole(granted_policy(asking, tool, WHOLE), tool, NEEDS[tool]) == Allow()
    assert decide_whole(policy(Mode.FULL, ask(tool, "a")), tool, NEEDS[tool]) == Allow()


# -- what is found below a folder ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "folder", "path", "expected"),
    [
        pytest.param([ask("ls", "s/")], "s", "s/k", Allow, id="a yes to a folder covers what is in it"),
        pytest.param([ask("ls", "s/")], ".", "s/k", Ask, id="a folder above needed no yes, and none covers it"),
        pytest.param([ask("ls", "**")], ".", "s/k", Allow, id="a yes to the workspace where everything is asked about"),
        pytest.param([ask("ls", "**")], "s", "t/k", Ask, id="what is not below the folder"),
        pytest.param([ask("ls", "**")], "s", "st/k", Ask, id="nor in one that begins like it"),
        pytest.param([ask("ls", "**"), ask("ls", "s/")], ".", "s/k", Ask, id="what another rule asks about too"),
        pytest.param([ask("ls", "**"), deny("ls", "k")], ".", "k", Deny, id="what is denied"),
        pytest.param([ask("ls", "**")], ".", "/extra/k", Ask, id="what is outside the workspace"),
        pytest.param([ask("ls", "**")], "/extra", "/extra/k", Allow, id="but for what is in that other root"),
    ],
)
def test_what_a_yes_to_a_folder_covers(rules, folder, path, expected):
    granted = granted_policy(policy(Mode.FULL, *rules), "ls", folder)
    assert type(decide_found(granted, "ls", Need.READ, path, folder)) is expected


@given(POLICIES, st.sampled_from(FILE_TOOLS), PATHS, PATHS)
def test_without_a_yes_what_is_found_is_judged_as_if_it_were_named(policy, tool, path, folder):
    assert decide_found(policy, tool, NEEDS[tool], path, folder) == decide(policy, tool, path)


# -- masks --------------------------------------------------------------------------------------------------


def test_what_a_rule_names_and_asks_about_is_masked_and_everything_is_not():
    asking = policy(Mode.FULL, ask("read", "b/"), ask("read", "**"), ask("write", "w"), ask("*", "./**"))
    bare = policy()
    masked = [set(denied_globs(asking, need)) - set(denied_globs(bare, need)) for need in Need]
    assert masked == [{"**/b/**"}, {"**/w"}, set()]


@given(POLICIES, PATHS)
def test_a_yes_unmasks_nothing(policy, path):
    for need in Need:
        assert denied_globs(granted_policy(policy, "read", path), need) == denied_globs(policy, need)


@pytest.mark.parametrize(
    ("rules", "paths", "expected"),
    [
        pytest.param([ask("read", "s/")], ["a", "s/k"], Ask, id="a path that a rule names"),
        pytest.param([ask("read", "s/")], ["a"], Allow, id="another path"),
        pytest.param([ask("read", "s/")], [], Allow, id="no path"),
        pytest.param([ask("read", "s/")], None, Ask, id="any path"),
        pytest.param([ask("*", "s/")], None, Ask, id="on every tool"),
        pytest.param([ask("write", "s/"), deny("read", "s/")], None, Allow, id="what is not asked about"),
        pytest.param([ask("read", "**")], None, Allow, id="what every command is asked about anyway"),
    ],
)
def test_a_command_is_asked_about_that_could_read_what_needs_a_yes(rules, paths, expected):
    asking = policy(Mode.FULL, *rules)
    assert type(decide_exposing(asking, "bash", "ls", paths)) is expected
    assert decide_exposing(granted_policy(asking, "bash", "ls"), "bash", "ls", paths) == Allow()


def test_to_ask_about_all_reading_is_said_to_bind_commands():
    assert [bound_tools(rule) for rule in (ask("read", "**"), ask("read", "k"), deny("read", "**"))] == [
        ("read", "grep", "edit", "bash"),
        ("read", "grep", "edit"),
        ("read", "grep", "edit"),
    ]


# -- properties ---------------------------------------------------------------------------------------------

GRANTED = st.frozensets(CALLS, max_size=3)


@given(POLICIES, GRANTED, CALLS, CAPS)
def test_another_cap_never_widens_what_was_granted(policy, granted, call, cap):
    policy = replace(policy, granted=granted)
    assert width(decide(replace(policy, caps=(*policy.caps, cap)), *call)) <= width(decide(policy, *call))


@given(POLICIES, CALLS, RULES)
def test_another_rule_that_asks_never_lets_a_call_through(policy, call, rule):
    ruled = replace(policy, rules=(*policy.rules, replace(rule, effect=Effect.ASK)))
    assert isinstance(decide(policy, *call), Allow) or not isinstance(decide(ruled, *call), Allow)


@given(POLICIES, CALLS, RULES)
def test_another_rule_that_asks_opens_only_what_an_allow_list_had_closed(policy, call, rule):
    bare = replace(policy, rules=tuple(rule for rule in policy.rules if rule.effect is not Effect.ALLOW))
    ruled = replace(policy, rules=(*policy.rules, replace(rule, effect=Effect.ASK)))
    if isinstance(decide(policy, *call), Deny) and isinstance(decide(ruled, *call), Ask):
        assert not isinstance(decide(bare, *call), Deny)
        assert call[0] in {rule.tool, *bound_tools(replace(rule, effect=Effect.ALLOW))} or rule.tool == "*"


@given(POLICIES, CALLS, CALLS)
def test_a_yes_changes_only_the_very_call_that_it_was_given_to(policy, asked, call):
    before, after = decide(policy, *call), decide(granted_policy(policy, *asked), *call)
    assert after == (Allow() if isinstance(before, Ask) and asked == call else before)


@given(POLICIES, CALLS)
def test_a_yes_to_what_is_asked_about_lets_it_through(policy, call):
    asking = replace(policy, rules=(*policy.rules, ask(call[0], "**")))
    decision = decide(asking, *call)
    if isinstance(decision, Ask):
        assert decide(granted_policy(asking, call[0], decision.subject), *call) == Allow()


@given(POLICIES, CALLS)
def test_without_rules_that_ask_nothing_is_asked(policy, call):
    silent = replace(policy, rules=tuple(rule for rule in policy.rules if rule.effect is not Effect.ASK))
    assert not isinstance(decide(silent, *call), Ask)


@given(POLICIES, PATHS, st.sampled_from(["grep", "edit"]))
def test_nothing_is_shown_unasked_that_may_not_be_read_unasked(policy, path, tool):
    whole = replace(policy, tools=frozenset(NEEDS), caps=(Cap(Layer.HARNESS, Mode.FULL),))
    assert not isinstance(decide(whole, "read", path), Ask) or not isinstance(decide(whole, tool, path), Allow)


# -- which rules ask ----------------------------------------------------------------------------------------------

PUSH, GIT, ALL, SECRET = ask("bash", "git push*"), ask("bash", "git *"), ask("bash", "*"), ask("read", "s/")


@pytest.mark.parametrize(
    ("rules", "subject", "asking"),
    [
        pytest.param((PUSH,), "git push", (PUSH,), id="the one that matches"),
        pytest.param((PUSH, GIT, ask("bash", "rm *")), "git push", (GIT, PUSH), id="all that match and no others"),
        pytest.param((PUSH, ALL), "git push", (PUSH, ALL), id="one about everything too"),
        pytest.param((allow("bash", "git *"), PUSH, ALL), "git push", (PUSH,), id="not where an allow names it"),
        pytest.param((PUSH,), "$(x)", (PUSH,), id="those of a command that nothing can be told of"),
    ],
)
def test_a_question_names_all_the_rules_that_ask(rules, subject, asking):
    """A yes answers just these."""
    assert decide(policy(Mode.FULL, *rules), "bash", subject).rules == asking


def test_a_question_about_everything_and_one_about_what_is_exposed_name_their_rules():
    assert decide_whole(policy(Mode.FULL, ALL), "bash", Need.EXECUTE).rules == (ALL,)
    assert decide_exposing(policy(Mode.FULL, SECRET, PUSH), "bash", "ls", ("s/k",)).rules == (SECRET,)
