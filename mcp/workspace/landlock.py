"""The launcher of the second sandbox step: a program of its own, run as `python -I -S landlock.py PLAN -- ARGV`.

It starts the command with rlimits, Landlock rules and a seccomp filter, stays beside it, and when the command
ends or SIGTERM comes it ends every process that the command left, before it exits itself. It must import nothing
but the standard library, and of that only what starts fast: every command waits for it. The server never imports
it. The plan is words of the form `key=value`, see `Plan`.
"""

# ruff: noqa: PTH123, PTH208
# Importing pathlib would take longer than everything else here.

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
_SECCOMP_MODE_FILTER: Final = 2
#: landlock_create_ruleset, landlock_add_rule, landlock_restrict_self; the same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH: Final = 1

# Rights on files, by bit (linux/landlock.h).
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
#: How many rights there are, by ABI: bits 0 to n-1 are handled.
_RIGHTS_OF_ABI: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_BIND_AND_CONNECT_TCP: Final = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 0b11

_READ: Final = _READ_FILE | _READ_DIR | _EXECUTE
_DEVICE: Final = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NEVER: Final = _MAKE_CHAR | _MAKE_BLOCK

#: How long the launcher goes on ending processes that keep coming, in seconds.
_ENDING_SECONDS: Final = 1.5
#: The exit code when the command could not be started; the reason is on stderr and no status is written.
_NOT_STARTED: Final = 125

_libc: Final = ctypes.CDLL(None, use_errno=True)


class Plan:
    """What to start, from words.

    `parent` is the server's process and `status` a descriptor, to which `{"exit-code": N}` is written when the
    command has ended. `root` is the working directory. `limit=NAME:FIGURE` is an rlimit, `user=UID:GID` what to
    become. Only with `confine=yes` do Landlock and `seccomp`, a BPF program in hex, hold: then `readable`,
    `writable` and `device` are all the paths there are, and TCP needs `network=yes`.
    """

    def __init__(self, words: list[str]) -> None:
        """Raises ValueError for words without `--` or `=`, and KeyError when one is missing."""
        at = words.index("--")
        pairs = [word.split("=", 1) for word in words[:at]]
        one = dict(pairs)
        many: dict[str, list[str]] = {"readable": [], "writable": [], "device": [], "limit": []}
        for key, value in pairs:
            many.get(key, []).append(value)
        self.argv = words[at + 1 :]
        self.root = one["root"]
        self.parent, self.status = int(one["parent"]), int(one["status"])
        self.user = [int(id) for id in one["user"].split(":")] if "user" in one else None
        self.confine, self.network = one["confine"] == "yes", one.get("network") == "yes"
        self.seccomp = bytes.fromhex(one.get("seccomp", ""))
        self.readable, self.writable, self.devices = many["readable"], many["writable"], many["device"]
        self.limits = [limit.split(":") for limit in many["limit"]]


def main() -> NoReturn:
    """Start the command of the plan, end what it leaves, and exit."""
    plan = Plan(sys.argv[1:])
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != plan.parent:
        sys.exit(_NOT_STARTED)
    rulesets = [_ruleset(plan)] if plan.confine else []
    failed, failing = os.pipe()
    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        _become(plan, rulesets, failing, launcher)
    os.close(failing)
    if reason := _read(failed):
        os.write(2, reason)
        sys.exit(_NOT_STARTED)
    code = _watch(child, plan.parent)
    _end_children()
    if code is None:
        sys.exit(_NOT_STARTED)
    os.write(plan.status, b'{"exit-code": %d}' % code)
    sys.exit(code)


def _watch(child: int, server: int) -> int | None:
    """The exit code of the command once it has ended; None when SIGTERM came first.

    The command is in this process's group and may signal all of it, so only the server's own SIGTERM counts, and
    the kernel's when the server is gone. All other signals stay blocked.
    """
    while True:
        for pid, status in _ended():
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return 128 - code if code < 0 else code
        came = signal.sigwaitinfo({signal.SIGCHLD, signal.SIGTERM})
        if came.si_signo == signal.SIGTERM and (came.si_pid == server or os.getppid() != server):
            return None


def _ended() -> list[tuple[int, int]]:
    """The children that have ended since the last time, with their wait status."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(found)
    return ended


def _end_children() -> None:
    """Kill until nobody is left: orphans become children of this process (PR_SET_CHILD_SUBREAPER)."""
    until = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < until:
        _ended()
        children = _children()
        if not children:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _children() -> list[int]:
    """The direct children. The kernel's own list exists where checkpoint/restore is built in."""
    me = os.getpid()
    try:
        return [int(pid) for pid in _read(f"/proc/self/task/{me}/children").split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]


def _parent(pid: str) -> int:
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _become(plan: Plan, rulesets: list[int], failing: int, launcher: int) -> NoReturn:
    """Turn this process into the command. The order matters: each step takes away what the next no longer needs."""
    try:
        os.close(plan.status)
        os.chdir(plan.root)
        _limit(plan.limits)
        if plan.user is not None:
            _drop_to(*plan.user)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(_NOT_STARTED)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        for ruleset in rulesets:
            _syscall(_RESTRICT_SELF, ruleset, 0)
        if plan.confine:
            _filter(plan.seccomp)
        _reset_signals()
        os.execv(plan.argv[0], plan.argv)  # noqa: S606 - the command itself, confined by now
    except OSError as error:
        os.write(failing, f"{error.strerror} ({_where(error)})".encode())
    os._exit(_NOT_STARTED)


def _where(error: OSError) -> str:
    """The line that failed; the text goes to the server's log only."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"line {frame.tb_lineno}" if frame is not None else "unknown line"


def _limit(limits: list[list[str]]) -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
    for name, figure in limits:
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        wanted = int(figure) if hard == resource.RLIM_INFINITY else min(int(figure), hard)
        resource.setrlimit(kind, (wanted, wanted))


def _drop_to(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _reset_signals() -> None:
    """What Python changed and the command would inherit."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _filter(program: bytes) -> None:
    """Install a BPF program: `struct sock_fprog` points to the instructions of eight bytes each."""
    code = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(pointer))


def _ruleset(plan: Plan) -> int:
    """A Landlock ruleset as a descriptor. Everything that the running kernel can restrict is restricted."""
    abi = _syscall(_CREATE_RULESET, None, 0, 1)
    handled = (1 << _RIGHTS_OF_ABI.get(abi, max(_RIGHTS_OF_ABI.values()))) - 1
    tcp = _BIND_AND_CONNECT_TCP if abi >= 4 and not plan.network else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _syscall(_CREATE_RULESET, struct.pack("=QQQ", handled, tcp, scoped)[:size], size, 0)
    for paths, rights in (
        (plan.readable, _READ),
        (plan.writable, handled & ~_NEVER),
        (plan.devices, _DEVICE),
    ):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    return ruleset


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Allow what is below a path; a path that does not exist is left out."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _ON_FILES
        _syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


def _prctl(option: int, *arguments: Any) -> None:
    _check(_libc.prctl(option, *(_word(argument) for argument in (*arguments, 0, 0, 0, 0)[:4])))


def _syscall(number: int, *arguments: Any) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *(_word(argument) for argument in arguments)))


def _word(argument: Any) -> Any:
    """A C argument as wide as the call reads it; bytes and None go as pointers."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def _read(file: str | int) -> bytes:
    with open(file, "rb") as stream:
        return stream.read()


if __name__ == "__main__":
    main()
