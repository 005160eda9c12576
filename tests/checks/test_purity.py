"""The protocol package is pure: what it may import, what it may call, and an empty environment that proves it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "mcp" / "protocol"
MODULES = sorted(PROTOCOL.rglob("*.py"))

#: Parts of the standard library that reach for the world: the clock, chance, files, sockets, processes, other threads.
WORLD = """
    asyncio concurrent ctypes glob http importlib io logging multiprocessing os pathlib platform queue random runpy
    sched secrets select selectors shutil signal socket socketserver ssl subprocess sys tempfile threading time
    urllib uuid zoneinfo
"""
#: Calls that reach for the world without an import, or through one that is otherwise pure (`datetime`).
CALLS = frozenset({"open", "print", "input", "exec", "eval", "__import__", "now", "utcnow", "today", "getrandbits"})
AWAITING = ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports, in full."""
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module, _, level):
            return ["." * level + (module or "")]
    return []


def called(node: ast.AST) -> str | None:
    """The last name of what a node calls, if it is a call."""
    match node:
        case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
            return name
    return None


def pure(module: str) -> bool:
    """Whether the protocol package may import that module."""
    top = module.partition(".")[0]
    ours = module == "mcp.protocol" or module.startswith("mcp.protocol.")
    return ours or top == "msgspec" or (top in sys.stdlib_module_names and top not in WORLD.split())


def impurities(source: str) -> list[str]:
    """What a module has that a pure one has not, with the line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [f"line {node.lineno} imports {name}" for name in imported(node) if not pure(name)]
        if called(node) in CALLS:
            found.append(f"line {node.lineno} calls {called(node)}")
        if isinstance(node, AWAITING):
            found.append(f"line {node.lineno} awaits")
    return found


@pytest.mark.parametrize("path", [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in MODULES])
def test_a_protocol_module_has_no_clock_chance_socket_file_or_await(path):
    assert impurities(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("import json\nfrom mcp.protocol.state import State\nimport msgspec.json", [], id="pure"),
        pytest.param("import time", ["line 1 imports time"], id="the clock"),
        pytest.param("from os import path", ["line 1 imports os"], id="files"),
        pytest.param("from datetime import datetime\ndatetime.now()", ["line 2 calls now"], id="the clock by datetime"),
        pytest.param("import mcp.sessions", ["line 1 imports mcp.sessions"], id="the rest of mcp"),
        pytest.param("import auth.caller", ["line 1 imports auth.caller"], id="another package"),
        pytest.param("import pydantic", ["line 1 imports pydantic"], id="a dependency"),
        pytest.param("from . import wire", ["line 1 imports ."], id="a relative import"),
        pytest.param("def f():\n    import socket", ["line 2 imports socket"], id="a deferred import"),
        pytest.param("async def f():\n    pass", ["line 1 awaits"], id="a coroutine"),
    ],
)
def test_the_check_sees(source, expected):
    assert impurities(source) == expected


def test_every_protocol_module_imports_where_only_it_and_the_codec_exist(tmp_path):
    """Run in an isolated interpreter without site-packages, on a path that holds the package and msgspec alone."""
    package = tmp_path / "mcp"
    package.mkdir()
    (package / "__init__.py").symlink_to(ROOT / "mcp" / "__init__.py")
    (package / "protocol").symlink_to(PROTOCOL)
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in MODULES]
    program = (
        "import importlib, json, sys; sys.path.append(sys.argv[1]);"
        "[importlib.import_module(name) for name in sys.argv[2:]];"
        "tops = {name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names - {'__main__'};"
        "print(json.dumps(sorted(tops)))"
    )
    argv = [sys.executable, "-I", "-S", "-B", "-c", program, str(tmp_path), *names]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == ["mcp", "msgspec"]
