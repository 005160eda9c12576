"""Harness files: what a good one becomes, and what is said about a broken one."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.permissions import Cap, Effect, Layer, Mode, Policy, Rule
from mcp.harness.definition import NOT_GIVEN, Argument, Harness, parse_harness
from mcp.harness.frontmatter import HarnessError

WHOLE = """\
---
id: docs-writer
title: Writer
description: Writes documentation.
tools: [read, grep, write]
mode: workspace_write
model: some-model
rules:
  - {tool: write, match: "docs/**", effect: allow}
  - tool: bash
    match: git push *
    effect: deny
  - {tool: write, match: "**", effect: ask}
arguments:
  - name: topic
    description: What to write about.
    required: true
  - name: style
    description: How.
    values: [short, long]
---

Write about {{topic}}.
Be {{ style }}.
"""
#: Keys that may not be missing, on lines 2 to 6.
HEAD = "id: a\ntitle: A\ndescription: D\ntools: []\nmode: full\n"


def text(front: str, body: str = "Do it.") -> bytes:
    return f"---\n{front}---\n{body}\n".encode()


def test_a_file_becomes_a_harness():
    assert parse_harness(WHOLE.encode(), "writer.md") == Harness(
        id="docs-writer",
        title="Writer",
        description="Writes documentation.",
        tools=frozenset({"read", "grep", "write"}),
        mode=Mode.WORKSPACE_WRITE,
        body="Write about {{topic}}.\nBe {{ style }}.",
        source="writer.md",
        rules=(
            Rule("write", "docs/**", Effect.ALLOW),
            Rule("bash", "git push *", Effect.DENY),
            Rule("write", "**", Effect.ASK),
        ),
        model="some-model",
        arguments=(
            Argument("topic", "What to write about.", required=True),
            Argument("style", "How.", values=("short", "long")),
        ),
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbf" + WHOLE.encode(), id="a byte order mark"),
        pytest.param(WHOLE.replace("\n", "\r\n").encode(), id="CRLF line ends"),
        pytest.param(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode(), id="both"),
        pytest.param(WHOLE.replace("---\n", "---  \n").encode(), id="blanks behind the fences"),
    ],
)
def test_how_the_file_was_saved_does_not_matter(content):
    assert parse_harness(content, "writer.md") == parse_harness(WHOLE.encode(), "writer.md")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "f.md:1: no front matter; the first line must be ---", id="empty"),
        pytest.param(b"# Title\n", "f.md:1: no front matter; the first line must be ---", id="no front matter"),
        pytest.param(b"---\nid: a\n", "f.md:1: the front matter has no end; a line --- must follow it", id="no end"),
        pytest.param(text(""), "f.md:2: the front matter is empty", id="empty front matter"),
        pytest.param(b"---\nid: caf\xe9\n---\nx", "f.md:2: the file is not UTF-8 text", id="another encoding"),
        pytest.param(
            text("id: a\ntitle: [\n"),
            "f.md:4: invalid YAML: while parsing a flow node expected the node content, but found '<stream end>'",
            id="invalid YAML",
        ),
        pytest.param(
            text("id: a\ntitle: a: b\n"),
            "f.md:3: invalid YAML: mapping values are not allowed here",
            id="a second colon",
        ),
        pytest.param(
            text("id: a\nb: \x07\n"),
            "f.md:3: invalid YAML: a character that YAML does not allow",
            id="control character",
        ),
        pytest.param(text("[" * 5000 + "\n"), "f.md:2: the front matter is nested too deeply", id="nested"),
        pytest.param(
            text("- a\n"),
            "f.md:2: the front matter must be a mapping of "
            "id, title, description, tools, mode, rules, model, arguments",
            id="a list",
        ),
        pytest.param(
            text("id: a\ntitle: A\ntool: []\n"),
            "f.md:4: unknown key 'tool'; known keys are id, title, description, tools, mode, rules, model, arguments",
            id="unknown key",
        ),
        pytest.param(
            text("1: a\n"),
            "f.md:2: unknown key '1'; known keys are id, title, description, tools, mode, rules, model, arguments",
            id="a number as a key",
        ),
        pytest.param(
            text("? [a]\n: b\n"),
            "f.md:2: unknown key 'of another kind than text'; "
            "known keys are id, title, description, tools, mode, rules, model, arguments",
            id="a list as a key",
        ),
        pytest.param(text(f"{HEAD}id: b\n"), "f.md:7: the key 'id' stands here twice", id="the same key twice"),
        pytest.param(
            text("title: A\ntools: []\n"), "f.md:2: the front matter lacks id, description, mode", id="missing"
        ),
        pytest.param(text(HEAD.replace("A", "1")), "f.md:3: title must be text; put quotes around 1", id="a number"),
        pytest.param(text(HEAD.replace("A", "no")), "f.md:3: title must be text; put quotes around no", id="a boolean"),
        pytest.param(text(HEAD.replace("A", "[]")), "f.md:3: title must be text", id="a list for text"),
        pytest.param(text(HEAD.replace("A", "' '")), "f.md:3: title is empty", id="blank text"),
        pytest.param(text(HEAD.replace("[]", "read")), "f.md:5: tools must be a list", id="text for a list"),
        pytest.param(
            text(HEAD.replace("[]", "[reed]")),
            "f.md:5: unknown tool 'reed'; known are read, write, edit, bash, grep, find, ls",
            id="unknown tool",
        ),
        pytest.param(text(HEAD.replace("[]", "[ls, ls]")), "f.md:5: the tool 'ls' is listed twice", id="a tool twice"),
        pytest.param(
            text(HEAD.replace("full", "root")),
            "f.md:6: unknown mode 'root'; known are read_only, workspace_write, full",
            id="unknown mode",
        ),
        pytest.param(
            text(HEAD.replace("id: a", "id: A_b")),
            "f.md:2: id 'A_b' is not made of small letters, digits and hyphens, at most 64, no hyphen first",
            id="bad id",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: read\n    match: a\n"),
            "f.md:8: each entry of rules lacks effect",
            id="half a rule",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: read\n    match: a\n    effect: maybe\n"),
            "f.md:10: unknown effect 'maybe'; known are allow, ask, deny",
            id="unknown effect",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: read\n    match: a\n    effect: Ask\n"),
            "f.md:10: unknown effect 'Ask'; known are allow, ask, deny",
            id="an effect in capitals",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: read\n    match: ''\n    effect: ask\n"),
            "f.md:9: match is empty",
            id="asking about nothing",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: rm\n    match: a\n    effect: deny\n"),
            "f.md:8: unknown tool 'rm'; known are read, write, edit, bash, grep, find, ls, *",
            id="a rule on an unknown tool",
        ),
        pytest.param(
            text(f"{HEAD}rules:\n  - tool: read\n    match: ../a\n    effect: deny\n"),
            "f.md:9: paths are relative to the workspace, and .. leads out of it",
            id="a rule that never matches",
        ),
        pytest.param(
            text(f"{HEAD}arguments:\n  - name: a\n    description: D\n  - name: a\n    description: D\n"),
            "f.md:10: the argument 'a' is defined twice",
            id="an argument twice",
        ),
        pytest.param(
            text(f"{HEAD}arguments:\n  - name: a b\n    description: D\n"),
            "f.md:8: name 'a b' is not made of letters, digits, hyphens and underscores, a letter first",
            id="bad argument name",
        ),
        pytest.param(
            text(f"{HEAD}arguments:\n  - name: a\n    description: D\n    required: maybe\n"),
            "f.md:10: required must be true or false",
            id="text for a boolean",
        ),
        pytest.param(text(HEAD, " \n"), "f.md:8: no prompt follows the front matter", id="no body"),
        pytest.param(
            text(HEAD, "\nDo it\nwith {{care}}."),
            "f.md:10: no argument is called 'care'; the arguments are none",
            id="unknown placeholder",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(content, message):
    with pytest.raises(HarnessError) as raised:
        parse_harness(content, "f.md")
    assert str(raised.value) == message


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda front: text(f"{HEAD}{front}\n")))
def test_any_file_is_a_harness_or_a_harness_error(content):
    with contextlib.suppress(HarnessError):
        assert isinstance(parse_harness(content, "f.md"), Harness)


def test_the_policy_has_the_harness_as_its_first_cap_and_all_rules():
    harness = parse_harness(WHOLE.encode(), "writer.md")
    cap, rule = Cap(Layer.REMOTE, Mode.READ_ONLY), Rule("read", "x", Effect.DENY)
    assert harness.policy([cap], [rule]) == Policy(
        "docs-writer", harness.tools, (Cap(Layer.HARNESS, Mode.WORKSPACE_WRITE), cap), (*harness.rules, rule)
    )


def harness(body: str, *arguments: str) -> Harness:
    return Harness(
        "a", "A", "D", frozenset(), Mode.FULL, body, "f.md", (), None, tuple(Argument(n, "D") for n in arguments)
    )


@pytest.mark.parametrize(
    ("body", "given_arguments", "expected"),
    [
        pytest.param("{{a}} and {{ b }}", {"a": "1", "b": "2"}, "1 and 2", id="placeholders are filled"),
        pytest.param("{{a}} {{a}}", {"a": "1"}, "1 1", id="every time"),
        pytest.param("{{a}}", {}, NOT_GIVEN, id="what was not given says so"),
        pytest.param("{{a}}", {"a": "{{b}}", "b": "2"}, "{{b}}\n\nb: 2", id="text of an argument is not expanded"),
        pytest.param("{{a}}", {"a": r"\1 \g<0> $&"}, r"\1 \g<0> $&", id="nor a replacement pattern"),
        pytest.param("Do.", {"a": "1"}, "Do.\n\na: 1", id="an argument without a place comes last"),
        pytest.param("{a} {{ a.b }} ${{ x y }}", {}, "{a} {{ a.b }} ${{ x y }}", id="other braces stay"),
    ],
)
def test_render(body, given_arguments, expected):
    assert harness(body, "a", "b").render(given_arguments) == expected


@given(st.text(max_size=30))
def test_an_argument_arrives_as_it_was_given(value):
    assert harness("<{{a}}>", "a").render({"a": value}) == f"<{value}>"
