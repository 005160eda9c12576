"""The dialect of file patterns, as it is documented."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.globs import MOST_ALTERNATIVES, covers, covers_any, expand_braces, is_everything, names, rooted


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        pytest.param("*.py", "a/b/c.py", True, id="without a slash a pattern matches the name at any depth"),
        pytest.param("*.py", "c.py", True, id="and in the root"),
        pytest.param("src/*.py", "src/a.py", True, id="with a slash it is tied to the root"),
        pytest.param("src/*.py", "x/src/a.py", False, id="and matches nowhere else"),
        pytest.param("src/*.py", "src/a/b.py", False, id="a star stays within a name"),
        pytest.param("src/**/*.py", "src/a/b.py", True, id="two stars span folders"),
        pytest.param("src/**/*.py", "src/b.py", True, id="or none"),
        pytest.param("src/**", "src/a/b", True, id="two stars at the end are all that is in a folder"),
        pytest.param("src/**", "src", True, id="and the folder"),
        pytest.param("src/", "x/src/a", True, id="a slash at the end is a whole folder at any depth"),
        pytest.param("x/src/", "x/src/a/b", True, id="tied to the root when there is another slash"),
        pytest.param("src", "src/a", False, id="a name alone is not what is in it"),
        pytest.param("/src", "src", True, id="a slash in front ties to the root"),
        pytest.param("/src", "a/src", False, id="and matches no deeper"),
        pytest.param("/extra/a", "/extra/a", True, id="or names a path in an extra root"),
        pytest.param("extra/a", "/extra/a", False, id="which a relative pattern does not"),
        pytest.param("**/a", "/extra/a", True, id="unless it spans"),
        pytest.param("./src//a", "src/a", True, id="a dot and double slashes do not count"),
        pytest.param("*.{ts,tsx}", "a.tsx", True, id="braces choose"),
        pytest.param("{a,{b,c}/d}", "c/d", True, id="braces nest"),
        pytest.param("{a}", "{a}", True, id="braces without a choice are characters"),
        pytest.param("a?c", "abc", True, id="a question mark is one character"),
        pytest.param("[ab].txt", "b.txt", True, id="brackets choose a character"),
        pytest.param("[!ab].txt", "b.txt", False, id="or leave some out"),
        pytest.param("[*]", "*", True, id="a literal star stands in brackets"),
        pytest.param("*", "a/.b", True, id="a star alone is everything, hidden files too"),
        pytest.param("**", ".", True, id="and the root"),
        pytest.param("README.md", "readme.md", False, id="case counts"),
        pytest.param("café", unicodedata.normalize("NFD", "café"), True, id="Unicode composition does not"),
    ],
)
def test_names(pattern, path, named):
    assert names(pattern, path) is named


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        pytest.param("src", "src/a/b", True, id="a folder covers what is in it"),
        pytest.param("src", "x/src/a/b", True, id="at any depth"),
        pytest.param("src/*", "src/a/b", True, id="a pattern of folders too"),
        pytest.param("secret**", "secrets/k", True, id="also of one whose pattern ends in stars"),
        pytest.param("a/b", "a", False, id="but not what is above it"),
        pytest.param("README.md", "Readme.MD", True, id="case does not count"),
        pytest.param("straße", "STRASSE", True, id="in any script"),
        pytest.param("key", "key. ", True, id="dots and blanks at the end do not count"),
        pytest.param("a. ", "a. ", True, id="unless the pattern has them"),
        pytest.param("key", "k\u200dey", True, id="characters that macOS ignores do not count"),
        pytest.param("key", "key::$DATA", True, id="nor does a stream"),
        pytest.param("key", "keys", False, id="another name is another name"),
        pytest.param("..", "...", False, id="a name of dots alone stays one"),
        pytest.param("café", unicodedata.normalize("NFD", "CAFÉ"), True, id="composition does not count"),
        pytest.param("{a,b}" * 9, "whatever", True, id="too many alternatives cover everything"),
    ],
)
def test_covers(pattern, path, covered):
    assert covers(pattern, path) is covered


def test_too_many_alternatives_name_nothing():
    pattern = "{a,b}" * 9
    assert (expand_braces(pattern), rooted(pattern), names(pattern, "a" * 9)) == (None, None, False)
    assert len(expand_braces("{a,b}" * 8) or ()) == MOST_ALTERNATIVES


PATTERNS = st.text("ab/*?[]{},.!-\\", max_size=12)
PATHS = st.lists(st.text("abA.*[", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


@given(PATTERNS, PATHS)
def test_what_is_named_is_covered_and_so_is_all_below_it(pattern, path):
    if names(pattern, path):
        assert covers(pattern, path)
        assert covers(pattern, f"{path}/below")


@given(st.lists(PATTERNS, max_size=4), PATHS)
def test_a_set_covers_what_any_of_it_covers(patterns, path):
    assert covers_any(tuple(patterns), path) is any(covers(pattern, path) for pattern in patterns)


@given(PATHS.filter(lambda path: "[" not in path and "*" not in path and not path.startswith(".")))
def test_a_path_is_a_pattern_for_itself(path):
    plain = "/".join(part for part in path.split("/") if part != ".")
    assert names(f"/{plain}", plain)


def test_matching_takes_little_time_whatever_the_pattern():
    start = time.process_time()
    assert not covers("a*" * 200 + "b", "a" * 255)
    assert not covers("**/a/" * 100 + "b", "a/" * 1000)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("pattern", ["*", "**", "**/", "./**", "/**", "**/*", "*/**", "**/**", "{a,**}", "./"])
def test_patterns_for_everything(pattern):
    assert is_everything(pattern)


@pytest.mark.parametrize(
    "pattern", ["a", "*.py", "a/**", "**/a", "*/*", "**/*/*", "**/*.*", "/*", "?", "{a,b}", "{a,b}" * 9]
)
def test_patterns_for_something(pattern):
    assert not is_everything(pattern)


@given(st.text(alphabet="*/.a{,}", max_size=8), st.lists(st.sampled_from("abc"), min_size=1).map("/".join))
def test_a_pattern_for_everything_covers_every_path(pattern, path):
    assert not is_everything(pattern) or covers(pattern, path)
