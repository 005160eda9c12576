"""What commands cannot reach, in every mode and every sandbox. Every attempt aims at a canary of this test."""

from __future__ import annotations

import os
import re
import shlex
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.workspace.sandbox_landlock import SCOPED_SIGNALS, landlock_abi
from mcp.workspace.sandbox_world import World
from mcp.workspace.shell import SandboxStep
from tests.support.shells import SANDBOXES, Bench, shell, workspace
from tests.support.unprivileged import NOBODY, own

CANARY = "canary-5ad1"
MODES = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.label)


@dataclass(frozen=True, slots=True)
class Around:
    """What lies around a workspace: the server's data, another workspace, and a process like the server."""

    bench: Bench
    beside: Path
    pid: int

    async def attempt(self, scripts: dict[str, str], mode: Mode) -> dict[str, str]:
        """What each script said. All run as one command, since most of the time goes into starting it."""
        named = [f"echo; echo {shlex.quote(f'== {name}')}; ( {script} )" for name, script in scripts.items()]
        whole = "\n".join(named).replace("{beside}", str(self.beside)).replace("{pid}", str(self.pid))
        output = (await self.bench.run(whole, mode)).output
        parts = re.split(r"^== (.*)\n", output, flags=re.MULTILINE)[1:]
        said = dict(zip(parts[::2], parts[1::2], strict=True))
        assert list(said) == list(scripts)
        return said

    def state(self) -> dict[str, tuple[str, str]]:
        """Everything beside the workspace: kinds and contents."""
        paths = [path for path in sorted(self.beside.rglob("*")) if not path.is_relative_to(self.bench.root)]
        return {
            str(path.relative_to(self.beside)): (stat.filemode(path.lstat().st_mode)[0], path.read_text())
            for path in paths
            if path.is_file()
        }


@pytest.fixture(params=SANDBOXES)
def around(request: pytest.FixtureRequest) -> Iterator[Around]:
    with workspace() as root:
        beside = root.parent
        for folder in ("data", "ws-evil"):
            (beside / folder).mkdir()
            (beside / folder / "key").write_text(f"{CANARY}\n")
        own(beside)
        # A process with the very user that commands have, and with a secret in its environment.
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        process = subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], "KEY": CANARY}, **user)
        try:
            world = World(private=(beside / "data",))
            yield Around(Bench(shell(request.param, world=world), root), beside, process.pid)
        finally:
            process.kill()
            process.wait()


READS = {
    "the server's data": "cat {beside}/data/key",
    "another workspace": "cat {beside}/ws-evil/key; cat ../ws-evil/key",
    "data through a link": 'ln -s {beside}/data/key "$TMPDIR/l"; cat "$TMPDIR/l"; ln {beside}/data/key h; cat h',
    "the environment of a process outside": "cat /proc/{pid}/environ",
    "data through the root of a process outside": "cd /proc/{pid}; cat root{beside}/data/key cwd{beside}/data/key",
    "data through the parent": "cat /proc/$PPID/environ /proc/$PPID/root{beside}/data/key",
    "data through the first process": "cat /proc/1/environ /proc/1/root{beside}/data/key",
    "data through any process": "cat /proc/[0-9]*/environ /proc/[0-9]*/root{beside}/data/key",
    "data by going there": "cd {beside}/data && cat key",
    "data from namespaces of its own": "unshare -Ur cat {beside}/data/key; unshare -Urm cat {beside}/data/key",
    "data by a mount": 'mkdir "$TMPDIR/m"; mount --bind {beside}/data "$TMPDIR/m"; cat "$TMPDIR/m/key"',
    "data from another program": "python3 -c 'print(open(\"{beside}/data/key\").read())'",
    "data from a daemon": '(setsid cat {beside}/data/key >"$TMPDIR/d" 2>&1; cat "$TMPDIR/d")',
}


@MODES
async def test_a_command_reads_nothing_outside_its_workspace(around: Around, mode: Mode):
    said = await around.attempt(READS, mode)
    assert [name for name in READS if CANARY in said[name]] == []


WRITES = {
    "append to the server's data": "echo x >>{beside}/data/key",
    "truncate it": "truncate -s 0 {beside}/data/key; : >{beside}/data/key",
    "truncate it by its name": "python3 -c 'import os; os.truncate(\"{beside}/data/key\", 0)'",
    "remove it": "rm -f {beside}/data/key",
    "move it": "mv -f {beside}/data/key {beside}/data/moved; mv -f {beside}/data .",
    "replace it": 'echo x >"$TMPDIR/x"; mv -f "$TMPDIR/x" {beside}/data/key',
    "write beside the workspace": "echo x >{beside}/new; echo x >../new; mkdir {beside}/m; echo x >{beside}/m/x",
    "write through a link": 'ln -s {beside}/data/key "$TMPDIR/w"; echo x >"$TMPDIR/w"',
    "write through a process outside": "echo x >/proc/{pid}/root{beside}/data/key",
    "write into another workspace": "echo x >{beside}/ws-evil/key; git init -q {beside}/ws-evil/repository",
}


@MODES
async def test_a_command_changes_nothing_outside_its_workspace(around: Around, mode: Mode):
    before = around.state()
    await around.attempt(WRITES, mode)
    assert around.state() == before


@pytest.mark.parametrize("around", [SandboxStep.UNSANDBOXED], indirect=True)
async def test_without_a_sandbox_the_same_attempts_succeed(around: Around):
    """So the tests above prove something."""
    said = await around.attempt(READS, Mode.WORKSPACE_WRITE)
    leaked = [name for name in READS if CANARY in said[name]]
    assert len(leaked) >= 8, leaked
    before = around.state()
    await around.attempt(WRITES, Mode.WORKSPACE_WRITE)
    assert around.state() != before


async def test_a_read_only_command_changes_nothing_in_its_workspace(around: Around):
    around.bench.put({"a": "a", "folder/b": "b"})
    paths = [around.bench.root, *sorted(around.bench.root.rglob("*"))]
    before = [(path, path.lstat().st_mode, path.lstat().st_mtime_ns) for path in paths]
    scripts = {
        "write": "echo x >a; echo x >>folder/b; echo x >new",
        "remove and move": "rm -rf a folder; mv a c",
        "change modes and times": "chmod 777 a folder .; touch a folder; python3 -c 'import os; os.utime(\"a\")'",
        "remount": f"mount -o remount,rw {around.bench.root}; echo x >a",
        "work in the temporary folder": 'cp a "$TMPDIR/a" && echo b >>"$TMPDIR/a" && cat "$TMPDIR/a"',
    }
    said = await around.attempt(scripts, Mode.READ_ONLY)
    assert [(path, path.lstat().st_mode, path.lstat().st_mtime_ns) for path in paths] == before
    assert sorted(around.bench.root.rglob("*")) == paths[1:]
    assert said["work in the temporary folder"] == "ab\n"


@MODES
async def test_a_command_signals_no_process_outside(around: Around, mode: Mode):
    if around.bench.shell.step is SandboxStep.LANDLOCK and landlock_abi() < SCOPED_SIGNALS:
        assert "can signal other processes" in around.bench.shell.why
        return
    said = await around.attempt(
        {"probe": "kill -0 {pid} && echo reached", "kill": "kill -9 {pid} && echo killed"}, mode
    )
    assert not [name for name, output in said.items() if "reached" in output or "killed" in output]
    assert Path(f"/proc/{around.pid}/stat").read_text().split()[2] == "S"


CONNECT = "exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
CONNECT_UNIX = "import socket; socket.socket(socket.AF_UNIX).connect({address!r}); print('connected')"


@MODES
async def test_only_the_mode_full_reaches_the_network(around: Around, mode: Mode):
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = CONNECT.format(port=server.getsockname()[1])
        result = await around.bench.run(script, mode)
    assert ("connected" in result.output) is (mode is Mode.FULL)


async def test_a_command_reaches_no_socket_by_its_path(around: Around):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(around.beside / "s"))
        own(around.beside)
        server.listen()
        code = CONNECT_UNIX.format(address=str(around.beside / "s"))
        result = await around.bench.run(f'python3 -c "{code}" 2>/dev/null', Mode.FULL)
    assert (result.output, result.exit_code) == ("", 1)


async def test_below_full_a_command_reaches_no_abstract_socket(around: Around):
    name = f"superpi-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        around.bench.put({"connect.py": CONNECT_UNIX.format(address=f"\0{name}")})
        result = await around.bench.run("python3 connect.py 2>/dev/null")
    assert (result.output, result.exit_code) == ("", 1)


async def test_a_workspace_inside_the_servers_data_is_all_that_shows_of_it():
    for step in SANDBOXES:
        with workspace() as root:
            (root.parent / "key").write_text(CANARY)
            own(root.parent)
            bench = Bench(shell(step, world=World(private=(root.parent,))), root)
            bench.put({"a": "in the workspace"})
            result = await bench.run("cat a ../key; ls ..")
            assert "in the workspace" in result.output
            assert CANARY not in result.output
            assert "key\n" not in result.output.replace("../key", "")


async def test_data_inside_a_workspace_is_masked_or_nothing_runs():
    with workspace() as root:
        (root / "data").mkdir()
        world = World(private=(root / "data",))
        masked, refused = (Bench(shell(step, world=world), root) for step in SANDBOXES)
        masked.put({"data/key": CANARY, "a": "in the workspace"})
        result = await masked.run("cat a data/key; mv data d; cat d/key; chmod 777 data; cat data/key")
        assert "in the workspace" in result.output
        assert CANARY not in result.output
        assert isinstance(await refused.attempt("cat data/key"), Fault)
