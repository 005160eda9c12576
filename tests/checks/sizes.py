"""Size caps of modules and functions, as a command: `python tests/checks/sizes.py` from anywhere.

Small units are read whole and tested whole. A module counts with everything in it; a function counts from its
`def` to its last line without its docstring, and what it nests counts too. Prints one line for each unit that is
over its cap and each exception that is not needed any more, and exits 1 when there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("gateway", "mcp", "auth", "telemetry", "migrations", "tests")

MODULE_LINES: Final = 400
FUNCTION_LINES: Final = 40

#: What may be larger, by `path` or `path::function`, with the reason. `migrations/versions` is never measured: its
#: files are a record of the past.
EXCEPTIONS: Final[Mapping[str, str]] = {}


def measured(root: Path = ROOT) -> Iterator[Path]:
    """The Python files that the caps bind."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if "versions" not in path.parts:
                yield path


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function has without its docstring."""
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is None:
        return lines
    docstring = node.body[0]
    assert docstring.end_lineno is not None
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Each function of a module and its lines; methods as `Class.method`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, function_lines(node)
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def oversized(name: str, source: str) -> dict[str, str]:
    """What is over its cap in one module: its name in the table of exceptions, and a sentence."""
    over = {}
    if (lines := len(source.splitlines())) > MODULE_LINES:
        over[name] = f"{name} has {lines} lines; a module has at most {MODULE_LINES}"
    for function, lines in functions(ast.parse(source)):
        if lines > FUNCTION_LINES:
            unit = f"{name}::{function}"
            over[unit] = f"{unit} has {lines} lines; a function has at most {FUNCTION_LINES}"
    return over


def complaints(sources: Mapping[str, str], exceptions: Mapping[str, str]) -> list[str]:
    """One sentence for each unit over its cap without an exception, and each exception without such a unit."""
    over: dict[str, str] = {}
    for name, source in sources.items():
        over |= oversized(name, source)
    large = [sentence for unit, sentence in over.items() if unit not in exceptions]
    idle = [f"{unit} is within its cap: remove its exception" for unit in exceptions if unit not in over]
    return large + idle


def main() -> int:
    """Measure the tree; answers the exit code."""
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in measured()}
    found = complaints(sources, EXCEPTIONS)
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    sys.stdout.write(f"Size caps: {len(sources)} modules, {len(found)} complaints.\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
