"""Bash text taken apart: what is found, and what is admitted not to be certain."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auth.shelltext import MOST_CHARACTERS, Script, parse
from auth.shellwords import MOST_LEVELS, Doubt


def texts(script: Script) -> list[str]:
    """Each command as its words, blanks between them."""
    return [" ".join(word.text for word in command.words) for command in script.commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        pytest.param("a b && c || d; e | f |& g & h", ["a b", "c", "d", "e", "f", "g", "h"], id="operators"),
        pytest.param("a\nb\n\n c", ["a", "b", "c"], id="lines"),
        pytest.param("a \\\n b", ["a b"], id="a continued line"),
        pytest.param("a 'b;c' \"d&&e\" f\\;g", ["a b;c d&&e f;g"], id="quoted operators"),
        pytest.param("a # b; c\nd #e", ["a", "d"], id="comments"),
        pytest.param("a b#c", ["a b#c"], id="a number sign inside a word"),
        pytest.param("r''m \\r\\m \"r\"m $'\\x72\\155'", ["rm rm rm rm"], id="quotes inside words"),
        pytest.param("a $'b\\'c\\n\\u00e9'", ["a b'c\né"], id="ANSI-C quoting"),
        pytest.param('$"a" b', ["a b"], id="translated strings"),
        pytest.param("a >b 2>&1 <c 3<>d {fd}>e &>f >|g b", ["a b"], id="redirections"),
        pytest.param("a 2 >b", ["a 2"], id="a number that is an argument"),
        pytest.param("(a; b) | (c)", ["a", "b", "c"], id="subshells"),
        pytest.param("{ a; b; } 2>c", ["a", "b"], id="groups"),
        pytest.param("{a,b}", ["{a,b}"], id="a brace list is a word"),
        pytest.param("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"], id="if"),
        pytest.param("while ! a; do b; done; until c; do d; done", ["a", "b", "c", "d"], id="while and until"),
        pytest.param("for x in a b; do c $x; done", ["c $x"], id="for"),
        pytest.param("for x do c; done", ["c"], id="for without a list"),
        pytest.param("echo if then for", ["echo if then for"], id="keywords as arguments"),
        pytest.param("'if' a", ["if a"], id="a quoted keyword is a command"),
        pytest.param("cat <<E\nbody; x\nE\na", ["cat", "a"], id="here-document"),
        pytest.param("cat <<-'E'; a\n\tbody\n\tE\nb", ["cat", "a", "b"], id="here-document behind tabs"),
        pytest.param("cat <<A <<B\n1\nA\n2\nB\na", ["cat", "a"], id="two here-documents"),
        pytest.param("cat <<'E'\n$(a) `b`\nE", ["cat"], id="a quoted here-document does not expand"),
        pytest.param("cat <<< 'a; b'", ["cat"], id="here-string"),
        pytest.param("( cat <<E )\nbody\nE\na", ["cat", "a"], id="here-document behind a subshell"),
        pytest.param("a $x ${y} ${z:-w} $1 $? $", ["a $x ${y} ${z:-w} $1 $? $"], id="parameters"),
        pytest.param(
            "a \"b $'\" ; c; d '\"'", ["a b $'", "c", 'd "'], id="ANSI-C quotes mean nothing in double quotes"
        ),
        pytest.param("", [], id="nothing"),
    ],
)
def test_certain_text_is_taken_apart(text, commands):
    script = parse(text)
    assert (texts(script), script.opaque, script.blind) == (commands, False, False)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        pytest.param("a $(b | c) d", ["a $(b | c) d", "b", "c"], id="substitution"),
        pytest.param("a `b`", ["a `b`", "b"], id="backticks"),
        pytest.param("a `b \\`c\\``", ["a `b \\`c\\``", "b `c`", "c"], id="nested backticks"),
        pytest.param('a "$(b "$(c)")"', ['a $(b "$(c)")', "b $(c)", "c"], id="nested substitutions in quotes"),
        pytest.param("a <(b) >(c)", ["a <(b) >(c)", "b", "c"], id="process substitutions"),
        pytest.param("a > $(b)", ["a", "b"], id="a substitution as the target of a redirection"),
        pytest.param("${x:-$(a)}", ["${x:-$(a)}", "a"], id="a substitution in a parameter"),
        pytest.param("${ a; } b", ["${ a; } b", "a"], id="a substitution in the same shell"),
        pytest.param("cat <<E\n$(a) `b`\nE", ["cat", "a", "b"], id="a here-document expands"),
        pytest.param("echo $((x<<2))\na", ["echo $((x<<2))", "x", "a"], id="arithmetic does not begin a here-document"),
        pytest.param("((x<<1))\na", ["x", "a"], id="nor does an arithmetic command"),
        pytest.param("case x in a) b;; (c) d;; esac", ["b", "c", "d", "esac"], id="case"),
        pytest.param("f() { a; }; f", ["f", "a", "f"], id="functions"),
        pytest.param("function f { a; }", ["a"], id="functions with the keyword"),
        pytest.param("x=(a b)", ["x=", "a b"], id="arrays"),
        pytest.param("[[ a && b ]]", ["[[ a", "b ]]"], id="conditions"),
        pytest.param("coproc a", ["a"], id="coprocesses"),
        pytest.param("a; b 'c", ["a", "b c"], id="a quote that is not closed"),
        pytest.param('a; b "c', ["a", "b c"], id="a double quote that is not closed"),
        pytest.param("a; (b", ["a", "b"], id="a parenthesis that is not closed"),
        pytest.param("a )", ["a"], id="a parenthesis that was not opened"),
        pytest.param("a >", ["a"], id="a redirection to nowhere"),
        pytest.param("a > ; b", ["a", "b"], id="a redirection to an operator"),
        pytest.param("a $[1+1]", ["a $[1+1]"], id="old arithmetic"),
    ],
)
def test_uncertain_text_is_opaque_and_still_looked_into(text, commands):
    script = parse(text)
    assert (texts(script), script.opaque, script.blind) == (commands, True, False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$(" * (MOST_LEVELS + 1), id="too deep in substitutions"),
        pytest.param("${x" * (MOST_LEVELS + 1), id="too deep in parameters"),
        pytest.param("(" * (MOST_LEVELS + 1), id="too deep in subshells"),
        pytest.param("a " * MOST_CHARACTERS, id="too long"),
    ],
)
def test_what_is_too_deep_or_too_long_is_not_read(text):
    script = parse(text)
    assert (script.opaque, script.blind) == (True, True)


@pytest.mark.parametrize(
    ("word", "doubt"),
    [
        ("plain", Doubt.NONE),
        ("'$x'", Doubt.NONE),
        ("\\*", Doubt.NONE),
        ('"*"', Doubt.NONE),
        ("a*", Doubt.PATTERN),
        ("a?[b]", Doubt.PATTERN),
        ("~/a", Doubt.PATTERN),
        ("{a,b}", Doubt.PATTERN),
        ("{1..3}", Doubt.PATTERN),
        ("$x", Doubt.UNKNOWN),
        ('"$x"', Doubt.UNKNOWN),
        ("$(a)", Doubt.UNKNOWN),
    ],
)
def test_a_word_says_how_far_it_may_differ_from_what_the_program_gets(word, doubt):
    assert parse(word).commands[0].words[0].doubt is doubt


def test_here_documents_belong_to_their_command():
    script = parse("a <<X; b <<< c\nbody\nX\n")
    assert [command.stdin for command in script.commands] == [("body\n",), ("c",)]


@given(st.text("ab$(){}`'\"\\|&;<>#\n \t!*?[]=-", max_size=60) | st.text(max_size=30))
def test_any_text_is_taken_apart(text):
    assert isinstance(parse(text), Script)


def single(text: str) -> str:
    return f"'{text}'"


def double(text: str) -> str:
    return '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in text) + '"'


def escaped(text: str) -> str:
    return "".join(f"\\{char}" for char in text)


PIECES = (
    st.text("abc./-_=,:", min_size=1, max_size=5)
    | st.text('ab $`"\\|&;<>(){}#\n*?~!', max_size=5).map(single)
    | st.text("ab $`\"\\|&;<>(){}#*?'~", max_size=5).map(double)
    | st.text("ab $`\"\\|&;<>(){}#*?'~", min_size=1, max_size=3).map(escaped)
)
WORDS = st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(WORDS)
def test_words_are_those_that_bash_hands_to_a_program(words):
    """Everything that could expand is quoted, so bash only prints."""
    line = "printf '%s\\0' " + " ".join(words)
    run = subprocess.run(["bash", "--norc", "-c", line], env={}, capture_output=True, check=True)
    script = parse(line)
    assert [word.text for word in script.commands[0].words[2:]] == run.stdout.decode().split("\0")[:-1]
    assert (len(script.commands), script.opaque) == (1, False)
