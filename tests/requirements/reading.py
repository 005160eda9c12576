"""Reading the ledger of requirements, and the marks by which tests say which of its rows they show."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp.protocol.revisions import EVERY, HANDSHAKE, STATELESS, Revision, by_name

TESTS: Final = Path(__file__).resolve().parent.parent
LEDGER: Final = TESTS / "requirements" / "ledger"

#: What a gap is. Tests may show the rows of the first two all the same; those of the others have none.
SHOWN_KINDS: Final = frozenset({"in part", "fixtures only"})
KINDS: Final = SHOWN_KINDS | {"not adopted", "not yet"}
_FIELDS: Final = frozenset({"revisions", "says", "kind", "gap", "code", "methods", "fields"})
_ID: Final = re.compile(r"([A-Z]+)-([1-9][0-9]*)")
_WORDS: Final = {"all": EVERY, "handshake": HANDSHAKE, "stateless": STATELESS}


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement: to which revisions it belongs, what it says in our words, and what is missing, if something is.

    `code`, `methods` and `fields` tie a row to a table of the product.
    """

    id: str
    file: str
    revisions: tuple[Revision, ...]
    says: str
    kind: str = ""
    gap: str = ""
    code: int | None = None
    methods: frozenset[str] = field(default_factory=frozenset)
    fields: frozenset[str] = field(default_factory=frozenset)


def rows(folder: Path = LEDGER) -> list[Row]:
    """Every row, in the order of the files. Raises ValueError for what is no row."""
    return [row for path in sorted(folder.glob("*.toml")) for row in read(path.name, path.read_text("utf-8"))]


def read(name: str, text: str) -> list[Row]:
    """The rows of one file."""
    tables = tomllib.loads(text)
    if not tables.pop("source", ""):
        raise ValueError(f"{name}: no source")
    return [_row(name, id, table) for id, table in tables.items()]


def _row(name: str, id: str, table: Any) -> Row:
    place = f"{name}: {id}"
    if _ID.fullmatch(id) is None or not isinstance(table, dict) or not table.keys() <= _FIELDS:
        raise ValueError(f"{place}: no row")
    if not table.get("says", "").endswith("."):
        raise ValueError(f"{place}: says no sentence")
    if ("gap" in table) != ("kind" in table) or not (table.get("gap", ".").endswith(".") and len(table) > 1):
        raise ValueError(f"{place}: a gap has a kind and a sentence")
    if table.get("kind", "in part") not in KINDS:
        raise ValueError(f"{place}: a gap is one of {', '.join(sorted(KINDS))}")
    given = {key: table[key] for key in ("says", "kind", "gap", "code") if key in table}
    return Row(
        id=id,
        file=name,
        revisions=revisions(table.get("revisions", "")),
        methods=frozenset(table.get("methods", ())),
        fields=frozenset(table.get("fields", ())),
        **given,
    )


def revisions(text: str) -> tuple[Revision, ...]:
    """The revisions of `all`, `handshake`, `stateless`, `from A`, `A to B`, or several of these after commas."""
    if text in _WORDS:
        return _WORDS[text]
    found: set[Revision] = set()
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        if part.startswith("from "):
            first, last = part.removeprefix("from "), EVERY[-1].value
        low, high = by_name(first), by_name(last or first)
        if low is None or high is None or low > high:
            raise ValueError(f"{part!r} names no revisions")
        found |= {one for one in EVERY if low <= one <= high}
    return tuple(one for one in EVERY if one in found)


def order(row: Row) -> tuple[str, int]:
    """Where a row belongs among those of its prefix."""
    prefix, number = _ID.fullmatch(row.id).groups()
    return prefix, int(number)


@dataclass(frozen=True, slots=True)
class Mark:
    """A test says that it shows a row."""

    id: str
    place: str


def marks(folder: Path = TESTS) -> list[Mark]:
    """What every test below a folder says that it shows; read as text, so that no test has to run or be chosen."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        if "requirement" in text:
            found += marks_of(text, path.relative_to(folder).as_posix())
    return found


def marks_of(text: str, name: str) -> list[Mark]:
    """The marks of one file. Raises ValueError for one that stands on nothing that is a test, or names no ids."""
    tree = ast.parse(text)
    placed = [mark for node in ast.walk(tree) for mark in _of(node, name)]
    calls = sum(isinstance(node, ast.Call) and _is_mark(node.func) for node in ast.walk(tree))
    if calls != len({id(node) for node, _ in placed}):
        raise ValueError(f"{name}: a mark stands on no test")
    return [mark for _, mark in placed]


def _of(node: ast.AST, name: str) -> Iterator[tuple[ast.Call, Mark]]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
        return
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _is_mark(decorator.func):
            ids = [argument.value for argument in decorator.args if isinstance(argument, ast.Constant)]
            if not ids or len(ids) != len(decorator.args) or not all(isinstance(one, str) for one in ids):
                raise ValueError(f"{name}: {node.name}: a mark names ids")
            for one in ids:
                yield decorator, Mark(one, f"{name}::{node.name}")


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.requirement"
