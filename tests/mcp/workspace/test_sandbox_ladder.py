"""Choosing a step of the ladder, the profile it runs, and the figures that bound a command in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from auth.permissions import Mode
from mcp.faults import Fault
from mcp.limits import Limits
from mcp.workspace import sandbox
from mcp.workspace.bubblewrap import SHM_BYTES, TMP_BYTES, Bubblewrap, Inherited, profile
from mcp.workspace.sandbox_masks import MOST_MASKS
from mcp.workspace.sandbox_programs import OpenProgram, bwraps, drop_to
from mcp.workspace.sandbox_world import (
    MOST_ADDRESS_SPACE,
    MOST_FILE_SIZE,
    MOST_PROCESSES,
    MOST_PROCESSES_OF_USER,
    NOBODY,
    User,
    World,
    rlimits,
    user_for,
)
from mcp.workspace.shell import Command, SandboxStep, probe_shell
from tests.support.shells import SANDBOXES, Bench, shell, workspace
from tests.support.unprivileged import own


@pytest.fixture(params=SANDBOXES)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with workspace() as root:
        yield Bench(shell(request.param), root)


def command(root: Path, mode: Mode = Mode.WORKSPACE_WRITE, **fields: object) -> Command:
    return Command(("bash", "-c", "true"), root, mode, 10, **fields)


# The choice


def probed(
    monkeypatch: pytest.MonkeyPatch, working: set[SandboxStep], *, allow_unsandboxed: bool = False, local: bool = False
):
    """What is chosen on a machine where only those steps work."""
    programs = list(bwraps()) if SandboxStep.BUBBLEWRAP in working else []
    monkeypatch.setattr(sandbox, "bwraps", lambda: iter(programs))
    if SandboxStep.LANDLOCK not in working:
        monkeypatch.setattr(sandbox, "landlock_abi", lambda: 0)
    return probe_shell(Limits(), allow_unsandboxed=allow_unsandboxed, local=local)


B, L, U = SandboxStep.BUBBLEWRAP, SandboxStep.LANDLOCK, SandboxStep.UNSANDBOXED


@pytest.mark.parametrize(
    ("working", "arguments", "step", "words"),
    [
        pytest.param({B, L}, {}, B, "Commands run in bubblewrap", id="bubblewrap comes first"),
        pytest.param({L}, {}, L, "deny rules on paths do not bind them", id="then Landlock, and what is lost is said"),
        pytest.param({B, L}, {"local": True}, B, "Commands run in bubblewrap", id="also over stdio"),
        pytest.param(
            {B, L}, {"allow_unsandboxed": True}, U, "because a setting says so", id="a setting means none at all"
        ),
        pytest.param(
            set(), {}, SandboxStep.UNAVAILABLE, "Commands are refused", id="where none works they are refused"
        ),
        pytest.param(
            set(), {"local": True}, U, "WITHOUT A SANDBOX, as the user who started", id="but over stdio they run"
        ),
    ],
)
def test_the_first_step_that_works_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
    working: set[SandboxStep],
    arguments: dict[str, bool],
    step: SandboxStep,
    words: str,
):
    for needed in working & {step}:
        shell(needed)
    found = probed(monkeypatch, working, **arguments)
    assert found.step is step
    assert words in found.why
    assert found.masks is (step is SandboxStep.BUBBLEWRAP)


async def test_without_a_sandbox_commands_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    refused = await probed(monkeypatch, set()).run(command(tmp_path))
    assert isinstance(refused, Fault)
    assert "SUPERPI_SANDBOX=off" in refused.message
    assert "bubblewrap" in refused.message


def test_a_step_that_does_not_start_is_left_for_the_next_and_the_reason_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho \"bwrap: no namespaces in '$0': /proc/x\" >&2\nexit 1\n")
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(sandbox, "bwraps", lambda: iter([broken]))
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: 0)
    found = probe_shell(Limits(), allow_unsandboxed=False, local=False)
    assert found.step is SandboxStep.UNAVAILABLE
    assert "bubblewrap: " in found.why
    assert "/" not in found.why.partition("bubblewrap: ")[2].partition(")")[0]
    assert "bwrap: no namespaces in '...': ..." in found.why


def test_only_root_is_told_about_root():
    assert ("The server is root" in shell(SandboxStep.LANDLOCK).why) is (os.geteuid() == 0)


@pytest.mark.parametrize("local", [False, True], ids=["a setting", "stdio"])
async def test_unsandboxed_commands_get_the_same_environment_but_for_the_local_users_home(
    monkeypatch: pytest.MonkeyPatch, *, local: bool
):
    monkeypatch.setenv("CANARY", "canary")
    monkeypatch.setenv("HOME", "/home/of/the/user")
    with workspace() as root:
        found = probe_shell(Limits(), allow_unsandboxed=True, local=local, only=SandboxStep.UNSANDBOXED)
        result = await Bench(found, root).run('echo "$HOME"; env')
    assert result.output.startswith("/home/of/the/user\n") is local
    assert "canary" not in result.output


@pytest.mark.parametrize("local", [False, True], ids=["a setting", "stdio"])
async def test_without_a_sandbox_nothing_runs_in_the_mode_read_only(*, local: bool):
    """Nothing would keep such a command from writing."""
    found = probe_shell(Limits(), allow_unsandboxed=True, local=local, only=U)
    with workspace() as root:
        refused = await Bench(found, root).attempt("touch made", Mode.READ_ONLY)
        assert list(root.iterdir()) == []
    assert isinstance(refused, Fault)
    assert "the mode read_only promises. Nothing was run." in refused.message
    assert "SUPERPI_SANDBOX=off away" in refused.message


@pytest.mark.parametrize("step", [B, L, U])
async def test_a_workspace_that_is_gone_is_said_to_be_gone(tmp_path: Path, step: SandboxStep):
    refused = await Bench(shell(step), tmp_path / "gone").attempt("true")
    assert isinstance(refused, Fault)
    assert "The command was not run: the workspace folder is gone." in refused.message
    assert str(tmp_path) not in refused.message


# The profile


def words(root: Path, mode: Mode, **fields: object) -> list[str]:
    return profile(command(root, mode, **fields), World(), None, Inherited(10, 11, 12, 13, 14, 15))


@pytest.mark.parametrize(
    ("mode", "bind", "network"),
    [
        pytest.param(Mode.READ_ONLY, "--ro-bind", False, id="read_only"),
        pytest.param(Mode.WORKSPACE_WRITE, "--bind", False, id="workspace_write"),
        pytest.param(Mode.FULL, "--bind", True, id="full"),
    ],
)
def test_the_profile_of_a_mode(tmp_path: Path, mode: Mode, bind: str, network: bool):
    profiled = words(tmp_path, mode)
    assert ("--share-net" in profiled) is network
    assert profiled[profiled.index(str(tmp_path)) - 1] == bind
    for word in (
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ):
        assert word in profiled
    assert profiled[profiled.index("--cap-drop") + 1] == "ALL"


@pytest.mark.parametrize("root", ["/", "/tmp", "/usr", "/etc/x", "/proc/self", "/dev/shm"])
async def test_a_system_folder_is_no_workspace(root: str):
    fault = await shell(SandboxStep.BUBBLEWRAP).run(command(Path(root)))
    assert fault == Fault("Commands cannot run here: the workspace is a system folder. Serve a folder of its own.")


async def test_the_servers_own_folder_is_no_workspace(tmp_path: Path):
    refused = Bubblewrap(next(bwraps()), World(private=(tmp_path,))).plan(command(tmp_path))
    assert isinstance(refused, Fault)
    assert "the server's own folder" in refused.message


def test_a_folder_that_holds_a_private_one_is_shown_without_it(tmp_path: Path):
    for name in ("opt/a", "opt/server/data", "opt/server/lib"):
        (tmp_path / name).mkdir(parents=True)
    world = World(readable=(tmp_path / "opt", tmp_path / "gone"), private=(tmp_path / "opt/server/data",))
    shown = [path for path in world.exposed(network=False) if path.is_relative_to(tmp_path)]
    assert shown == [tmp_path / "opt/a", tmp_path / "opt/server/lib"]


async def test_more_paths_to_read_can_be_given_and_their_programs_are_found(bench: Bench):
    tools = bench.root.parent / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/greet").write_text("#!/bin/sh\necho hello\n")
    (tools / "bin/greet").chmod(0o755)
    own(tools)
    more = Bench(shell(bench.shell.step, world=World(readable=(tools,))), bench.root)
    assert (await more.run(f"greet; echo x >{tools}/bin/greet; greet")).output.count("hello\n") == 2
    assert (await bench.run("greet")).exit_code == 127


# The figures


def test_limits_are_named_for_the_kernel():
    assert rlimits(2.5, shared=True) == {
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": MOST_ADDRESS_SPACE,
        "RLIMIT_FSIZE": MOST_FILE_SIZE,
        "RLIMIT_CPU": 3 * (os.cpu_count() or 1) + 1,
        "RLIMIT_NPROC": MOST_PROCESSES_OF_USER,
    }
    assert rlimits(1, shared=False)["RLIMIT_NPROC"] in {MOST_PROCESSES, MOST_PROCESSES_OF_USER}


LIMITS = """
ulimit -c; ulimit -v; ulimit -f; ulimit -t; ulimit -u
python3 -c 'bytearray({memory})' 2>&1 | tail -1
truncate -s {file} f 2>&1; ls f
cat /proc/self/oom_score_adj
"""


async def test_limits_are_reached(bench: Bench):
    script = LIMITS.format(memory=MOST_ADDRESS_SPACE + 1, file=MOST_FILE_SIZE + 1)
    figures = rlimits(20, shared=bench.shell.step is SandboxStep.LANDLOCK)
    output = (await bench.run(script)).output.splitlines()
    assert output[:5] == [
        "0",
        str(MOST_ADDRESS_SPACE // 1024),
        str(MOST_FILE_SIZE // 1024),
        str(figures["RLIMIT_CPU"]),
        str(figures["RLIMIT_NPROC"]),
    ]
    assert output[5] == "MemoryError"
    assert (bench.root / "f").stat().st_size == 0
    assert output[-1] == "1000"


@pytest.mark.parametrize(
    ("folder", "size"), [pytest.param("/dev/shm", SHM_BYTES, id="shm"), pytest.param("/tmp", TMP_BYTES, id="tmp")]
)
async def test_memory_backed_folders_are_bounded(folder: str, size: int):
    with workspace() as root:
        bench = Bench(shell(SandboxStep.BUBBLEWRAP), root)
        result = await bench.run(f"fallocate -l {size + 4096} {folder}/f || echo full; df --output=size -B1 {folder}")
        assert "full" in result.output
        assert result.output.split()[-1] == str(size)


async def test_the_private_home_is_not_the_last_commands(bench: Bench):
    first = await bench.run('echo a >"$HOME/f" && echo b >"$TMPDIR/f" && cat "$HOME/f" "$TMPDIR/f"')
    second = await bench.run('ls "$HOME"; ls "$TMPDIR/f" 2>/dev/null')
    assert (first.output, second.output) == ("a\nb\n", "")


async def test_ordinary_work_goes_on(bench: Bench):
    """git with a commit, Python, pipes, process substitution, job control."""
    script = """
    set -e
    git init -q . && echo a >a && git add a && git commit -qm first && git log --format='%s %an'
    python3 -c 'import subprocess; print(subprocess.run(["echo", "sub"], capture_output=True).stdout.decode(), end="")'
    diff <(echo same) <(echo same) && echo no difference
    sleep 300 & kill $!; wait $! || echo killed
    timeout 0.05 sleep 300 || echo timed out
    echo x >/dev/null; mkdir -p d/e; mv d f; ln -s f l; touch l/e/g; rm -r f
    """
    result = await bench.run(script, frozen=(), pinned=())
    assert result.output == "first agent\nsub\nno difference\nkilled\ntimed out\n"


# Root


@pytest.mark.skipif(os.geteuid() != 0, reason="is about a server that is root")
class TestRoot:
    """What a server does that runs as root."""

    @pytest.mark.parametrize(
        ("owner", "user"),
        [
            pytest.param((0, 0), User(NOBODY, NOBODY), id="in root's workspace commands are nobody"),
            pytest.param((1234, 1235), User(1234, 1235), id="else they are its owner"),
            pytest.param((1234, 0), User(1234, NOBODY), id="but never of root's group"),
            pytest.param((0, 1235), User(NOBODY, NOBODY), id="root's workspace of another group is root's"),
        ],
    )
    async def test_commands_run_as(self, bench: Bench, owner: tuple[int, int], user: User):
        os.chown(bench.root, *owner)
        os.chmod(bench.root.parent, 0o755)
        os.chmod(bench.root, 0o755)
        assert user_for(bench.root) == user
        result = await bench.run("id -u; id -g; id -G; touch f && stat -c %u:%g f")
        assert result.output.split()[:3] == [str(user.uid), str(user.gid), str(user.gid)]
        assert (bench.root / "f").exists() is (owner[0] != 0)

    async def test_a_workspace_below_a_closed_folder_is_explained(self, bench: Bench):
        os.chown(bench.root.parent, 0, 0)
        os.chmod(bench.root.parent, 0o700)
        result = await bench.attempt("true")
        if bench.shell.step is SandboxStep.BUBBLEWRAP:
            assert isinstance(result, Fault)
            assert "chmod o+x" in result.message
            assert str(bench.root.parent) not in result.message

    def test_no_privilege_is_left_to_a_command(self):
        assert drop_to(User(1, 2)) is not None
        assert {"--clear-groups", "--no-new-privs", "--bounding-set=-all"} <= set(drop_to(User(1, 2)) or ())

    def test_a_closed_program_is_copied_for_others_and_again_when_the_copy_is_gone(self, tmp_path: Path):
        original = tmp_path / "package/_bin/tool"
        original.parent.mkdir(parents=True)
        original.write_text("#!/bin/sh\n")
        original.chmod(0o755)
        tmp_path.chmod(0o700)
        tool = OpenProgram(original)
        copy = tool.path()
        assert copy != original
        assert all(folder.stat().st_mode & stat.S_IXOTH for folder in (copy, *copy.parents))
        assert tool.path() == copy
        copy.unlink()
        copy.write_text("#!/bin/sh\necho planted\n")
        assert tool.path() not in {copy, original}


# The page


PAGE = (Path(__file__).parents[3] / "docs/sandbox.md").read_text()


@pytest.mark.parametrize(
    "word",
    [
        *(f"`{step}`" for step in SandboxStep),
        *(f"`{name}`" for name in World().environment("/h", "/t") if not name.startswith("GIT_")),
        f"{MOST_ADDRESS_SPACE // 1024**3} GiB of address space",
        f"{MOST_FILE_SIZE // 1024**3} GiB a file",
        f"{MOST_PROCESSES} processes",
        f"Landlock: {MOST_PROCESSES_OF_USER}",
        f"`/tmp` of {TMP_BYTES // 1024**3} GiB",
        f"`/dev/shm` of {SHM_BYTES // 1024**2} MiB",
        f"uid {NOBODY}",
        f"more than {MOST_MASKS} single",
    ],
)
def test_the_page_about_the_sandbox_says(word: str):
    assert word in " ".join(PAGE.split())
