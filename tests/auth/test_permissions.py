"""The permission decision: tables that read as the documentation, and the properties that hold in every policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.globs import covers
from auth.permissions import (
    Allow,
    Cap,
    Decision,
    Deny,
    Effect,
    Layer,
    Mode,
    Need,
    decide_tool,
    denied_globs,
)
from tests.support.policies import CALLS, CAPS, NEEDS, PATHS, POLICIES, RULES, allow, decide, deny, policy, width


def layer(decision: Decision) -> Layer | None:
    """Who refused; None when nobody did."""
    return decision.layer if isinstance(decision, Deny) else None


@pytest.mark.parametrize(
    ("mode", "tool", "expected"),
    [
        pytest.param(
            mode, tool, None if may else Layer.HARNESS, id=f"{mode.label} {'allows' if may else 'stops'} {tool}"
        )
        for mode in Mode
        for tool, need in NEEDS.items()
        for may in [need is not Need.WRITE or mode is not Mode.READ_ONLY]
    ],
)
def test_the_mode_table(mode, tool, expected):
    assert layer(decide_tool(policy(mode), tool, NEEDS[tool])) is expected


@pytest.mark.parametrize(
    ("mode", "tool", "path", "expected"),
    [
        pytest.param(Mode.WORKSPACE_WRITE, "write", "a", None, id="workspace_write writes in the workspace"),
        pytest.param(Mode.WORKSPACE_WRITE, "write", "/x/a", Layer.HARNESS, id="workspace_write stays in the workspace"),
        pytest.param(Mode.WORKSPACE_WRITE, "read", "/x/a", None, id="workspace_write reads extra roots"),
        pytest.param(Mode.READ_ONLY, "read", "/x/a", None, id="read_only reads extra roots"),
        pytest.param(Mode.FULL, "edit", "/x/a", None, id="full writes in extra roots"),
    ],
)
def test_extra_roots_are_written_only_in_full_mode(mode, tool, path, expected):
    assert layer(decide(policy(mode), tool, path)) is expected


def test_a_tool_that_the_harness_lacks_is_refused_by_the_tool_set_whatever_the_mode():
    lacking = policy(Mode.READ_ONLY, tools=frozenset({"read", "ls"}))
    assert decide_tool(lacking, "write", Need.WRITE) == Deny(
        "the harness tested does not have this tool; it has ls, read", Layer.TOOL_SET, Mode.READ_ONLY
    )


def test_the_lowest_cap_decides_and_is_named():
    caps = (Cap(Layer.HARNESS, Mode.FULL), Cap(Layer.REMOTE, Mode.READ_ONLY))
    assert decide_tool(replace(policy(), caps=caps), "edit", Need.WRITE) == Deny(
        "it changes files, and the mode read_only only reads", Layer.REMOTE, Mode.READ_ONLY
    )


@pytest.mark.parametrize(
    ("tool", "path", "refused"),
    [
        pytest.param("read", ".env", True, id="reading .env"),
        pytest.param("grep", "a/b/.env", True, id="searching .env at any depth"),
        pytest.param("edit", ".env", True, id="editing .env, which shows lines of it"),
        pytest.param("read", ".env.local", True, id="reading .env.local"),
        pytest.param("read", ".envrc", True, id="reading .envrc"),
        pytest.param("read", ".ENV", True, id="reading .ENV, the same file where case does not count"),
        pytest.param("read", ".env.d/prod", True, id="reading in a folder .env.d"),
        pytest.param("read", "/extra/.env", True, id="reading .env in an extra root"),
        pytest.param("read", ".env.", True, id="reading .env with a dot that Windows drops"),
        pytest.param("read", ".e\u200cnv", True, id="reading .env with a joiner that macOS drops"),
        pytest.param("read", ".env.example", False, id="reading .env.example"),
        pytest.param("read", "a/.Env.Example", False, id="reading .env.example in another case"),
        pytest.param("read", ".env.example.local", True, id="reading what only begins like .env.example"),
        pytest.param("read", ".env.examples", True, id="reading .env.examples"),
        pytest.param("read", ".env.sample", True, id="reading .env.sample"),
        pytest.param("read", "environment", False, id="reading environment"),
        pytest.param("read", "a.env", False, id="reading a.env"),
        pytest.param("ls", ".env.d", False, id="listing a folder .env.d"),
        pytest.param("find", ".env", False, id="finding .env by name"),
        pytest.param("write", ".env", False, id="writing .env"),
        pytest.param("write", ".git/config", True, id="writing in .git"),
        pytest.param("edit", "sub/.git/hooks/x", True, id="editing in .git at any depth"),
        pytest.param("write", ".git", True, id="writing a file .git"),
        pytest.param("write", ".GIT/config", True, id="writing in .GIT"),
        pytest.param("write", "git~1/config", True, id="writing in the short name of .git"),
        pytest.param("write", ".git::$INDEX_ALLOCATION/config", True, id="writing in the NTFS stream of .git"),
        pytest.param("write", ".g\u200bit/config", False, id="writing in a folder with another name"),
        pytest.param("write", ".gi\u200dt/config", True, id="writing in .git with a joiner that macOS drops"),
        pytest.param("write", ".gitignore", False, id="writing .gitignore"),
        pytest.param("write", ".github/workflows/ci.yml", False, id="writing in .github"),
        pytest.param("read", ".git/config", False, id="reading in .git"),
        pytest.param("write", ".superpi/x", True, id="writing in .superpi"),
        pytest.param("write", "a/.superpi/x", False, id="writing in a .superpi that is not the server's"),
        pytest.param("read", ".superpi/spool/1", False, id="reading in .superpi"),
    ],
)
@pytest.mark.parametrize("lifted", [(), (allow("*", "**"),)], ids=["without rules", "with everything allowed"])
def test_built_in_denies(tool, path, refused, lifted):
    assert layer(decide(policy(Mode.FULL, *lifted), tool, path)) is (Layer.BUILT_IN if refused else None)


@pytest.mark.parametrize(
    ("rules", "tool", "subject", "refused"),
    [
        pytest.param([deny("read", "secrets/**")], "read", "secrets/k", True, id="deny read binds read"),
        pytest.param([deny("read", "secrets/**")], "grep", "secrets/k", True, id="deny read binds grep"),
        pytest.param([deny("read", "secrets/**")], "edit", "secrets/k", True, id="deny read binds edit"),
        pytest.param([deny("read", "secrets/**")], "write", "secrets/k", False, id="deny read leaves write alone"),
        pytest.param([deny("read", "secrets/**")], "ls", "secrets", False, id="deny read leaves names visible"),
        pytest.param([deny("write", "docs/")], "edit", "docs/a", True, id="deny write binds edit"),
        pytest.param([deny("write", "docs/")], "read", "docs/a", False, id="deny write leaves read alone"),
        pytest.param([deny("edit", "docs/")], "write", "docs/a", False, id="deny edit leaves write alone"),
        pytest.param([deny("ls", "secrets")], "ls", "secrets", True, id="deny ls hides a folder"),
        pytest.param([deny("*", "secrets")], "find", "secrets/a", True, id="deny * binds every tool"),
        pytest.param([deny("write", "*")], "write", "a", True, id="deny everything"),
        pytest.param([deny("ls", "*")], "ls", ".", True, id="deny everything, the root too"),
        pytest.param([allow("read", "docs/**")], "read", "docs/a", False, id="an allow list lets in what it names"),
        pytest.param([allow("read", "docs/**")], "read", "src/a", True, id="an allow list keeps out the rest"),
        pytest.param([allow("read", "docs/**")], "grep", "src/a", True, id="an allow list on read binds grep"),
        pytest.param([allow("read", "docs/**")], "ls", "src", False, id="an allow list on read leaves ls alone"),
        pytest.param([allow("read", "docs/**")], "edit", "src/a", False, id="an allow list on read leaves edit alone"),
        pytest.param([allow("read", "Docs/**")], "read", "docs/a", True, id="an allow list means the case it says"),
        pytest.param([allow("read", "a"), allow("read", "b")], "read", "x/b", False, id="allow lists add up"),
        pytest.param([allow("read", "**"), deny("read", "x/")], "read", "x/b", True, id="deny wins over allow"),
        pytest.param([deny("bash", "*")], "bash", "ls", True, id="deny the shell"),
        pytest.param([allow("bash", "git *")], "read", "a", False, id="an allow list on bash leaves read alone"),
    ],
)
def test_rules(rules, tool, subject, refused):
    assert layer(decide(policy(Mode.FULL, *rules), tool, subject)) is (Layer.RULE if refused else None)


def test_reasons_say_what_is_denied_and_what_is_allowed():
    ruled = policy(Mode.FULL, allow("read", "docs/**"), allow("read", "src/**"), deny("read", "docs/private"))
    assert [decide(ruled, "read", path) for path in ("docs/private/a", "lib/a", "docs/a")] == [
        Deny("a rule denies docs/private", Layer.RULE, Mode.FULL),
        Deny("no rule allows this path; allowed is docs/**, src/**", Layer.RULE, Mode.FULL),
        Allow(),
    ]


def test_a_denial_names_the_layer_that_the_rule_came_from():
    assert (
        layer(decide(policy(Mode.FULL, replace(deny("read", "a"), layer=Layer.HARNESS)), "read", "a")) is Layer.HARNESS
    )


def test_denied_globs_are_the_rules_on_paths_and_the_built_in_ones():
    ruled = policy(
        Mode.FULL, deny("read", "b/{x,y}/"), deny("grep", "a"), deny("write", "w"), deny("ls", "l"), allow("read", "z")
    )
    read, write = denied_globs(ruled, Need.READ), denied_globs(ruled, Need.WRITE)
    assert read[-3:] == ("**/a", "b/x/**", "b/y/**")
    assert write == ("**/.git/**", "**/git~1/**", ".superpi/**", "**/w")
    assert denied_globs(ruled, Need.EXECUTE) == ()


@pytest.mark.parametrize(
    "name", [".env", ".env.prod", ".env.exampl", ".env.example", ".env.example2", ".environment", "env"]
)
def test_denied_globs_agree_with_the_decision(name):
    listed = any(covers(glob, name) for glob in denied_globs(policy(), Need.READ))
    assert listed is isinstance(decide(policy(), "read", name), Deny)


# -- properties ---------------------------------------------------------------------------------------------


@given(POLICIES, CALLS, CAPS)
def test_another_cap_never_widens_a_decision(policy, call, cap):
    lowered = replace(policy, caps=(*policy.caps, cap))
    assert width(decide(lowered, *call)) <= width(decide(policy, *call))


@given(POLICIES, CALLS, st.data())
def test_lowering_a_cap_never_widens_a_decision(policy, call, data):
    caps = tuple(Cap(cap.layer, data.draw(st.sampled_from([m for m in Mode if m <= cap.mode]))) for cap in policy.caps)
    assert width(decide(replace(policy, caps=caps), *call)) <= width(decide(policy, *call))


@given(POLICIES, CALLS, st.data())
def test_removing_a_tool_never_widens_a_decision(policy, call, data):
    fewer = replace(policy, tools=policy.tools - {data.draw(st.sampled_from(sorted(policy.tools)))})
    assert width(decide(fewer, *call)) <= width(decide(policy, *call))


@given(POLICIES, CALLS, RULES)
def test_another_deny_rule_never_widens_a_decision(policy, call, rule):
    ruled = replace(policy, rules=(*policy.rules, replace(rule, effect=Effect.DENY)))
    assert width(decide(ruled, *call)) <= width(decide(policy, *call))


@given(POLICIES, CALLS, st.randoms())
def test_the_order_of_caps_and_rules_does_not_matter(policy, call, random):
    caps, rules = list(policy.caps), list(policy.rules)
    random.shuffle(caps)
    random.shuffle(rules)
    assert decide(replace(policy, caps=tuple(caps), rules=tuple(rules)), *call) == decide(policy, *call)


@given(POLICIES)
def test_the_mode_is_a_cap_and_above_none(policy):
    assert policy.mode in {cap.mode for cap in policy.caps}
    assert all(policy.mode <= cap.mode for cap in policy.caps)


@given(POLICIES, st.sampled_from(["read", "grep", "edit"]), PATHS)
def test_env_files_are_never_shown_in_any_policy(policy, tool, path):
    assert isinstance(decide(policy, tool, f"{path}/.env".removeprefix("./")), Deny)


@given(POLICIES, st.sampled_from(["write", "edit"]), PATHS)
def test_git_folders_are_never_written_in_any_policy(policy, tool, path):
    assert isinstance(decide(policy, tool, f"{path}/.git/config".removeprefix("./")), Deny)
    assert isinstance(decide(policy, tool, ".superpi/locks/a"), Deny)


@given(POLICIES, PATHS)
def test_read_only_writes_nothing(policy, path):
    capped = replace(policy, caps=(*policy.caps, Cap(Layer.REMOTE, Mode.READ_ONLY)))
    assert isinstance(decide(capped, "write", path), Deny)
    assert isinstance(decide(capped, "edit", path), Deny)
