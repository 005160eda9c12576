"""Globs: what they match, what is wrong with them, and that no pattern makes a match slow."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.faults import Fault
from mcp.workspace.search_globs import (
    Glob,
    components,
    expand_braces,
    file_filter,
    name_finder,
    narrowing_to,
    path_regex,
)


def compiled(glob: Glob | Fault) -> Glob:
    """The glob, which must be one."""
    assert isinstance(glob, Glob), glob
    return glob


def parsed(pattern: str) -> tuple[tuple[object, ...], ...]:
    """The components of a pattern, which must be well formed."""
    found = components(pattern)
    assert not isinstance(found, Fault)
    return found


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        pytest.param("*.py", "a.py", id="a name at the top"),
        pytest.param("*.py", "deep/down/a.py", id="a name at any depth"),
        pytest.param("Dockerfile", "images/Dockerfile", id="a plain name at any depth"),
        pytest.param("src/*.ts", "src/a.ts", id="a path from the top"),
        pytest.param("./src/*.ts", "src/a.ts", id="a leading dot and slash"),
        pytest.param("././*.ts", "src/a.ts", id="two of them, and then a name at any depth"),
        pytest.param("/src/*.ts", "src/a.ts", id="a leading slash"),
        pytest.param("src//a.ts", "src/a.ts", id="a doubled slash"),
        pytest.param("src/**", "src/a/b.ts", id="everything below"),
        pytest.param("src/**/b.ts", "src/b.ts", id="two stars stand for no folder"),
        pytest.param("src/**/b.ts", "src/x/y/b.ts", id="two stars stand for two folders"),
        pytest.param("**/b.ts", "b.ts", id="two stars first stand for no folder"),
        pytest.param("**/x/**/b", "a/x/c/d/b", id="two stars twice"),
        pytest.param("a/**/**/b", "a/b", id="two stars in a row"),
        pytest.param("**", "a", id="everything"),
        pytest.param("a**z", "abcz", id="two stars inside a name are one"),
        pytest.param("*.{ts,tsx}", "x/a.tsx", id="braces"),
        pytest.param("{src,lib/{a,b}}/x", "lib/b/x", id="nested braces with a slash"),
        pytest.param("a{,b}", "a", id="an empty choice"),
        pytest.param("{src/*.c,*.h}", "include/a.h", id="a choice without a slash is a name at any depth"),
        pytest.param("?.c", "é.c", id="one character"),
        pytest.param("[a-c]x", "bx", id="a range"),
        pytest.param("[!a-c]x", "dx", id="a range turned around"),
        pytest.param("[^a-c]x", "dx", id="the other way to turn it around"),
        pytest.param("[]x]", "]", id="a bracket first in a class"),
        pytest.param("[ab", "[ab", id="a bracket that is not closed"),
        pytest.param("[id].tsx", "app/[id].tsx", id="a class is also its own text"),
        pytest.param("app/[[...slug]]/*", "app/[[...slug]]/page", id="and so with brackets in it"),
        pytest.param("\\*.c", "*.c", id="an escaped star"),
        pytest.param("\\{a", "{a", id="an escaped brace"),
        pytest.param("a}", "a}", id="a brace that nothing opened"),
        pytest.param(".github/**/*.yml", ".github/workflows/a.yml", id="folders with a dot"),
        pytest.param("*", ".env", id="a star takes a dot first"),
        pytest.param("a\nb", "a\nb", id="a newline in a name"),
        pytest.param("*", "\udcff", id="a name that is not UTF-8"),
        pytest.param(
            unicodedata.normalize("NFC", "é*"), unicodedata.normalize("NFD", "éa"), id="composed finds decomposed"
        ),
        pytest.param(
            unicodedata.normalize("NFD", "é*"), unicodedata.normalize("NFC", "éa"), id="decomposed finds composed"
        ),
        pytest.param("caf?", unicodedata.normalize("NFD", "café"), id="a decomposed character is one character"),
        pytest.param("* 1.23 PM.png", "Screenshot 1.23\u202fPM.png", id="a space finds the narrow one"),
        pytest.param("it's", "it\u2019s", id="an apostrophe finds the curly one"),
    ],
)
def test_a_glob_takes_what_it_means(pattern: str, path: str) -> None:
    assert compiled(name_finder(pattern)).matches(path)
    assert compiled(file_filter(pattern)).matches(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        pytest.param("*.py", "a.pyc", id="a longer name"),
        pytest.param("*.py", "a.py/b", id="a folder of that name"),
        pytest.param("src/**", "app/src/a", id="the folder deeper down"),
        pytest.param("src/**", "src", id="the folder itself"),
        pytest.param("src/*.ts", "src/x/a.ts", id="a star is not a slash"),
        pytest.param("src?a", "src/a", id="a question mark is not a slash"),
        pytest.param("src[!x]a", "src/a", id="a class is not a slash"),
        pytest.param("src[+-9]a", "src/a", id="a range over the slash is not a slash"),
        pytest.param("*.PY", "a.py", id="another letter case"),
        pytest.param("a*", "b", id="another name"),
        pytest.param("?", "", id="nothing"),
        pytest.param("src/*", "src/", id="a star takes at least one character"),
    ],
)
def test_a_glob_takes_nothing_else(pattern: str, path: str) -> None:
    assert not compiled(name_finder(pattern)).matches(path)
    assert not compiled(file_filter(pattern)).matches(path)


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        pytest.param("!*.min.js", "a.min.js", False, id="what it names is left out"),
        pytest.param("!*.min.js", "a.js", True, id="everything else is in"),
        pytest.param("!vendor", "x/vendor/a.js", False, id="a folder is left out with all below it"),
        pytest.param("!src/gen/**", "src/gen/a", False, id="a path"),
        pytest.param("docs/", "x/docs/a/b.md", True, id="a trailing slash is everything below"),
        pytest.param("docs/", "docs", False, id="but not a file of that name"),
    ],
)
def test_a_file_filter_also_knows(pattern: str, path: str, taken: bool) -> None:
    assert compiled(file_filter(pattern)).matches(path) is taken


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("*.{ts,tsx", "opens a brace that it does not close", id="an open brace"),
        pytest.param("src/../x", "give the folder to search as `path`", id="a way up"),
        pytest.param("[z-a]", "runs backwards", id="a range that runs backwards"),
        pytest.param("/", "names nothing", id="only a slash"),
        pytest.param("./", "names nothing", id="only a dot"),
        pytest.param("{a,}", "names nothing", id="a choice of nothing"),
        pytest.param("{a,b}" * 9, "too many patterns", id="512 choices"),
        pytest.param("{a,b,c}" + "x" * 2000, "too long", id="thousands of characters"),
    ],
)
def test_what_is_wrong_with_a_glob_is_said(pattern: str, words: str) -> None:
    for fault in (name_finder(pattern), file_filter(pattern)):
        assert isinstance(fault, Fault)
        assert words in fault.message


def test_braces_expand_in_the_order_they_are_written() -> None:
    assert expand_braces("{a,b{c,d}}e") == ("ae", "bce", "bde")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        pytest.param("*a" * 40 + "*b", "a" * 255, id="many stars"),
        pytest.param("**/a/" * 20 + "b", "a/" * 2000 + "c", id="many double stars"),
        pytest.param("{*a,*a*a,*a*a*a}" * 4 + "b", "a" * 255, id="stars in braces"),
        pytest.param("[ab]*" * 60 + "c", "ab" * 120, id="classes between stars"),
        pytest.param("!" + "*a" * 40 + "*b", "a/" * 120 + "a" * 255, id="turned around"),
    ],
)
def test_no_pattern_is_slow(pattern: str, path: str) -> None:
    glob = compiled(file_filter(pattern))
    started = time.perf_counter()
    glob.matches(path)
    assert time.perf_counter() - started < 0.5


# The oracle: a token is a character, "?", "*", or a class as a set; a component is a list of tokens, or "**".
CHARACTERS = "ab."
TOKENS = st.one_of(
    st.sampled_from(CHARACTERS), st.sampled_from("?*"), st.frozensets(st.sampled_from(CHARACTERS), min_size=1)
)
PATTERNS = st.lists(st.one_of(st.just("**"), st.lists(TOKENS, min_size=1, max_size=5)), min_size=1, max_size=4)
PATHS = st.lists(st.text(CHARACTERS, min_size=1, max_size=5), min_size=1, max_size=4)
Pattern = Sequence[str | Sequence[str | frozenset[str]]]


def written(pattern: Pattern) -> str:
    """The pattern of the oracle as a glob."""
    return "/".join(
        "**" if part == "**" else "".join(f"[{''.join(sorted(t))}]" if isinstance(t, frozenset) else t for t in part)
        for part in pattern
    )


def path_fits(pattern: Pattern, path: Sequence[str]) -> bool:
    """By trying everything."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        rests = [path[index:] for index in range(len(path) + 1)]
        return any(path_fits(pattern[1:], rest) for rest in (rests if pattern[1:] else rests[1:][-1:]))
    return bool(path) and name_fits(pattern[0], path[0]) and path_fits(pattern[1:], path[1:])


def name_fits(tokens: Sequence[str | frozenset[str]], name: str) -> bool:
    """By trying everything."""
    if not tokens:
        return not name
    token, rest = tokens[0], tokens[1:]
    if token == "*":
        return any(name_fits(rest, name[index:]) for index in range(len(name) + 1))
    return bool(name) and (token == "?" or name[0] in token) and name_fits(rest, name[1:])


@given(PATTERNS, PATHS)
def test_the_regular_expression_agrees_with_trying_everything(pattern: Pattern, path: Sequence[str]) -> None:
    text = written(pattern)
    if any(part in {".", ".."} for part in text.split("/")) or any(not part.strip(".") for part in path):
        return
    stars_only = [part for part in pattern if part != "**" and set(part) == {"*"} and len(part) > 1]
    if stars_only:
        return
    whole = re.fullmatch(path_regex(parsed(text)), "/".join(path), re.DOTALL)  # type: ignore[arg-type]
    assert (whole is not None) == path_fits(pattern, path)


@given(st.text("ab*?[]{},!\\/.é \n", max_size=12), st.text("ab[]{}!/é \n", max_size=8))
def test_no_text_is_more_than_a_fault(pattern: str, path: str) -> None:
    for glob in (name_finder(pattern), file_filter(pattern)):
        assert isinstance(glob, Fault) or glob.matches(path) in {True, False}


def test_names_of_denied_files_narrow_to_the_widest() -> None:
    """Lines that another line takes in are dropped, a literal star at the end takes in nothing."""
    patterns = [parsed(text) for text in ("**/.x", "**/.x[!.]*", "**/.xy", "a/\\*", "a/\\*b")]
    assert narrowing_to(patterns) == (  # type: ignore[arg-type]
        "!/**/.[xX]*",
        "!/**/.[xX]*/**",
        "!/[aA]/\\*",
        "!/[aA]/\\*/**",
        "!/[aA]/\\*[bB]",
        "!/[aA]/\\*[bB]/**",
    )
