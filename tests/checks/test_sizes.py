"""The size caps hold, and the measure of them is right."""

import pytest

from tests.checks.sizes import EXCEPTIONS, FUNCTION_LINES, MODULE_LINES, ROOT, complaints, measured


def function(lines: int, *, docstring: int = 0) -> str:
    """A function of so many lines, with a docstring of so many more."""
    text = ['    """' + "\n" * (docstring - 1) + '"""'] if docstring else []
    return "\n".join(["def f():", *text, *["    pass"] * (lines - 1)])


@pytest.mark.parametrize(
    ("source", "exceptions", "expected"),
    [
        pytest.param(function(FUNCTION_LINES), {}, [], id="a function at the cap"),
        pytest.param(function(FUNCTION_LINES, docstring=9), {}, [], id="a docstring does not count"),
        pytest.param(
            function(FUNCTION_LINES + 1), {}, ["a.py::f has 41 lines; a function has at most 40"], id="one line more"
        ),
        pytest.param(function(FUNCTION_LINES + 1), {"a.py::f": "a table"}, [], id="an exception"),
        pytest.param(
            function(3),
            {"a.py::f": "a table"},
            ["a.py::f is within its cap: remove its exception"],
            id="an exception that nothing needs",
        ),
        pytest.param(
            "class C:\n    async def m(self):\n" + "        pass\n" * FUNCTION_LINES,
            {},
            ["a.py::C.m has 41 lines; a function has at most 40"],
            id="an async method",
        ),
        pytest.param("x = 1\n" * MODULE_LINES, {}, [], id="a module at the cap"),
        pytest.param(
            "x = 1\n" * (MODULE_LINES + 1), {}, ["a.py has 401 lines; a module has at most 400"], id="a long module"
        ),
    ],
)
def test_complaints_name_what_is_over_its_cap(source, exceptions, expected):
    assert complaints({"a.py": source}, exceptions) == expected


def test_every_module_and_function_of_the_tree_keeps_its_cap():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in measured()}
    assert "mcp/protocol/engine.py" in sources
    assert complaints(sources, EXCEPTIONS) == []
